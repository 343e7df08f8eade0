"""Contexts with a word to be filled in: what a model expects there.

Diagnostics of Ettinger (2020), and facts as cloze sentences (Petroni et al. 2019).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from probes.data.items import Item
from probes.measurements.behaviour.items import (
    LOST,
    OF_ITEMS,
    Column,
    Scale,
    groups_of,
    scored_items,
    text_in,
)
from probes.measurements.measurement import Found, measurement
from probes.measurements.pivots import Pivot
from probes.records.row import Row

if TYPE_CHECKING:
    from probes.common.arrays import Floats
    from probes.extraction.token_scores import Scored
    from probes.measurements.context import ModelContext

DEPTHS = 1, 5, 10
"""Among how many of the likeliest tokens an answer may be: Ettinger's, and Petroni's."""

THRESHOLDS = 0.0, 0.01
"""By how much the better word's probability has to be greater (Ettinger 2020, section 6)."""


def completion_columns(items: Sequence[Item], found: Scored, causal: bool) -> list[Column]:
    """Answers, then comparisons of words."""
    return [*_completions(items, found), *_sensitivities(items, found)]


def _by_chance(items: Sequence[Item]) -> Iterator[Row]:
    """That one of several words is guessed; with a rival named, one of two."""
    asked = [item for item in items if item.rivals]
    every = dict.fromkeys(rival for item in asked for rival in item.rivals)
    for rival in (None, *every) if len(every) > 1 else (None,):
        its = [item for item in asked if rival in (None, *item.rivals)]
        for axes, own in groups_of(its):
            guessed = [1 / (2 if rival else 1 + len(its[i].rivals)) for i in own]
            places = {**axes, "threshold": 0.0} | ({"rival": rival} if rival else {})
            yield Row("sensitivity_chance", float(np.mean(guessed)), n=len(own), axes=places)


def _notes(items: Sequence[Item], found: Scored) -> list[str]:
    """How many items have no answer of one token, or compare words of different lengths."""
    asked = [item for item in items if item.answers]
    several = sum(max(_ranks(item, found), default=-1) < 0 for item in asked)
    compared = [
        {int(found.pieces[found.place(text_in(item, x))]) for x in (item.good, *item.rivals)}
        for item in items
        if item.rivals
    ]
    uneven = sum(len(lengths) > 1 for lengths in compared)
    notes = (
        (
            several,
            f"{several} of {len(asked)} items have no answer of one token: not in completion.",
        ),
        (
            uneven,
            f"{uneven} of {len(compared)} items compare words of different numbers of "
            "tokens, of which the longer is less likely for that alone.",
        ),
    )
    return [note for count, note in notes if count]


@measurement(
    "completion",
    version=3,
    needs=("contexts",),
    csv_name="cloze",
    views=(
        Pivot(
            "by phenomenon, %",
            ("completion_accuracy", "sensitivity", "sensitivity_chance"),
            rows="phenomenon",
            columns=("metric", "likeliest", "threshold"),
            where={"paradigm": None, "rival": None, "perturbation": None},
            note="Completion: an answer is among so many of the likeliest tokens, which a guess "
            "almost never is. Sensitivity: the better word's probability is greater than any "
            "other's, by more than the threshold; guesses are right less often with one above 0.",
        ),
        Pivot(
            "by paradigm, %",
            ("completion_accuracy", "sensitivity", "sensitivity_chance"),
            rows="paradigm",
            columns=("metric", "likeliest", "threshold"),
            where={"paradigm": ..., "rival": None, "perturbation": None},
        ),
        Pivot(
            "lost on malformed text, %",
            ("lost",),
            rows="phenomenon",
            columns=("of", "perturbation", "likeliest", "threshold"),
            where={"paradigm": None, "rival": None},
            note=LOST,
        ),
    ),
    **OF_ITEMS,
)
def completion(context: ModelContext) -> Found:
    """Contexts to be completed: answers among the likeliest words, sensitivity.

    Answers among the likeliest tokens, and words that should be likelier than others.

    Rows by ``paradigm``, by ``phenomenon`` and overall: ``completion_accuracy``, how often one of
    the answers is among the ``likeliest`` so many tokens, of items with an answer of one token
    (half of the tokens that are as likely as an answer count as likelier);
    ``sensitivity``, how often the good word's probability is greater than that of a ``rival``, or
    of all, by more than a ``threshold``. Words of several tokens are scored within the word, see
    `TokenScores`. ``sensitivity_chance`` is how often a guess is right, one in as many as there are
    words. No row is of several phenomena. See `scored_items` for arrays.
    """
    return scored_items(
        context, completion_columns, notes_of=_notes, by_chance=_by_chance, pools_phenomena=False
    )


def _ranks(item: Item, found: Scored) -> list[float]:
    """The rank of each answer; -1 for one of several tokens."""
    return [float(found.rank[found.place(text_in(item, answer))]) for answer in item.answers]


def _completions(items: Sequence[Item], found: Scored) -> list[Column]:
    best = np.full(len(items), np.nan)
    for i, item in enumerate(items):
        if known := [rank for rank in _ranks(item, found) if rank >= 0]:
            best[i] = min(known)
    return [
        (
            Scale("completion_accuracy", {"likeliest": depth}),
            np.where(np.isnan(best), np.nan, best < depth),
        )
        for depth in DEPTHS
    ]


def _sensitivities(items: Sequence[Item], found: Scored) -> list[Column]:
    rivals = dict.fromkeys(rival for item in items for rival in item.rivals)
    margins: dict[str | None, Floats] = {}
    for name in (None, *rivals):
        margins[name] = np.full(len(items), np.nan)
    for i, item in enumerate(items):
        for rival in item.rivals:
            words = (found.place(text_in(item, each)) for each in (item.good, rival))
            good, other = (float(np.exp(found.within_word[place])) for place in words)
            margins[rival][i] = good - other
            margins[None][i] = np.fmin(margins[None][i], good - other)
    columns = []
    for threshold in THRESHOLDS if rivals else ():
        for name, margin in margins.items():
            if name is None or len(rivals) > 1:
                right = (1 + np.sign(margin - threshold)) / 2  # ties count ½
                axes = {"threshold": threshold} | ({"rival": name} if name else {})
                columns.append((Scale("sensitivity", axes), right))
    return columns
