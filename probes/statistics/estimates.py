"""Means with bootstrap intervals over documents, or over whatever else is averaged."""

from __future__ import annotations

import numpy as np

from probes.common.arrays import Floats, Ints
from probes.records.values import Estimate
from probes.statistics.bootstrap import bounds, interval, resample
from probes.statistics.partition import FEWEST


def unknown(why: str) -> Estimate:
    """A number that cannot be given."""
    return Estimate(value=None, interval=None, missing=why)


def estimate(value: float, replicates: Floats | None, what: str) -> Estimate:
    """A number, with the percentile interval of its replicates.

    Args:
        replicates: the number in each resample, shape (resamples,); None for no interval.
        what: is resampled, in the plural.
    """
    pair = None if replicates is None else bounds(interval(replicates))
    why = f"fewer than {FEWEST} {what}" if replicates is None else "undefined in resamples"
    return Estimate(value=value, interval=pair, missing=None if pair else why)


def weights(n_clusters: int) -> Floats | None:
    """How often each cluster is drawn, shape (resamples, clusters); None for too few clusters."""
    return None if n_clusters < FEWEST else resample(n_clusters).astype(np.float64)


def means(values: Floats, cluster: Ints, n_clusters: int, what: str) -> list[Estimate]:
    """The mean of each column, with its interval over clusters of rows.

    Args:
        values: shape (n, k).
        cluster: of each row. Shape (n,).
        what: clusters are, in the plural.
    """
    if not len(values):
        return [unknown("nothing to average")] * values.shape[1]
    sums = np.stack([np.bincount(cluster, column, n_clusters) for column in values.T], axis=1)
    counts = np.bincount(cluster, minlength=n_clusters)
    replicates: list[Floats | None] = [None] * values.shape[1]
    if (drawn := weights(n_clusters)) is not None:
        rows = drawn @ counts
        totals = np.full((len(drawn), values.shape[1]), np.nan)
        np.divide(drawn @ sums, rows[:, None], out=totals, where=rows[:, None] > 0)
        replicates = list(totals.T)
    return [
        estimate(float(column.mean()), each, what)
        for column, each in zip(values.T, replicates, strict=True)
    ]
