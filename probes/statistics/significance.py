"""Tests of many differences at once, by max-T over bootstrap resamples (Westfall & Young 1993)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from probes.common.arrays import Bools, Floats, Ints
from probes.statistics.bootstrap import MOST, RESAMPLES

ALPHA = 0.05
"""Level of all tests."""

_AT_ONCE = 128
"""Number of differences whose resamples are in memory at once."""

_CLEAR = 3
"""No more resamples are drawn once p is this many Monte Carlo errors away from `ALPHA`."""

_NO_ERROR = 1e-6
"""Standard errors below this share of the sample's are rounding errors of 0."""

Pair = tuple[int, int]
"""Indices of two cells."""


@dataclass(frozen=True)
class Errors:
    """Standard errors of differences between cells, computed anew in each resample.

    Attributes:
        influence: see `probes.statistics.bootstrap.influence`. Shape (cells, clusters).
        training: variance of each cell's score over trainings. Shape (cells,).
        draws: the resamples. Shape (n, clusters).
    """

    influence: Floats
    training: Floats
    draws: Floats

    def of_sample(self, one: Ints, other: Ints) -> Floats:
        """Errors of the differences between cells `one` and `other`. Shape (pairs,)."""
        change = self.influence[one] - self.influence[other]
        errors: Floats = np.sqrt(self._variance(change.sum(1), (change**2).sum(1), one, other))
        return errors

    def of_resamples(self, one: Ints, other: Ints) -> Floats:
        """Errors of these differences in each resample. Shape (pairs, n)."""
        change = self.influence[one] - self.influence[other]
        sums, squares = (self.draws @ x.T for x in (change, change**2))
        errors: Floats = np.sqrt(self._variance(sums, squares, one, other)).T
        return errors

    def _variance(self, sums: Floats, squares: Floats, one: Ints, other: Ints) -> Floats:
        n = self.influence.shape[1]
        of_test = (squares - sums**2 / n).clip(0) * n / (n - 1)
        variance: Floats = of_test + self.training[one] + self.training[other]
        return variance


@dataclass(frozen=True)
class ErrorSpread:
    """Standard errors of cells that are compared with a constant (the second cell of each pair).

    Attributes:
        sample: shape (cells,).
        resamples: in each resample. Shape (cells, n).
    """

    sample: Floats
    resamples: Floats

    def of_sample(self, one: Ints, other: Ints) -> Floats:
        """Errors of cells `one`. Shape (pairs,)."""
        return self.sample[one]

    def of_resamples(self, one: Ints, other: Ints) -> Floats:
        """Errors of cells `one` in each resample. Shape (pairs, n)."""
        return self.resamples[one]


def all_pairs(n_cells: int) -> list[Pair]:
    """All pairs of two cells."""
    return list(combinations(range(n_cells), 2))


def borderline(p: Floats | Sequence[float] | float, n: int = MOST * RESAMPLES) -> Any:
    """True for p-values from n resamples within three Monte Carlo errors of `ALPHA`.

    Other resamples might have led to the opposite decision. The default n is the most that `max_t`
    draws; it draws that many if fewer leave p borderline.
    """
    return np.abs(np.asarray(p) - ALPHA) <= _CLEAR * math.sqrt(ALPHA * (1 - ALPHA) / n)


def max_t(
    scores: Floats, blocks: Iterable[tuple[Floats, Errors | ErrorSpread]], pairs: Sequence[Pair]
) -> Floats:
    """Two-sided p-values of differences, corrected for testing all of them.

    Step-down max-T (Westfall & Young 1993, algorithm 2.8; Romano & Wolf 2005). Let d be a
    difference with standard error s, and d* and s* the same in a resample; s* is s if it would be
    0. Then p is the share of resamples in which the greatest |d* − d| / s*, over this difference
    and all smaller ones, is at least this |d| / s. One resample is added, so that p is never 0. All
    differences share the resamples, so the correction accounts for their dependence.

    If a p is `borderline` after the first block of resamples, further blocks are drawn until none
    is, or there are no more.

    Args:
        scores: score of each cell. Shape (cells,).
        blocks: replicates (cells, n) of each cell in a block of resamples, and their errors. An
            undefined replicate is NaN and counts as exceeding the differences of its cell. Errors
            give each resample its own standard error (the studentised bootstrap); without them,
            tests of few or unequal clusters reject too often.
        pairs: the cells whose differences are tested.

    Returns:
        a p-value for each pair; NaN where a score or all replicates are undefined. Shape (pairs,).
    """
    p_values, exceeded, n = np.full(len(pairs), np.nan), np.zeros(len(pairs), dtype=np.int64), 0
    one, other = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    for replicates, errors in blocks:
        if not n:
            sizes = _differences_in_se(scores, replicates, errors, one, other)
            (tested,) = np.nonzero(~np.isnan(sizes))
            order = tested[np.argsort(sizes[tested], kind="stable")]
        greatest = np.zeros((1, replicates.shape[1]))
        for block in _blocks_of_pairs(order):
            first, second = one[block], other[block]
            difference = (scores[first] - scores[second])[:, None]
            shift = np.abs(replicates[first] - replicates[second] - difference)
            sample_error = errors.of_sample(first, second)[:, None]
            error = errors.of_resamples(first, second)
            # Without the few clusters that differ from the others, the error of a resample is 0.
            t = _ratio(shift, np.where(error > _NO_ERROR * sample_error, error, sample_error))
            # Running maximum over this difference and all smaller ones, in earlier blocks too.
            t = np.fmax.accumulate(np.concatenate([greatest, t]))[1:]
            greatest = t[-1:]
            exceeded[block] += ((t >= sizes[block][:, None]) | np.isnan(shift)).sum(1)
        n += replicates.shape[1]
        p = (exceeded[order] + 1) / (n + 1)
        # The p-value of a difference is at least that of every greater one.
        p_values[order] = np.maximum.accumulate(p[::-1])[::-1]
        if not borderline(p_values[order], n).any():
            break
    return p_values


