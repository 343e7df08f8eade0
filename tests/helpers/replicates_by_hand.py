"""Resampled scores of a test set whose clusters are drawn for a test."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from probes.statistics.metrics import metrics
from probes.statistics.replicates import Replicates


def of_means(scores, error, training=0.0, *, seed=0, n_clusters=100):
    """Replicates of scores that are means over clusters, which are drawn for each cell by itself.

    Args:
        scores: shape (cells,).
        error: standard error of each score, by clusters that are drawn.
        training: standard deviation over trainings.
    """
    rng, scores = np.random.default_rng(seed), np.array(scores, dtype=float)
    parts = rng.standard_normal((len(scores), n_clusters))
    parts -= parts.mean(1, keepdims=True)
    parts *= error * np.sqrt(n_clusters) / parts.std(1, ddof=1, keepdims=True)
    ones = np.ones(n_clusters)
    sums = [csr_array(np.stack([each, ones], axis=1)) for each in parts + scores[:, None]]
    return Replicates(
        scores, metrics.get("accuracy"), sums, range(len(scores)), str(seed), training, 10**6
    )
