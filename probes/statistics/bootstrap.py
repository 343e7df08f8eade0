"""Bootstrap intervals by resampling a test split.

The words of a sentence depend on each other, and so do the sentences of a document. We therefore
draw whole clusters with replacement: documents, or sentences if the corpus names no documents
(Efron & Tibshirani 1993, ch. 6 and 13; Berg-Kirkpatrick et al. 2012 for the use in NLP). All tasks
use the same resamples of a split, so that differences are paired.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from probes.common.arrays import Floats, Ints
from probes.records.values import Estimate, Interval
from probes.statistics.gold import Gold, Predictions
from probes.statistics.metrics import Metric
from probes.statistics.partition import FEWEST
from probes.statistics.sums import sparse_matrix

if TYPE_CHECKING:
    from scipy.sparse import csr_array


RESAMPLES = 2000
"""Resamples in a block. Intervals use the first block."""

MOST = 20
"""Maximum number of blocks that a test draws."""

LEVEL = 0.95

_SEED = 0

_DENSE = 0.1
"""A dense product is faster than a sparse one from this share of nonzero entries."""

_ROWS = 128
"""Resamples per dense product; their float64 counts fit the processor's cache."""

_COLUMNS = 1024
"""Columns of the sums that are resampled in one product."""

_AT_ONCE = 1 << 18
"""Sums that are computed at once, and fit the processor's cache."""

_EXACT = 1 << 24
"""Whole numbers up to this one are exact in float32."""

Draws = NDArray[np.float32]
"""Counts of each cluster in each resample. Shape (resamples, clusters)."""


@lru_cache(maxsize=4)
def resample(n_clusters: int, n: int = RESAMPLES, seed: int = _SEED) -> Draws:
    """Draw n resamples, as counts of each cluster. Shape (n, n_clusters).

    Results are cached, since a test split is resampled for every task, metric and model.
    """
    rng = np.random.default_rng(seed)
    even = np.full(n_clusters, 1 / n_clusters)
    draws = rng.multinomial(n_clusters, even, size=n).astype(np.float32)
    draws.flags.writeable = False
    return draws


def resample_blocks(n_clusters: int) -> Iterator[Draws]:
    """Yield up to `MOST` blocks of resamples for tests. The first is `resample(n_clusters)`."""
    yield resample(n_clusters)
    for seed in range(_SEED + 1, _SEED + MOST):
        yield block(n_clusters, seed)


@lru_cache(maxsize=4)
def block(n_clusters: int, seed: int) -> Draws:
    """Draw a block from the distribution of `resample`, six times as fast but with other draws."""
    rng, draws = np.random.default_rng(seed), np.empty((RESAMPLES, n_clusters), np.float32)
    for first in range(0, RESAMPLES, _ROWS):
        rows = draws[first : first + _ROWS]
        indices = rng.integers(n_clusters, size=rows.shape)
        indices += n_clusters * np.arange(len(rows))[:, None]
        rows[:] = np.bincount(indices.ravel(), minlength=rows.size).reshape(rows.shape)
    draws.flags.writeable = False
    return draws


def draws_of(gold: Gold, metric: Metric | None = None) -> Draws | None:
    """The resamples of a split; None if its examples lie in too few clusters for the metric."""
    too_few = metric is not None and metric.of_margins and metric.too_few(gold.class_sizes)
    if too_few or len(np.unique(gold.clusters)) < FEWEST:
        return None
    return resample(gold.n_clusters)


def replicates(metric: Metric, gold: Gold, predicted: Predictions, draws: Draws) -> Floats:
    """The metric of each row of `predicted` (cells, n) in each resample.

    Shape (cells, resamples).
    """
    rows = (cluster_sums(metric.parts(gold, row), gold) for row in predicted)
    return np.stack([resampled_values(metric, row, draws) for row in rows])