def _differences_in_se(
    scores: Floats, replicates: Floats, errors: Errors | ErrorSpread, one: Ints, other: Ints
) -> Floats:
    """Differences in standard errors; NaN where a score or all replicates are undefined."""
    sizes = np.full(len(one), np.nan)
    for block in _blocks_of_pairs(np.arange(len(one))):
        first, second = one[block], other[block]
        distance = np.abs(scores[first] - scores[second])
        undefined = np.isnan(replicates[first] - replicates[second]).all(1) | np.isnan(distance)
        size = _ratio(distance, errors.of_sample(first, second))
        sizes[block] = np.where(undefined, np.nan, size)
    return sizes


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values corrected for multiple testing under any dependence (Holm 1979)."""
    corrected, greatest, n = [0.0] * len(p_values), 0.0, len(p_values)
    for rank, index in enumerate(sorted(range(n), key=lambda i: p_values[i])):
        greatest = max(greatest, min(1.0, (n - rank) * p_values[index]))
        corrected[index] = greatest
    return corrected


def smallest_drop(churn: float, n: int) -> float:
    """The smallest drop in a share of n paired answers that a test detects with a power of 80 %.

    The test is two-sided at `ALPHA`; answers are taken as independent. The drop d solves
    n d² = (1.96 + .84)² (churn + d − d²) (Miettinen 1968).

    Args:
        churn: share of answers that flip, as many for the better as for the worse.
    """
    q = 7.849 / n  # (1.960 + .8416)²
    return (q + math.sqrt(q**2 + 4 * (1 + q) * q * churn)) / (2 * (1 + q))


def _blocks_of_pairs(indices: Ints) -> Iterator[Ints]:
    """Split indices of pairs into parts that fit in memory."""
    for start in range(0, len(indices), _AT_ONCE):
        yield indices[start : start + _AT_ONCE]


def _ratio(distance: Floats, error: Floats) -> Floats:
    """Distances in standard errors; infinite for a nonzero distance without error."""
    quotients: Floats = np.where(distance > 0, np.inf, distance)
    np.divide(distance, error, out=quotients, where=error > 0)
    return quotients


def rank_ranges(scores: Floats, pairs: Sequence[Pair], p_values: Floats) -> Ints:
    """The best and the worst rank that each cell may have; rank 1 is the highest score.

    Simultaneous confidence sets of ranks (Mogstad, Romano, Shaikh & Wilhelm 2024). The best rank is
    one plus the number of significantly better cells. The worst is the number of cells minus the
    significantly worse ones. No cell is singled out, so it does not matter which leads on test.

    Args:
        pairs: all pairs.
        p_values: result of `max_t`; NaN for two cells that cannot be separated.

    Returns:
        shape (cells, 2).
    """
    ranges = np.array([[1, len(scores)]] * len(scores)).reshape(-1, 2)
    for (one, other), p in zip(pairs, p_values, strict=True):
        if p < ALPHA:
            better, worse = (one, other) if scores[one] > scores[other] else (other, one)
            ranges[worse, 0] += 1
            ranges[better, 1] -= 1
    return ranges


def least_p_of_better(scores: Floats, pairs: Sequence[Pair], p_values: Floats) -> Floats:
    """Smallest p-value of a difference from a higher-scoring cell; 1 if there is none.

    Cells with p ≥ `ALPHA` form a confidence set: it contains the truly best cell with a probability
    of at least 1 − `ALPHA`. NaN where the score, or a difference from a higher score, is undefined.
    Shape (cells,).
    """
    least_p = np.where(np.isnan(scores), np.nan, 1.0)
    for (one, other), p in zip(pairs, p_values, strict=True):
        if scores[one] < scores[other]:
            least_p[one] = np.minimum(least_p[one], p)
        elif scores[other] < scores[one]:
            least_p[other] = np.minimum(least_p[other], p)
    return least_p


def above_all(
    scores: Floats,
    draw_blocks: Callable[[], Iterable[tuple[Floats, Errors]]],
    cells: Sequence[int],
    floors: Sequence[int],
) -> Bools:
    """True for cells that score significantly higher than every floor.

    An intersection-union test (Berger 1982): a cell is above the highest floor if it is above each.
    `max_t` corrects the differences from one floor over all cells. A higher score with two-sided
    p < `ALPHA` is an error in at most `ALPHA` / 2 of tables.

    Args:
        scores: scores of all cells, including the floors. Shape (n_cells,).
        draw_blocks: returns the blocks for `max_t`, each time from the first one.
        cells: indices of the tested cells.
        floors: indices of the floors. A cell is not above itself.

    Returns:
        shape (cells,).
    """
    above = np.ones(len(cells), dtype=np.bool_)
    for floor in sorted(floors, key=lambda cell: -scores[cell]):
        if not above.any():
            break
        p = max_t(scores, draw_blocks(), [(cell, floor) for cell in cells])
        above &= (p < ALPHA) & (scores[list(cells)] > scores[floor])
    return above


def printed_p(p: float) -> str:
    """A p-value as tables print it, marked as borderline where it is."""
    text = "<.001" if p < 0.001 else f"{p:.3f}".replace("0.", ".", 1)
    return f"{text} (borderline)" if borderline(p) else text
