"""Heads that link a predicate and its core arguments (Kovaleva et al. 2019, section 4.2).

PropBank's roles take the place of FrameNet's elements. Like them, a link is an argument of at most
three words, at least two words from its predicate. A head may attend to whatever is at that
distance, so links have *controls*: the same two spans, moved together to every other place in the
sentence at which no word of a predicate is linked to one of its arguments.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product, starmap
from typing import TYPE_CHECKING

import numpy as np

from probes.common.arrays import Floats
from probes.data.sentence import Corpus, Sentence, Span
from probes.families.attention.links import (
    LinkQuestion,
    LinkQuestions,
    link_answers,
    link_arguments,
)
from probes.families.attention.scoring import ScoredHeads
from probes.families.attention.tables import ROLES
from probes.measurements.chart_views import Cells
from probes.measurements.measurement import Measured, measurement

if TYPE_CHECKING:
    from probes.measurements.context import ModelContext

CORE_ROLES = tuple(f"ARG{n}" for n in range(6))

LONGEST, NEAREST = 3, 2
"""The most words of an argument, and its least distance from the predicate."""

SHORT = 12
"""Length, in words, of the longest sentences of Kovaleva et al. (2019)."""

CORE, CORE_SHORT = "core", f"core, at most {SHORT} words"

ROLE_DIRECTIONS = "argument to predicate", "predicate to argument"


def role_questions(corpus: Corpus) -> LinkQuestions:
    """The links of the sentences of dev and test."""
    return {x: [(s, [*links_of_roles(s)]) for s in corpus.splits[x]] for x in ("dev", "test")}


def links_of_roles(sentence: Sentence) -> Iterator[LinkQuestion]:
    """Each link of a sentence with its controls, from argument to predicate and then back."""
    frames = [(role, span, x.predicate) for x in sentence.frames for role, span in x.arguments]
    linked = {pair for _, *x in frames for pair in (*_pairs(*x), *_pairs(*reversed(x)))}
    for role, span, predicate in frames:
        (start, end), (first, last) = span, predicate
        distance = 1 + max(start - last, first - end)
        if role in CORE_ROLES and end - start <= LONGEST and distance >= NEAREST:
            shifts = range(-min(start, first), len(sentence) - max(end, last) + 1)
            moved = [((start + x, end + x), (first + x, last + x)) for x in shifts if x]
            controls = [x for x in moved if linked.isdisjoint(_pairs(*x))]
            places = [(span, predicate), *controls]
            short = (CORE_SHORT,) * (len(sentence) <= SHORT)
            yield LinkQuestion((CORE, *short, role), (*places, *((y, x) for x, y in places)))


def _pairs(first: Span, second: Span) -> Iterable[tuple[int, int]]:
    return product(range(*first), range(*second))


@measurement(
    "role_heads",
    needs=("frames",),
    shows=(
        Cells(
            "role_heads",
            "role",
            across="head",
            title="Links of predicates and arguments",
            number="mean weight",
            note="Greatest attention between the words of a predicate and of a core argument.",
            where={"feature": CORE, "head": ..., "baseline": None, "chosen": None},
            apart="direction",
        ),
    ),
    **link_arguments(role_questions),
)
def role_heads(context: ModelContext) -> Measured:
    """Heads that link a predicate and its core arguments.

    A score is the greatest weight of a pair of words, averaged over links. In each direction, the
    best head is the one that exceeds its controls most on dev. Chance is uniform attention. In
    decoders, controls are moved by what uniform attention gives to the link and not to them.
    """

    def value(question: LinkQuestion, weights: Floats) -> Floats:
        by_direction = weights.reshape(2, -1, *weights.shape[1:])
        link, elsewhere = by_direction[:, 0], by_direction[:, 1:]
        if not elsewhere.size:
            return np.stack([link, np.full_like(link, np.nan)])
        controls = elsewhere.mean(1)
        if context.model.causal:  # Later words see more words, to which each gives less attention.
            controls = controls + link[..., -1:] - elsewhere.mean(1)[..., -1:]
        return np.stack([link, controls])  # (2, directions, layers, heads + 1)

    answers = link_answers(context, role_questions(context.corpus), value)

    def scored(feature: str, index: int) -> ScoredHeads:
        weights, controls = (answers.parts(feature, np.s_[x, index, :, :-1]) for x in (0, 1))
        uniform = answers.parts(feature, np.s_[0, index, :1, -1])["test"]
        axes, direction, chance = {"feature": feature}, (ROLE_DIRECTIONS[index],), uniform.scores[0]
        return ScoredHeads("role", axes, direction, weights, controls, "controls", float(chance))

    return answers.findings(ROLES, starmap(scored, product(answers.frequent, (0, 1))))
