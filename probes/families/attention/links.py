"""Questions of whether words attend to the right words, and the heads that answer them best.

The measurements `role_heads`, `subject_heads` and `antecedent_heads` ask such questions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from probes.common.arrays import Floats
from probes.common.errors import counted
from probes.data.sentence import Corpus, Sentence
from probes.examples.examples import NotServedError
from probes.extraction.reading.views import Text, plain_text, view_over
from probes.families.attention.annotation import FEWEST_WORDS, Link
from probes.families.attention.attention import Heads, block_layers, scored_rows
from probes.families.attention.heads import numbers
from probes.families.attention.scoring import ScoredHeads
from probes.families.attention.tables import choice_tables
from probes.measurements.measurement import Measured
from probes.measurements.pivots import note_of
from probes.records.record import subject_title
from probes.records.row import Row
from probes.statistics.of_families.ratios import RatioParts
from probes.statistics.partition import partition
from probes.statistics.sums import group_sums

if TYPE_CHECKING:
    from probes.extraction.reading.collectors import Collector
    from probes.measurements.context import ModelContext


class LinkQuestion(NamedTuple):
    """Links of a text, whose weights are compared.

    Attributes:
        features: the groups in which it counts, such as "ARG0".
        links: the links.
        fixed_scores: numbers that do not depend on attention, such as which links are right.
    """

    features: tuple[str, ...]
    links: tuple[Link, ...]
    fixed_scores: tuple[float, ...] = ()


LinkQuestions = Mapping[str, Sequence[tuple[Sentence, Sequence[LinkQuestion]]]]
"""Sentences, or windows of a document, with their questions: those of dev and of test."""


def links_by_text(questions: LinkQuestions) -> dict[Text, dict[Link, int]]:
    """Links of each text that has any, numbered from 0; NotServedError if there are none."""
    links: dict[Text, dict[Link, int]] = {}
    for sentence, of_sentence in (pair for split in questions.values() for pair in split):
        for link in (link for question in of_sentence for link in question.links):
            of_text = links.setdefault(plain_text(sentence), {})
            of_text.setdefault(link, len(of_text))
    if not links:
        raise NotServedError("dev and test have no words to link")
    return links


def link_arguments(ask: Callable[[Corpus], LinkQuestions]) -> dict[str, Any]:
    """Arguments of `@measurement` for the questions about a corpus."""

    def collector(corpus: Corpus, *_: Any) -> Collector:
        from probes.families.attention.collector import LinkWeights

        return LinkWeights({text: tuple(x) for text, x in links_by_text(ask(corpus)).items()})

    return {
        "extent": block_layers,
        "reads": lambda corpus, _: view_over(links_by_text(ask(corpus)), "plain"),
        "collector": collector,
        "more_tables": lambda record: choice_tables(subject_title(record), record),
        "csv_lines": lambda record: numbers(record.rows),
    }


@dataclass(frozen=True)
class LinkAnswers:
    """Questions of dev and test, each with an array of values.

    Attributes:
        heads: the heads that are described.
        values: number of the sentence, features and values of each question, by split.
        n_sentences: by split.
        n_left_out: questions without values.
    """

    heads: Heads
    values: Mapping[str, Sequence[tuple[int, tuple[str, ...], Floats]]]
    n_sentences: Mapping[str, int]
    n_left_out: int

    @cached_property
    def counts(self) -> dict[str, int]:
        """Questions with each feature, in the rarer of both splits; most frequent first in test."""
        of = {x: Counter(f for _, fs, _ in part for f in fs) for x, part in self.values.items()}
        return {name: min(n, of["dev"][name]) for name, n in of["test"].most_common()}

    @property
    def frequent(self) -> list[str]:
        """The features that are scored.

        Raises:
            NotServedError: there are none.
        """
        if names := [name for name, n in self.counts.items() if n >= FEWEST_WORDS]:
            return names
        raise NotServedError(f"dev or test has fewer than {FEWEST_WORDS} words to link")

    def parts(self, feature: str, cells: Any) -> dict[str, RatioParts]:
        """Means over the questions with a feature, by split, at an index into their values."""
        parts = {}
        for split, n in self.n_sentences.items():
            answers = [x for x in self.values[split] if feature in x[1]]
            sentence = np.array([number for number, *_ in answers], dtype=np.int64)
            values = np.array([values[cells] for *_, values in answers]).reshape(len(answers), -1)
            counts = np.bincount(sentence, minlength=n).astype(np.float64)
            parts[split] = RatioParts(group_sums(values, sentence, n), counts)
        return parts

    def findings(
        self,
        title: str,
        scored: Iterable[ScoredHeads],
        rows: Iterable[Row] = (),
        notes: Iterable[str] = (),
    ) -> Measured:
        """Rows of all heads and of those that are best on dev, and further rows.

        Args:
            title: title of the table, below which notes are printed.
        """
        of_heads, _ = scored_rows(scored, self.heads)
        lines = list(notes)
        if rare := [name for name in self.counts if name not in self.frequent]:
            lines.append(
                f"Not scored, as dev or test has fewer than {FEWEST_WORDS}: {', '.join(rare)}."
            )
        if self.n_left_out:
            cases = counted(self.n_left_out, "case")
            lines.append(
                f"{cases} of dev and test left out: longer than a window, or nothing to compare."
            )
        facts = {"resampled": self.heads.test.clusters}
        return Measured([*of_heads, *rows], facts=facts, notes=[note_of(title, x) for x in lines])


def link_answers(
    context: ModelContext, questions: LinkQuestions, value: Callable[[LinkQuestion, Floats], Floats]
) -> LinkAnswers:
    """Read the values of questions from the stored weights.

    Args:
        value: from a question and the weights of its links (links, layers, heads + 1), of which the
            last head is uniform, to an array. A question with NaN is left out.

    Raises:
        NotServedError: there are no questions.
    """
    links, index = links_by_text(questions), context.view.index
    first = context.first_rows(np.array([len(links[text]) for text in context.view.texts]))
    stored = np.concatenate(context.stored.arrays("weights"))
    weights = stored[:, [layer - 1 for layer in context.layers]].astype(np.float64)
    values: dict[str, list[tuple[int, tuple[str, ...], Floats]]] = {x: [] for x in questions}
    n_left_out = 0
    for split, pairs in questions.items():
        for number, (sentence, of_sentence) in enumerate(pairs):
            text = plain_text(sentence)
            for question in of_sentence:
                rows = [first[index[text]] + links[text][link] for link in question.links]
                link_weights = weights[rows]
                answer = value(question, link_weights)
                if np.isnan(link_weights).any() or np.isnan(answer).any():
                    n_left_out += 1
                else:
                    values[split].append((number, question.features, answer))
    test = partition([sentence.document for sentence, _ in questions["test"]])
    heads = Heads(context.layers, weights.shape[2] - 1, test)
    return LinkAnswers(heads, values, {x: len(pairs) for x, pairs in questions.items()}, n_left_out)
