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
"""Differences whose resamples are in memory at once."""

_CLEAR = 3
"""Monte Carlo errors that a p-value must be from `ALPHA` for no more resamples to be drawn."""

Pair = tuple[int, int]
"""Two cells, by their places."""


@dataclass(frozen=True)
class Errors:
    """Standard errors of differences between cells, each resample with one of its own.

    Attributes:
        influence: of every cell; see `probes.statistics.bootstrap.influence`. Shape
            (cells, clusters).
        training: variance of each cell's score over trainings. Shape (cells,).
        draws: the resamples. Shape (n, clusters).
    """

    influence: Floats
    training: Floats
    draws: Floats

    def of_sample(self, one: Ints, other: Ints) -> Floats:
        """Of the differences between cells `one` and `other`. Shape (pairs,)."""
        change = self.influence[one] - self.influence[other]
        found: Floats = np.sqrt(self._variance(change.sum(1), (change**2).sum(1), one, other))
        return found

    def of_resamples(self, one: Ints, other: Ints) -> Floats:
        """The same in each resample. Shape (pairs, n)."""
        change = self.influence[one] - self.influence[other]
        sums, squares = (self.draws @ each.T for each in (change, change**2))
        found: Floats = np.sqrt(self._variance(sums, squares, one, other)).T
        return found

    def _variance(self, sums: Floats, squares: Floats, one: Ints, other: Ints) -> Floats:
        n = self.influence.shape[1]
        of_test = (squares - sums**2 / n).clip(0) * n / (n - 1)
        found: Floats = of_test + self.training[one] + self.training[other]
        return found


@dataclass(frozen=True)
class Spread:
    """Standard errors of cells of which each is compared with a constant, the second of a pair.

    Attributes:
        sample: shape (cells,).
        resamples: in each resample. Shape (cells, n).
    """

    sample: Floats
    resamples: Floats

    def of_sample(self, one: Ints, other: Ints) -> Floats:
        """Of cells `one`. Shape (pairs,)."""
        return self.sample[one]

    def of_resamples(self, one: Ints, other: Ints) -> Floats:
        """The same in each resample. Shape (pairs, n)."""
        return self.resamples[one]


@dataclass(frozen=True)
class _Deviations:
    """Standard deviations of replicates (cells, n), the same for every resample."""

    replicates: Floats

    def of_sample(self, one: Ints, other: Ints) -> Floats:
        differences = self.replicates[one] - self.replicates[other]
        found: Floats = np.full(len(differences), np.nan)
        known = ~np.isnan(differences).all(1)
        found[known] = np.nanstd(differences[known], axis=1)
        return found

    def of_resamples(self, one: Ints, other: Ints) -> Floats:
        return self.of_sample(one, other)[:, None]


def all_pairs(n_cells: int) -> list[Pair]:
    """Every two cells."""
    return list(combinations(range(n_cells), 2))


def borderline(p: Floats | Sequence[float] | float, n: int = MOST * RESAMPLES) -> Any:
    """Whether p-values from n resamples lie within three Monte Carlo errors of `ALPHA`.

    Other resamples may then have led to the other side. By default n is the most that `max_t`
    draws, which it does where fewer leave this open.
    """
    return np.abs(np.asarray(p) - ALPHA) <= _CLEAR * math.sqrt(ALPHA * (1 - ALPHA) / n)


def max_t(
    scores: Floats, blocks: Iterable[tuple[Floats, Errors | Spread | None]], pairs: Sequence[Pair]
) -> Floats:
    """Two-sided p-values of differences, corrected for testing all of them.

    Step-down max-T (Westfall & Young 1993, algorithm 2.8; Romano & Wolf 2005): p is the share of
    resamples in which the greatest |d* − d| / s*, of this difference and all that are smaller, is
    at least |d| / s of this one. Here d is the difference, d* that of a resample, and s and s* are
    standard errors. One resample is added, so that p is never 0. Since resamples are shared, the
    correction knows how differences depend on each other, and however many there are, a clear one
    can be told.

    The first block of resamples is enough where no p is `borderline`. Else one block after the
    other is added, as long as there are more and one still is.

    Args:
        scores: of every cell. Shape (cells,).
        blocks: by and by, replicates of every cell in some resamples, and their errors. Undefined
            replicates are NaN, and count as resamples in which the differences of their own cell
            are exceeded. Shape (cells, n). Errors give each resample its own standard error (the
            studentised bootstrap), without which tests of few or unequal clusters reject too often;
            if None, s and s* are the standard deviation of d* in the first block.
        pairs: the cells whose differences are tested.

    Returns:
        a p-value for each pair; NaN where a score or all replicates are undefined. Shape (pairs,).
    """
    found, exceeded, n = np.full(len(pairs), np.nan), np.zeros(len(pairs), dtype=np.int64), 0
    one, other = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    for replicates, errors in blocks:
        if not n:
            whole = _Deviations(replicates)
            sizes = _sizes(scores, replicates, errors or whole, one, other)
            (tested,) = np.nonzero(~np.isnan(sizes))
            order = tested[np.argsort(sizes[tested], kind="stable")]
        greatest = np.zeros((1, replicates.shape[1]))
        for block in _blocks(order):
            first, second = one[block], other[block]
            difference = (scores[first] - scores[second])[:, None]
            moved = np.abs(replicates[first] - replicates[second] - difference)
            reached = _ratio(moved, (errors or whole).of_resamples(first, second))
            # The greatest of each difference and all before it, in this block and the ones before.
            reached = np.fmax.accumulate(np.concatenate([greatest, reached]))[1:]
            greatest = reached[-1:]
            exceeded[block] += ((reached >= sizes[block][:, None]) | np.isnan(moved)).sum(1)
        n += replicates.shape[1]
        p = (exceeded[order] + 1) / (n + 1)
        # A difference is no more certain than any that is greater.
        found[order] = np.maximum.accumulate(p[::-1])[::-1]
        if not borderline(found[order], n).any():
            break
    return found


