"""Minimal pairs: does a model assign the acceptable sentence the higher probability?

Pairs follow Warstadt et al. (2020), predictions over regions Hu et al. (2020), and scores of masked
models Salazar et al. (2020) and Kauf & Ivanova (2023).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from probes.data.items import WHOLE, Item
from probes.families.behaviour.item_scores import (
    LOST,
    OF_ITEMS,
    Column,
    Scale,
    scored_items,
    text_in,
)
from probes.measurements.chart_views import Cells
from probes.measurements.measurement import Measured, measurement
from probes.measurements.pivots import Pivot

if TYPE_CHECKING:
    from probes.common.arrays import Floats
    from probes.extraction.reading.token_scores import ScoredStretches
    from probes.measurements.context import ModelContext


SCORINGS = {"log_p": "pseudo-log-likelihood", "within_word": "within-word l2r"}
"""Scoring of masked models, by part of `TokenScores`."""

LEFT_TO_RIGHT = "left to right"
"""Scoring of causal models."""


def _accuracy_columns(items: Sequence[Item], scores: ScoredStretches, causal: bool) -> list[Column]:
    """Share of true predictions of each item, for every way to score."""
    columns = []
    for part, scoring in {"log_p": LEFT_TO_RIGHT}.items() if causal else SCORINGS.items():
        axes = {"scoring": scoring, "per": "text"}
        columns.append((Scale("pair_accuracy", axes), rightness(items, scores, part)))
        if all(item.predictions == (WHOLE,) for item in items):
            right = rightness(items, scores, part, per_token=True)
            columns.append((Scale("pair_accuracy", {**axes, "per": "token"}), right))
    return columns


@measurement(
    "pairs",
    version=3,
    needs=("pairs",),
    shows=(
        Pivot(
            "by phenomenon, %",
            ("pair_accuracy",),
            rows="phenomenon",
            columns=("scoring", "per"),
            where={"paradigm": None, "perturbation": None},
            note="Share of predictions that come true. For a minimal pair, the prediction is that "
            "the acceptable sentence is more probable (ties count ½, chance is 50 %). A prediction "
            "that joins several comparisons, as in SyntaxGym, is less likely to come true by "
            "chance. Per text: sum of log-probabilities; per token: their mean.",
        ),
        Pivot(
            "by paradigm, %",
            ("pair_accuracy",),
            rows="paradigm",
            columns=("scoring", "per"),
            where={"paradigm": ..., "perturbation": None},
        ),
        Pivot(
            "mean of paradigms, %",
            ("mean_of_paradigms",),
            rows="per",
            columns=("scoring",),
            where={"perturbation": None},
        ),
        Pivot(
            "lost on malformed text, %",
            ("lost",),
            rows="perturbation",
            columns=("scoring", "per"),
            where={"paradigm": None, "phenomenon": None},
            note=LOST,
        ),
        Cells(
            "paradigms",
            "pair_accuracy",
            across="scoring",
            down="paradigm",
            where={"paradigm": ..., "per": "text", "perturbation": None},
            low=0.0,
            high=1.0,
        ),
    ),
    **OF_ITEMS,
)
def pairs(context: ModelContext) -> Measured:
    """Minimal pairs and other predictions about which text is more probable.

    Rows: ``pair_accuracy``, the share of true predictions (ties count ½), by ``paradigm``, by
    ``phenomenon`` and overall; ``mean_of_paradigms``, their unweighted mean. Axes: ``scoring``;
    ``per``, which is ``text`` for the surprisal of the whole text or ``token`` for the mean
    (minimal pairs only). See `scored_items` for arrays.
    """
    return scored_items(context, _accuracy_columns, mean_metric="mean_of_paradigms")


def rightness(
    items: Sequence[Item], scores: ScoredStretches, part: str, *, per_token: bool = False
) -> Floats:
    """Share of true predictions of each item, from 0 to 1. Shape (items,).

    Args:
        part: see `ScoredStretches.surprisal`.
        per_token: divide the surprisal of a text by its number of pieces.
    """
    surprisal, values = scores.surprisal(part), []
    for item in items:
        surprisals = {}
        for condition, texts in item.texts.items():
            first = scores.score_index(text_in(item, condition))
            stretches = slice(first, first + len(texts))
            n = max(1, int(scores.pieces[stretches].sum())) if per_token else 1
            surprisals[condition] = (surprisal[stretches] / n).tolist()
        values.append(np.mean([truth(formula, surprisals) for formula in item.predictions]))
    return np.array(values)


Surprisals = Mapping[str, Sequence[float]]
"""Surprisal of each region, by condition."""

_TOKEN = re.compile(r"\s*(\(\s*(\*|\d+)\s*;\s*%([^%]+)%\s*\)|\d+\.?\d*|[-+*/<>&|()\[\]])")

_LEVELS: tuple[dict[str, Callable[[float, float], float]], ...] = (
    {"&": min},
    {"|": max},
    {"<": lambda a, b: (1 + (a < b) - (a > b)) / 2, ">": lambda a, b: (1 + (a > b) - (a < b)) / 2},
    {"+": lambda a, b: a + b, "-": lambda a, b: a - b},
    {"*": lambda a, b: a * b, "/": lambda a, b: a / b},
)
"""Operators from weakest to strongest binding. A comparison of equals is half true."""


def truth(formula: str, surprisals: Surprisals) -> float:
    """1 if a prediction is true of an item, 0 if it is false, ½ for a tie.

    Predictions are formulas over the surprisals of regions (Gauthier et al. 2020)::

        [(5;%gap%) - (5;%no-gap%)] > 0 & (*;%good%) < (*;%bad%)

    ``(5;%gap%)`` is the surprisal of region 5 of the condition ``gap``, ``*`` that of all regions;
    round and square brackets group alike. ``&`` binds weakest, then ``|``, comparisons, sums,
    products.

    Raises:
        ValueError: the formula cannot be read, or names a missing region or condition.
    """
    tokens, position = [], 0
    while position < len(formula.rstrip()):
        match = _TOKEN.match(formula, position)
        if match is None:
            raise ValueError(f"the formula {formula!r} cannot be read at {formula[position:]!r}")
        tokens.append((match[1], match[2], match[3]))
        position = match.end()
    value, tail = _formula_value(tokens, 0, surprisals)
    if tail:
        raise ValueError(f"the formula {formula!r} has {tail[0][0]!r} after its end")
    return value


_Tokens = list[tuple[str, str, str]]


def _formula_value(tokens: _Tokens, level: int, surprisals: Surprisals) -> tuple[float, _Tokens]:
    """The value of a formula's beginning, and the remaining tokens."""
    if level == len(_LEVELS):
        return _operand(tokens, surprisals)
    value, tokens = _formula_value(tokens, level + 1, surprisals)
    while tokens and tokens[0][0] in _LEVELS[level]:
        operator, tokens = tokens[0][0], tokens[1:]
        operand, tokens = _formula_value(tokens, level + 1, surprisals)
        value = _LEVELS[level][operator](value, operand)
    return value, tokens


def _operand(tokens: _Tokens, surprisals: Surprisals) -> tuple[float, _Tokens]:
    if not tokens:
        raise ValueError("the formula ends before a surprisal")
    (text, region, condition), tail = tokens[0], tokens[1:]
    if condition:
        try:
            regions = surprisals[condition]
            if region != "*" and int(region) == 0:
                raise IndexError
            return (sum(regions) if region == "*" else regions[int(region) - 1]), tail
        except (KeyError, IndexError):
            raise ValueError(f"there is no {text}") from None
    if text in "([":
        value, tail = _formula_value(tail, 0, surprisals)
        if not tail or tail[0][0] not in ")]":
            raise ValueError(f"{text!r} is never closed")
        return value, tail[1:]
    return float(text), tail
