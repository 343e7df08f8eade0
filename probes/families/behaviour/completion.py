"""Contexts with a word to fill in, and the words that a model expects there.

Diagnostics of Ettinger (2020), and facts as cloze sentences (Petroni et al. 2019).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from probes.data.items import Item
from probes.families.behaviour.item_scores import (
    LOST,
    OF_ITEMS,
    Column,
    Scale,
    groups_of,
    scored_items,
    text_in,
)
from probes.measurements.measurement import Measured, measurement
from probes.measurements.pivots import Pivot
from probes.records.row import Row

if TYPE_CHECKING:
    from probes.common.arrays import Floats
    from probes.extraction.reading.token_scores import ScoredStretches
    from probes.measurements.context import ModelContext

DEPTHS = 1, 5, 10
"""Numbers of likeliest tokens to search for an answer (Ettinger 2020; Petroni et al. 2019)."""

THRESHOLDS = 0.0, 0.01
"""Differences by which the better word's probability must be greater (Ettinger 2020, section 6)."""


def answer_columns(items: Sequence[Item], scores: ScoredStretches, causal: bool) -> list[Column]:
    """Scales of answers, then of comparisons of words."""
    best = np.full(len(items), np.nan)
    for i, item in enumerate(items):
        if ranks := [rank for rank in _answer_ranks(item, scores) if rank >= 0]:
            best[i] = min(ranks)
    columns = []
    for depth in DEPTHS:
        right = np.where(np.isnan(best), np.nan, best < depth)
        columns.append((Scale("completion_accuracy", {"likeliest": depth}), right))
    return [*columns, *_sensitivities(items, scores)]


def _chance_rows(items: Sequence[Item]) -> Iterator[Row]:
    """Chance of guessing the right word of several; of two if a rival is named."""
    rival_items = [item for item in items if item.rivals]
    rivals = dict.fromkeys(rival for item in rival_items for rival in item.rivals)
    for rival in (None, *rivals) if len(rivals) > 1 else (None,):
        against = [item for item in rival_items if rival in (None, *item.rivals)]
        for axes, indices in groups_of(against):
            guessed = [1 / (2 if rival else 1 + len(against[i].rivals)) for i in indices]
            places = {**axes, "threshold": 0.0} | ({"rival": rival} if rival else {})
            yield Row("sensitivity_chance", float(np.mean(guessed)), n=len(indices), axes=places)


def _item_notes(items: Sequence[Item], scores: ScoredStretches) -> list[str]:
    """Notes on items without an answer of one token, or with words of different lengths."""
    questions = [item for item in items if item.answers]
    several = sum(max(_answer_ranks(item, scores), default=-1) < 0 for item in questions)
    compared = [
        {
            int(scores.pieces[scores.score_index(text_in(item, x))])
            for x in (item.good, *item.rivals)
        }
        for item in items
        if item.rivals
    ]
    uneven = sum(len(lengths) > 1 for lengths in compared)
    notes = (
        (
            several,
            f"{several} of {len(questions)} items have no answer of one token and are left out of "
            "completion.",
        ),
        (
            uneven,
            f"{uneven} of {len(compared)} items compare words of different numbers of tokens; the "
            "longer one is less likely for that reason alone.",
        ),
    )
    return [note for count, note in notes if count]


@measurement(
    "completion",
    version=4,
    needs=("contexts",),
    csv_name="cloze",
    shows=(
        Pivot(
            "by phenomenon, %",
            ("completion_accuracy", "sensitivity", "sensitivity_chance"),
            rows="phenomenon",
            columns=("metric", "likeliest", "threshold"),
            where={"paradigm": None, "rival": None, "perturbation": None},
            note="Completion: an answer is among this many likeliest tokens; a guess almost never "
            "is. Sensitivity: the better word is more probable than any other, by more than the "
            "threshold; a threshold above 0 makes guesses right less often.",
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
def completion(context: ModelContext) -> Measured:
    """Contexts to be completed: answers among the likeliest words, sensitivity.

    Rows by ``paradigm``, by ``phenomenon`` and overall, but not over several phenomena.
    ``completion_accuracy``: share of items with an answer among the ``likeliest`` tokens, of those
    with an answer of one token; half of the tokens tied with an answer count as more probable.
    ``sensitivity``: proportion of items whose good word is more probable than a ``rival``, or than
    all, by more than a ``threshold``; words of several tokens are scored within the word, see
    `TokenScores`. ``sensitivity_chance``: 1 / number of words. See `scored_items` for arrays.
    """
    return scored_items(
        context, answer_columns, notes_of=_item_notes, by_chance=_chance_rows, pools_phenomena=False
    )


def _answer_ranks(item: Item, scores: ScoredStretches) -> list[float]:
    """The rank of each answer; -1 for answers of several tokens."""
    return [float(scores.rank[scores.score_index(text_in(item, x))]) for x in item.answers]


def _sensitivities(items: Sequence[Item], scores: ScoredStretches) -> list[Column]:
    rivals = dict.fromkeys(rival for item in items for rival in item.rivals)
    margins: dict[str | None, Floats] = {x: np.full(len(items), np.nan) for x in (None, *rivals)}
    for i, item in enumerate(items):
        for rival in item.rivals:
            words = (scores.score_index(text_in(item, word)) for word in (item.good, rival))
            p_good, p_rival = (float(np.exp(scores.within_word[n])) for n in words)
            margins[rival][i] = p_good - p_rival
            margins[None][i] = np.fmin(margins[None][i], p_good - p_rival)
    columns = []
    for threshold in THRESHOLDS if rivals else ():
        for name, margin in margins.items():
            if name is None or len(rivals) > 1:
                right = (1 + np.sign(margin - threshold)) / 2  # ties count ½
                axes = {"threshold": threshold} | ({"rival": name} if name else {})
                columns.append((Scale("sensitivity", axes), right))
    return columns
