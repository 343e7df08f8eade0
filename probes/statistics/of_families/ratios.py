"""Ratios of sums over sentences, for many heads at once: estimates and tests."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probes.common.arrays import Floats, Ints
from probes.records.values import Estimate
from probes.statistics.bootstrap import bounds, interval, resample, resample_blocks, summed
from probes.statistics.partition import FEWEST, Partition
from probes.statistics.significance import Errors, max_t
from probes.statistics.sums import ratio, sparse_matrix

_CELLS = 256
"""Number of heads whose resamples are in memory at once."""


@dataclass(frozen=True)
class RatioParts:
    """Contributions of sentences to the scores of cells. A score is Σ sums / Σ counts.

    Attributes:
        sums: shape (sentences, cells).
        counts: shared by all cells. Shape (sentences,).
    """

    sums: NDArray[np.floating[Any]]
    counts: Floats

    @classmethod
    def of_examples(cls, values: Floats, sentence: Ints, n_sentences: int) -> RatioParts:
        """One cell, whose score is the mean over examples.

        Args:
            values: value of each example. Shape (n,).
            sentence: sentence of each example. Shape (n,).
        """
        sums: Floats = np.bincount(sentence, values, n_sentences).astype(np.float64)
        return cls(sums[:, None], np.bincount(sentence, minlength=n_sentences).astype(np.float64))

    @property
    def n(self) -> int:
        """Total count."""
        return int(self.counts.sum())

    @property
    def scores(self) -> Floats:
        """Score of each cell; NaN if nothing is counted. Shape (cells,)."""
        scores: Floats = self.sums.sum(0, dtype=np.float64) / (self.counts.sum() or np.nan)
        return scores

    def of(self, cell: int) -> RatioParts:
        """Contributions to one cell."""
        return RatioParts(self.sums[:, [cell]], self.counts)

    def by_cluster(self, partition: Partition) -> tuple[Floats, Floats]:
        """Sums and counts of each cluster. Shapes (clusters, cells) and (clusters,)."""
        cluster, n = partition.of_sentence, partition.n
        sums = summed(sparse_matrix(self.sums), cluster, n).toarray()
        counts: Floats = np.bincount(cluster, weights=self.counts, minlength=n).astype(np.float64)
        return sums, counts


def ratio_intervals(
    parts: RatioParts,
    partition: Partition,
    noise: Floats | None = None,
    limits: tuple[float, float] = (-math.inf, math.inf),
) -> Floats:
    """95 % intervals of every cell by resampling; NaN with too few clusters. Shape (cells, 2).

    Args:
        noise: added to the scores in each resample. Shape (cells, resamples).
        limits: lowest and highest possible score.
    """
    sums, counts = parts.by_cluster(partition)
    bounds_of = np.full((sums.shape[1], 2), np.nan)
    if (counts > 0).sum() < FEWEST:
        return bounds_of
    draws = resample(partition.n)
    resampled_counts = (draws @ counts)[:, None]
    for first in range(0, sums.shape[1], _CELLS):
        cells = slice(first, first + _CELLS)
        values = ratio(draws @ sums[:, cells], resampled_counts).T
        bounds_of[cells] = interval(values if noise is None else values + noise[cells], limits)
    return bounds_of


def ratio_estimate(parts: RatioParts, partition: Partition) -> Estimate:
    """The score of the only cell."""
    (score,), (pair,) = parts.scores, ratio_intervals(parts, partition)
    return Estimate(value=None if np.isnan(score) else float(score), interval=bounds(pair))


def ratio_difference(one: RatioParts, other: RatioParts, partition: Partition) -> Estimate:
    """Difference of two scores over the same sentences, which are resampled together."""
    cluster_sums = [cells.by_cluster(partition) for cells in (one, other)]
    value = float(one.scores[0] - other.scores[0])
    if min((counts > 0).sum() for _, counts in cluster_sums) < FEWEST:
        return Estimate(value=value, interval=None)
    draws = resample(partition.n)
    first, second = (ratio(draws @ sums[:, 0], draws @ counts) for sums, counts in cluster_sums)
    return Estimate(value=value, interval=bounds(interval(first - second)))


def p_values_of_ratios(
    pairs: list[tuple[RatioParts, RatioParts]], partition: Partition
) -> list[float | None]:
    """Two-sided p-values of differences of scores, corrected for testing all of them.

    The test is `probes.statistics.significance.max_t`. P is None where two scores differ in fewer
    than `FEWEST` clusters. Resamples that draw few of these have tiny standard errors, so that
    their huge quotients would hide clear differences of other pairs.

    Args:
        pairs: two scores of one cell each, over the same sentences and counts.
    """
    cells = [cell for pair in pairs for cell in pair]
    cluster_sums = [cell.by_cluster(partition) for cell in cells]
    tested = [
        i
        for i in range(len(pairs))
        if (cluster_sums[2 * i][0] != cluster_sums[2 * i + 1][0]).sum() >= FEWEST
    ]
    p_values: list[float | None] = [None] * len(pairs)
    if not tested:
        return p_values
    scores = np.array([cell.scores[0] for cell in cells])
    influence = np.stack(
        [
            (sums[:, 0] - score * counts) / counts.sum()
            for score, (sums, counts) in zip(scores, cluster_sums, strict=True)
        ]
    )
    blocks = (
        (
            np.stack([ratio(draws @ sums[:, 0], draws @ counts) for sums, counts in cluster_sums]),
            Errors(influence, np.zeros(len(cells)), draws),
        )
        for draws in (block.astype(np.float64) for block in resample_blocks(partition.n))
    )
    cell_pairs = [(2 * i, 2 * i + 1) for i in tested]
    for i, p in zip(tested, max_t(scores, blocks, cell_pairs), strict=True):
        p_values[i] = None if np.isnan(p) else float(p)
    return p_values
