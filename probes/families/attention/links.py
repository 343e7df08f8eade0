"""Questions of whether words attend to the right words, and the heads that answer them best.

The measurements `role_heads`, `subject_heads` and `antecedent_heads` ask such questions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from probes.common.arrays import Floats
from probes.common.errors import counted
from probes.data.sentence import Corpus, Sentence, Span
from probes.examples.examples import NotServedError
from probes.families.attention.annotation import FEWEST_WORDS
from probes.families.attention.attention import Heads, blocks, scored_rows
from probes.families.attention.heads import numbers
from probes.families.attention.scoring import ScoredHeads
from probes.families.attention.tables import choice_tables
from probes.measurements.measurement import Found
from probes.measurements.pivots import note_of
from probes.records.record import subject_title
from probes.records.row import Row
from probes.statistics.partition import partition
from probes.statistics.ratios import RatioParts
from probes.statistics.sums import group_sums

if TYPE_CHECKING:
    from probes.extraction.views import Text
    from probes.measurements.context import ModelContext

Link = tuple[Span, Span]
"""Words that attend, and words that they may attend to."""


class Question(NamedTuple):
    """Links of a text, the weights of which are compared.

    Attributes:
        features: the groups in which it counts, such as "ARG0".
        links: the links.
        right: whether each link is right.
        guesses: scores of rules that see no attention, by name.
    """

    features: tuple[str, ...]
    links: tuple[Link, ...]
    right: tuple[bool, ...] = ()
    guesses: Mapping[str, float] = {}


Asked = Mapping[str, Sequence[tuple[Sentence, Sequence[Question]]]]
"""Sentences, or windows of a document, with their questions: those of dev and of test."""

Ask = Callable[[Corpus], Asked]


def links_of(asked: Asked) -> dict[Text, dict[Link, int]]:
    """Links of each text that has any, numbered from 0."""
    from probes.extraction.views import plain_text

    links: dict[Text, dict[Link, int]] = {}
    for sentence, questions in (pair for split in asked.values() for pair in split):
        for link in (link for question in questions for link in question.links):
            of_text = links.setdefault(plain_text(sentence), {})
            of_text.setdefault(link, len(of_text))
    return links


def of_links(ask: Ask) -> dict[str, Any]:
    """Arguments of `@measurement` for questions."""

    def view(corpus: Corpus, _: Any) -> Any:
        from probes.extraction.views import view_over

        return view_over(links_of(ask(corpus)), "plain")

    def collector(corpus: Corpus, *_: Any) -> Any:
        from probes.families.attention.link_weights import LinkWeights

        return LinkWeights({text: tuple(x) for text, x in links_of(ask(corpus)).items()})

    return {
        "extent": blocks,
        "view": view,
        "collector": collector,
        "more_tables": lambda record: choice_tables(subject_title(record), record),
        "csv_lines": lambda record: numbers(record.rows),
    }


@dataclass(frozen=True)
class Answers:
    """Questions of dev and test with values that the weights of their links give.

    Attributes:
        heads: the heads that are described.
        questions: number of the sentence, question, and value, by split.
        n_sentences: by split.
        n_left_out: questions without a value.
    """

    heads: Heads
    questions: Mapping[str, Sequence[tuple[int, Question, Floats]]]
    n_sentences: Mapping[str, int]
    n_left_out: int

    def parts(self, feature: str, cells: Any) -> dict[str, RatioParts]:
        """Means over the questions with a feature, by split.

        Args:
            cells: index into values, or the name of a guess.
        """
        parts = {}
        for split, questions in self.questions.items():
            chosen = [x for x in questions if feature in x[1].features]
            values = [
                question.guesses[cells] if isinstance(cells, str) else value[cells]
                for _, question, value in chosen
            ]
            sentence, n = np.array([x for x, *_ in chosen], dtype=np.int64), self.n_sentences[split]
            sums = group_sums(np.reshape(values, (len(chosen), -1)), sentence, n)
            parts[split] = RatioParts(sums, np.bincount(sentence, minlength=n).astype(np.float64))
        return parts

    def findings(
        self,
        title: str,
        scored: Callable[[str], Iterable[ScoredHeads]],
        rows: Callable[[str], Iterable[Row]] = lambda feature: (),
        notes: Sequence[str] = (),
    ) -> Found:
        """Rows of all heads and of those that are best on dev, for each frequent feature.

        Args:
            title: title of the table, below which notes are printed.
            scored: from a feature to scores.
            rows: from a feature to further rows.

        Raises:
            NotServedError: no feature is frequent.
        """
        n = {
            split: Counter(feature for _, x, _ in questions for feature in x.features)
            for split, questions in self.questions.items()
        }
        features = [feature for feature, _ in n["test"].most_common()]
        frequent = [x for x in features if min(n["dev"][x], n["test"][x]) >= FEWEST_WORDS]
        if not frequent:
            raise NotServedError(f"dev or test has fewer than {FEWEST_WORDS} cases of each kind")
        of_heads, _ = scored_rows((x for feature in frequent for x in scored(feature)), self.heads)
        more = [row for feature in frequent for row in rows(feature)]
        rare = ", ".join(f"{x} {n['test'][x]}" for x in features if x not in frequent)
        said = [*notes, *[f"Not scored (too rare); in test: {rare}."] * bool(rare)]
        if self.n_left_out:
            cases = counted(self.n_left_out, "case")
            said.append(
                f"{cases} of dev and test left out: longer than a window, or nothing to compare."
            )
        facts = {"resampled": self.heads.test.clusters}
        return Found([*of_heads, *more], facts=facts, notes=[note_of(title, x) for x in said])


def answers(
    context: ModelContext, asked: Asked, value: Callable[[Question, Floats], Floats]
) -> Answers:
    """Read the values of questions from the stored weights.

    Args:
        value: from a question and the weights of its links (links, layers, heads + 1), of which the
            last head is uniform, to an array. A question with NaN is left out.

    Raises:
        NotServedError: there are no questions.
    """
    from probes.extraction.views import plain_text

    links, index = links_of(asked), context.view.index
    if not links:
        raise NotServedError("dev and test have no words to link")
    first = context.first_rows(np.array([len(links[text]) for text in context.view.texts]))
    stored = np.concatenate(context.stored.arrays("weights"))
    weights = stored[:, [layer - 1 for layer in context.layers]].astype(np.float64)
    answered: dict[str, list[tuple[int, Question, Floats]]] = {split: [] for split in asked}
    n_left_out = 0
    for split, pairs in asked.items():
        for number, (sentence, questions) in enumerate(pairs):
            text = plain_text(sentence)
            for question in questions:
                rows = [first[index[text]] + links[text][link] for link in question.links]
                found = value(question, weights[rows])
                if np.isnan(weights[rows]).any() or np.isnan(found).any():
                    n_left_out += 1
                else:
                    answered[split].append((number, question, found))
    test = partition([sentence.document for sentence, _ in asked["test"]])
    heads = Heads(context.layers, weights.shape[2] - 1, test)
    return Answers(heads, answered, {x: len(pairs) for x, pairs in asked.items()}, n_left_out)