def resampled_values(metric: Metric, sums: csr_array, draws: Draws) -> Floats:
    """The metric of cluster sums (clusters, k) in every resample. Shape (resamples,)."""
    step = max(1, _AT_ONCE // max(1, sums.shape[1]))
    parts = (draws[first : first + step] for first in range(0, len(draws), step))
    return np.concatenate([metric.value(resampled_sums(sums, part)) for part in parts])


def cluster_sums(parts: csr_array, gold: Gold) -> csr_array:
    """Sum sentence contributions over each cluster of the split. Shape (clusters, k).

    Args:
        parts: shape (sentences, k).
    """
    return summed(parts, gold.clusters, gold.n_clusters)


def summed(parts: csr_array, cluster: Ints, n_clusters: int) -> csr_array:
    """The sum of the rows of each cluster. Shape (clusters, k).

    Args:
        parts: shape (n, k).
        cluster: cluster of each row. Shape (n,).
    """
    n = len(cluster)
    members = sparse_matrix((np.ones(n), (cluster, np.arange(n))), (n_clusters, n))
    return sparse_matrix(members @ sparse_matrix(parts).astype(np.float64))


def resampled_sums(sums: csr_array, draws: Draws) -> Floats:
    """Sum cluster contributions (clusters, k) over every resample. Shape (resamples, k)."""
    if _is_sparse(sums):
        totals: Floats = (sums.T @ draws.T).T
        return totals
    dense = sums.toarray()
    blocks = (draws[first : first + _ROWS] for first in range(0, len(draws), _ROWS))
    return np.concatenate([block.astype(np.float64) @ dense for block in blocks])


def all_resampled_sums(all_sums: Sequence[csr_array], draws: Draws) -> Iterator[Floats]:
    """`resampled_sums` of each of several matrices of one shape, to the last bit.

    Counts, which mostly are what is summed, are exact whatever the order of additions. So they need
    neither a product for each matrix nor float64.
    """
    n_clusters, width = all_sums[0].shape
    step = max(1, _COLUMNS // max(1, width))
    for several in (all_sums[i : i + step] for i in range(0, len(all_sums), step)):
        values = np.concatenate([sums.data for sums in several])
        greatest = n_clusters * values.max(initial=0)
        if values.min(initial=0) < 0 or greatest >= _EXACT or (values % 1).any():
            yield from (resampled_sums(sums, draws) for sums in several)
            continue
        joined = np.concatenate([sums.toarray() for sums in several], axis=1, dtype=np.float32)
        totals = draws @ joined
        for i, sums in enumerate(several):
            # The layout decides in which order a metric adds columns up.
            order: Literal["C", "F"] = "F" if _is_sparse(sums) else "C"
            yield totals[:, i * width : (i + 1) * width].astype(np.float64, order=order)


def _is_sparse(sums: csr_array) -> bool:
    return bool(sums.nnz < _DENSE * math.prod(sums.shape))


def influence(metric: Metric, sums: csr_array) -> Floats:
    """Derivative of a metric with respect to the weight of each cluster. Shape (clusters,).

    The empirical influence of the infinitesimal jackknife (Efron & Tibshirani 1993, section 21.3).
    If cluster c occurs w_c times in a resample, the metric changes by about
    Σ (w_c − 1) · influence_c.

    Args:
        sums: result of `cluster_sums`.
    """
    # A central difference has an error of order h²; a much smaller h loses digits to rounding.
    value, total, h = metric.smooth or metric.value, sums.sum(0), 1e-3
    step = max(1, _AT_ONCE // max(1, sums.shape[1]))
    parts = (h * sums[first : first + step].toarray() for first in range(0, sums.shape[0], step))
    return np.concatenate([(value(total + x) - value(total - x)) / (2 * h) for x in parts])


def interval(values: Floats, limits: tuple[float, float] = (-math.inf, math.inf)) -> Floats:
    """Percentile interval over the last axis. Shape (…, 2).

    NaN values are ignored. If all values are NaN, so is the interval.

    Args:
        limits: lowest and highest possible value. Normal or t noise in `values` may go beyond.
    """
    tail = (1 - LEVEL) / 2
    ends = np.full((*values.shape[:-1], 2), np.nan)
    valid = ~np.isnan(values).all(-1)
    if valid.any():
        ends[valid] = np.moveaxis(np.nanquantile(values[valid], [tail, 1 - tail], axis=-1), 0, -1)
    return ends.clip(*limits)


def bounds(pair: Floats) -> tuple[float, float] | None:
    """An interval (2,) as two numbers; None if it is undefined."""
    low, high = pair.tolist()
    return None if np.isnan(low) else (low, high)


def informative(pair: Interval) -> Interval:
    """The interval, or None if its width is 0: the resamples never saw the other outcome."""
    return None if pair is None or pair[0] == pair[1] else pair


def missing_estimate(reason: str) -> Estimate:
    """An estimate without a value, and the reason."""
    return Estimate(value=None, interval=None, missing=reason)


def estimate_of(value: float, replicates: Floats | None, clusters: str) -> Estimate:
    """A number, with the percentile interval of its replicates.

    Args:
        replicates: the number in each resample, shape (resamples,); None for no interval.
        clusters: name of the resampled clusters, in the plural.
    """
    pair = None if replicates is None else bounds(interval(replicates))
    reason = f"fewer than {FEWEST} {clusters}" if replicates is None else "undefined in resamples"
    return Estimate(value=value, interval=pair, missing=None if pair else reason)


def weights(n_clusters: int) -> Floats | None:
    """Counts of each cluster (resamples, clusters) in float64; None for too few clusters."""
    return None if n_clusters < FEWEST else resample(n_clusters).astype(np.float64)


def means(values: Floats, cluster: Ints, n_clusters: int, clusters: str) -> list[Estimate]:
    """The mean of each column, with its interval over clusters of rows.

    Args:
        values: shape (n, k).
        cluster: cluster of each row. Shape (n,).
        clusters: name of the clusters, in the plural.
    """
    if not len(values):
        return [missing_estimate("nothing to average")] * values.shape[1]
    sums = np.stack([np.bincount(cluster, column, n_clusters) for column in values.T], axis=1)
    counts = np.bincount(cluster, minlength=n_clusters)
    replicates: list[Floats | None] = [None] * values.shape[1]
    if (draws := weights(n_clusters)) is not None:
        rows = draws @ counts
        totals = np.full((len(draws), values.shape[1]), np.nan)
        np.divide(draws @ sums, rows[:, None], out=totals, where=rows[:, None] > 0)
        replicates = list(totals.T)
    return [
        estimate_of(float(column.mean()), column_replicates, clusters)
        for column, column_replicates in zip(values.T, replicates, strict=True)
    ]