def _sizes(
    scores: Floats,
    replicates: Floats,
    errors: Errors | Spread | _Deviations,
    one: Ints,
    other: Ints,
) -> Floats:
    """Differences in standard errors; NaN where a score or all replicates are undefined."""
    found = np.full(len(one), np.nan)
    for block in _blocks(np.arange(len(one))):
        first, second = one[block], other[block]
        distance = np.abs(scores[first] - scores[second])
        undefined = np.isnan(replicates[first] - replicates[second]).all(1) | np.isnan(distance)
        size = _ratio(distance, errors.of_sample(first, second))
        found[block] = np.where(undefined, np.nan, size)
    return found


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values corrected for testing all of them, however they depend on each other (Holm 1979)."""
    found, greatest, n = [0.0] * len(p_values), 0.0, len(p_values)
    for rank, place in enumerate(sorted(range(n), key=lambda i: p_values[i])):
        greatest = max(greatest, min(1.0, (n - rank) * p_values[place]))
        found[place] = greatest
    return found


def smallest_drop(churn: float, n: int) -> float:
    """The smallest drop of a share of n paired answers that a test finds four times in five.

    Two-sided at `ALPHA`: the solution of n d² = (1.96 + .84)² (churn + d − d²) (Miettinen 1968),
    with answers taken as independent.

    Args:
        churn: share of answers that change without changing the share, as many for the better as
            for the worse.
    """
    q = 7.849 / n
    return (q + math.sqrt(q**2 + 4 * (1 + q) * q * churn)) / (2 * (1 + q))


def _blocks(places: Ints) -> Iterator[Ints]:
    """The places in parts for which there is memory."""
    for start in range(0, len(places), _AT_ONCE):
        yield places[start : start + _AT_ONCE]


def _ratio(distance: Floats, error: Floats) -> Floats:
    """Distances in standard errors; one without any error is beyond all others."""
    found: Floats = np.where(distance > 0, np.inf, distance)
    np.divide(distance, error, out=found, where=error > 0)
    return found


def rank_ranges(scores: Floats, pairs: Sequence[Pair], p_values: Floats) -> Ints:
    """The first and the last place that each cell may have, 1 being the highest score.

    Simultaneous confidence sets of ranks (Mogstad, Romano, Shaikh & Wilhelm 2024): one more than
    the cells that are significantly better, and the number of cells less those significantly worse.
    No cell is singled out beforehand, so nothing depends on which happens to lead on test.

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


def above_all(
    scores: Floats,
    drawn: Callable[[], Iterable[tuple[Floats, Errors]]],
    cells: Sequence[int],
    floors: Sequence[int],
) -> Bools:
    """Which cells score significantly higher than every one of some floors.

    An intersection-union test (Berger 1982): a cell is above the highest floor, whichever that is,
    if it is above each. The differences from one floor are corrected over all cells by `max_t`; a
    higher score at p < `ALPHA`, two-sided, is an error in at most `ALPHA` / 2 of tables.

    Args:
        scores: of all cells, floors among them. Shape (n_cells,).
        drawn: gives the blocks of `max_t`, from the first one whenever it is called.
        cells: places of those that are tested.
        floors: places of the floors. A cell is not above itself.

    Returns:
        shape (cells,).
    """
    above = np.ones(len(cells), dtype=np.bool_)
    for floor in sorted(floors, key=lambda place: -scores[place]):
        if not above.any():
            break
        p = max_t(scores, drawn(), [(cell, floor) for cell in cells])
        above &= (p < ALPHA) & (scores[list(cells)] > scores[floor])
    return above


def shown_p(p: float) -> str:
    """A p-value as tables print it, which say so if other resamples may lead to another side."""
    text = "<.001" if p < 0.001 else f"{p:.3f}".replace("0.", ".", 1)
    return f"{text} (borderline)" if borderline(p) else text
