"""A head as coreference resolver (Clark et al. 2019, section 4.3).

An anaphor is a mention of an entity that was mentioned before. Its candidates are the earlier
mentions in the same window of sentences, of entities that the document mentions again. The word
that heads the anaphor chooses the candidate to whose head it attends most.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from probes.common.arrays import Floats
from probes.data.sentence import Corpus, Mention, Sentence, windows
from probes.families.attention.heads import CHANCE
from probes.families.attention.links import Asked, Question, answers, of_links
from probes.families.attention.scoring import ScoredHeads
from probes.families.attention.tables import ANTECEDENTS
from probes.measurements.chart_views import Cells
from probes.measurements.measurement import Found, measurement
from probes.measurements.pivots import Pivot
from probes.records.row import Row
from probes.statistics.ratios import estimate
from probes.tasks.coreference import form_of
from probes.tasks.entities import head_of

if TYPE_CHECKING:
    from probes.measurements.context import ModelContext

WINDOW = 5
"""Sentences that are read together."""

EVERY = "all anaphors"

NEAREST, SAME_HEAD, RULES = "nearest", "same head word", "rules"
"""Baselines, see `guesses_of`."""

AGREEMENT = {"Number": "", "Gender": "", "Person": "3"}
"""Features in which an anaphor and its antecedent agree, and their values if not annotated."""


def times_of(sentences: Iterable[Sentence]) -> Counter[tuple[str, str]]:
    """How often a document mentions an entity in whole mentions."""
    return Counter(
        (s.document, m.entity) for s in sentences for m in s.mentions if m.entity and not m.unfit
    )


def ask(corpus: Corpus) -> Asked:
    """The anaphors of each sentence of dev and test, in the window that ends with it."""
    asked = {}
    for split in ("dev", "test"):
        times = times_of(corpus.splits[split])
        recurring = [
            replace(
                s,
                mentions=tuple(
                    m for m in s.mentions if not m.unfit and times[s.document, m.entity] > 1
                ),
            )
            for s in corpus.splits[split]
        ]
        asked[split] = [(window, [*anaphors(window)]) for window in windows(recurring, WINDOW)]
    return asked


def anaphors(window: Sentence) -> Iterator[Question]:
    """The mentions in the last sentence that have an antecedent in the window."""
    every = sorted((head_of(m.span, window.heads), i) for i, m in enumerate(window.mentions))
    for head, i in every:
        later = window.mentions[i]
        before = [(x, window.mentions[j]) for x, j in every if
                  window.mentions[j].span[1] <= later.span[0]]  # fmt: skip
        right = tuple(m.entity == later.entity for _, m in before)
        if later.span[0] >= window.starts[-1] and any(right):
            links = tuple(((head, head + 1), (x, x + 1)) for x, _ in before)
            guesses = guesses_of(window, (head, later), before)
            scores = {rule: float(right[place]) for rule, place in guesses.items()}
            scores[CHANCE] = sum(right) / len(right)
            yield Question((EVERY, form_of(later, window)), links, right, scores)


Headed = tuple[int, Mention]
"""A mention and the place of its head word."""


def guesses_of(window: Sentence, later: Headed, before: Sequence[Headed]) -> dict[str, int]:
    """Place of the candidate that each baseline chooses.

    The nearest one; the nearest one with the same head word; and the four rules of Clark et al.
    (2019, after Lee et al. 2011), of which the first that holds of a candidate counts: the same
    words, the same head word, agreement in number, gender and person, any.

    Args:
        before: candidates in the order of their head words.
    """
    words, feats = [word.lower() for word in window.words], window.feats

    def same_words(one: Headed, other: Headed) -> bool:
        return words[slice(*one[1].span)] == words[slice(*other[1].span)]

    def same_head(one: Headed, other: Headed) -> bool:
        return words[one[0]] == words[other[0]]

    def agree(one: Headed, other: Headed) -> bool:
        if not feats:
            return True
        pairs = [[feats[x].get(name, usual) for x, _ in (one, other)]
                 for name, usual in AGREEMENT.items()]  # fmt: skip
        return all(x == y or not (x and y) for x, y in pairs)

    def anything(one: Headed, other: Headed) -> bool:
        return True

    def nearest(*rules: Callable[[Headed, Headed], bool]) -> int:
        return next(
            place
            for rule in rules
            for place in reversed(range(len(before)))
            if rule(later, before[place])
        )

    return {
        NEAREST: nearest(anything),
        SAME_HEAD: nearest(same_head, anything),
        RULES: nearest(same_words, same_head, agree, anything),
    }


@measurement(
    "antecedent_heads",
    needs=("mentions", "heads", "upos"),
    views=(
        Pivot(
            "baselines",
            ("antecedent",),
            rows="feature",
            columns=("baseline",),
            where={"layer": None, "baseline": ..., "chosen": None},
            note="How often rules that see no attention choose an antecedent.",
        ),
        Cells(
            "antecedent_heads",
            "antecedent",
            across="head",
            title="Antecedents",
            note="How often a head attends to an antecedent more than to other earlier mentions.",
            where={"feature": EVERY, "head": ..., "baseline": None, "chosen": None},
        ),
    ),
    **of_links(ask),
)
def antecedent_heads(context: ModelContext) -> Found:
    """Heads that choose the antecedent of a mention.

    Raises:
        NotServedError: there are too few anaphors.
    """

    def value(question: Question, weights: Floats) -> Floats:
        return np.array(question.right, dtype=np.float64)[weights.argmax(0)]

    asked = ask(context.corpus)
    answered = answers(context, asked, value)

    def scored(feature: str) -> Iterator[ScoredHeads]:
        axes, chance = {"feature": feature}, answered.parts(feature, CHANCE)["test"]
        hits, rules = answered.parts(feature, np.s_[:, :-1]), answered.parts(feature, RULES)
        direction = ("anaphor to antecedent",)
        yield ScoredHeads(
            "antecedent", axes, direction, hits, rules, RULES, float(chance.scores[0])
        )

    def rows(feature: str) -> Iterator[Row]:
        for rule in (NEAREST, SAME_HEAD, CHANCE):
            found = estimate(answered.parts(feature, rule)["test"], answered.heads.test)
            axes = {"feature": feature, "baseline": rule}
            yield Row.estimated("antecedent", found, axes=axes)

    test = context.corpus.splits["test"]
    n_anaphors = sum(times - 1 for times in times_of(test).values())
    n_asked = sum(len(questions) for _, questions in asked["test"])
    n_unfit = sum(bool(mention.unfit) for s in test for mention in s.mentions)
    notes = [
        f"Test: {n_asked:,} of {n_anaphors:,} anaphors have an antecedent in the {WINDOW} "
        "sentences that are read together.",
        *[f"Test: {n_unfit:,} mentions in parts, or without words, left out."] * bool(n_unfit),
    ]
    return answered.findings(ANTECEDENTS, scored, rows, notes)
