"""Tests of many differences at once, by max-T over bootstrap resamples (Westfall & Young 1993)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from probes.common.arrays import Floats, Ints
from probes.statistics.bootstrap import Draws

ALPHA = 0.05
"""Level of all tests."""

Pair = tuple[int, int]
"""Two cells, by their places."""


@dataclass(frozen=True)
class Errors:
    """What standard errors of differences between cells are computed from.

    Attributes:
        influence: of every cell; see `probes.statistics.bootstrap.influence`. Shape
            (cells, clusters).
        training: variance of each cell's score over trainings. Shape (cells,).
        draws: the resamples. Shape (n, clusters).
    """

    influence: Floats
    training: Floats
    draws: Draws

    def of(self, one: int, other: int) -> tuple[Floats, Floats]:
        """The standard error of a difference, and those of resamples (n,)."""
        change = self.influence[one] - self.influence[other]
        n = len(change)
        moments = np.stack([change, change**2], axis=1)
        first, second = (self.draws @ moments).T
        trained = self.training[one] + self.training[other]
        of_all = (moments[:, 1].sum() - moments[:, 0].sum() ** 2 / n) * n / (n - 1)
        of_resamples = (second - first**2 / n).clip(0) * n / (n - 1)
        return np.sqrt(of_all + trained), np.sqrt(of_resamples + trained)


def all_pairs(n_cells: int) -> list[Pair]:
    """Every two cells."""
    return list(combinations(range(n_cells), 2))


def max_t(
    scores: Floats, replicates: Floats, pairs: Sequence[Pair], errors: Errors | None = None
) -> Floats:
    """Two-sided p-values of differences, corrected for testing all of them.

    Step-down max-T (Westfall & Young 1993, algorithm 2.8; Romano & Wolf 2005): p is the share of
    resamples in which the greatest |d* − d| / s*, of this difference and all that are smaller, is
    at least |d| / s of this one. Here d is the difference, d* that of a resample, and s and s* are
    standard errors. One resample is added, so that p is never 0. Since resamples are shared, the
    correction knows how differences depend on each other, and however many there are, a clear one
    can be told.

    Args:
        scores: of every cell. Shape (cells,).
        replicates: of every cell in each resample; undefined ones are NaN, and count as resamples
            in which the differences of their own cell are exceeded. Shape (cells, n).
        pairs: the cells whose differences are tested.
        errors: gives each resample its own standard error (the studentised bootstrap), without
            which tests of few or unequal clusters reject too often; by default s and s* are the
            standard deviation of d*.

    Returns:
        a p-value for each pair; NaN where a score or all replicates are undefined. Shape (pairs,).
    """
    found = np.full(len(pairs), np.nan)
    sizes = np.full(len(pairs), np.nan)
    for place, (one, other) in enumerate(pairs):
        distance = abs(scores[one] - scores[other])
        if not (np.isnan(distance) or np.isnan(replicates[one] - replicates[other]).all()):
            error, _ = _standard_errors(replicates, one, other, errors)
            sizes[place] = _ratio(distance, error)
    (tested,) = np.nonzero(~np.isnan(sizes))
    order = tested[np.argsort(sizes[tested], kind="stable")]
    greatest = np.zeros(replicates.shape[1])
    for place in order:
        one, other = pairs[place]
        moved = np.abs(replicates[one] - replicates[other] - (scores[one] - scores[other]))
        _, of_resamples = _standard_errors(replicates, one, other, errors)
        greatest = np.fmax(greatest, _ratio(moved, of_resamples))
        exceeded = (greatest >= sizes[place]) | np.isnan(moved)
        found[place] = (exceeded.sum() + 1) / (len(exceeded) + 1)
    # A difference is no more certain than any that is greater.
    found[order] = np.maximum.accumulate(found[order][::-1])[::-1]
    return found


def _standard_errors(
    replicates: Floats, one: int, other: int, errors: Errors | None
) -> tuple[Floats, Floats]:
    """Of a difference: its standard error, and that of each resample."""
    if errors is None:
        difference = replicates[one] - replicates[other]
        scale = difference[~np.isnan(difference)].std()
        return scale, scale
    return errors.of(one, other)


def _ratio(distance: Floats, error: Floats) -> Floats:
    """Distances in standard errors; one without any error is beyond all others."""
    found: Floats = np.where(distance > 0, np.inf, distance)
    np.divide(distance, error, out=found, where=error > 0)
    return found


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
