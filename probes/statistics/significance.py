"""Tests of many differences at once, by max-T over bootstrap resamples (Westfall & Young 1993)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from probes.common.arrays import Floats, Ints

ALPHA = 0.05
"""Level of all tests."""

Pair = tuple[int, int]
"""Two cells, by their places."""


def all_pairs(n_cells: int) -> list[Pair]:
    """Every two cells."""
    return list(combinations(range(n_cells), 2))


def max_t(scores: Floats, replicates: Floats, pairs: Sequence[Pair]) -> Floats:
    """Two-sided p-values of differences, corrected for testing all of them.

    Step-down max-T (Westfall & Young 1993, algorithm 2.8; Romano & Wolf 2005): p is the share of
    resamples in which the greatest |d* − d| / s, of this difference and all that are smaller, is at
    least |d| / s of this one. Here d is the difference, d* that of a resample, and s the standard
    deviation of d*. One resample is added, so that p is never 0. Since resamples are shared, the
    correction knows how differences depend on each other, and however many there are, a clear one
    can be told.

    Args:
        scores: of every cell. Shape (cells,).
        replicates: of every cell in each resample; undefined ones are NaN, and count as resamples
            in which the differences of their own cell are exceeded. Shape (cells, n).
        pairs: the cells whose differences are tested.

    Returns:
        a p-value for each pair; NaN where a score or all replicates are undefined. Shape (pairs,).
    """
    found = np.full(len(pairs), np.nan)
    sizes = np.full(len(pairs), np.nan)
    scales = np.full(len(pairs), np.nan)
    for place, (one, other) in enumerate(pairs):
        difference = replicates[one] - replicates[other]
        known = ~np.isnan(difference)
        if known.any() and not np.isnan(distance := abs(scores[one] - scores[other])):
            scales[place] = difference[known].std()
            sizes[place] = _ratio(distance, scales[place])
    (tested,) = np.nonzero(~np.isnan(sizes))
    order = tested[np.argsort(sizes[tested], kind="stable")]
    greatest = np.zeros(replicates.shape[1])
    for place in order:
        one, other = pairs[place]
        moved = np.abs(replicates[one] - replicates[other] - (scores[one] - scores[other]))
        greatest = np.fmax(greatest, _ratio(moved, scales[place]))
        exceeded = (greatest >= sizes[place]) | np.isnan(moved)
        found[place] = (exceeded.sum() + 1) / (len(exceeded) + 1)
    # A difference is no more certain than any that is greater.
    found[order] = np.maximum.accumulate(found[order][::-1])[::-1]
    return found


def _ratio(distance: Floats, scale: float) -> Floats:
    """Distances in standard deviations; one without any variation is beyond all others."""
    if scale > 0:
        return distance / scale
    return np.where(distance > 0, np.inf, distance)


def rank_ranges(scores: Floats, pairs: Sequence[Pair], p_values: Floats) -> Ints:
    """The first and the last place that each cell may have, 1 being the highest score.

    Simultaneous confidence sets of ranks (Mogstad, Romano, Shaikh & Wilhelm 2024): one more than
    the cells that are separated above it, and the number of cells less those separated below. No
    cell is singled out beforehand, so nothing depends on which happens to lead on test.

    Args:
        pairs: all pairs.
        p_values: of `max_t`; NaN for two that cannot be separated.

    Returns:
        shape (cells, 2).
    """
    ranges = np.array([[1, len(scores)]] * len(scores)).reshape(-1, 2)
    for (one, other), p in zip(pairs, p_values, strict=True):
        if p < ALPHA:
            above, below = (one, other) if scores[one] > scores[other] else (other, one)
            ranges[below, 0] += 1
            ranges[above, 1] -= 1
    return ranges


def p_best(scores: Floats, pairs: Sequence[Pair], p_values: Floats) -> Floats:
    """The least p-value of a difference from a cell with a higher score; 1 without any.

    Those with p ≥ `ALPHA` form a confidence set: it holds every cell that is truly the best with
    a probability of at least 1 − `ALPHA`. NaN where a difference from a higher score, or the score
    itself, is undefined. Shape (cells,).
    """
    found = np.where(np.isnan(scores), np.nan, 1.0)
    for (one, other), p in zip(pairs, p_values, strict=True):
        if scores[one] < scores[other]:
            found[one] = np.minimum(found[one], p)
        elif scores[other] < scores[one]:
            found[other] = np.minimum(found[other], p)
    return found
