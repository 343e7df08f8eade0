"""Minimum spanning trees of many small complete graphs at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from probes.common.arrays import Ints
from probes.data.sentence import ROOT
from probes.records.charts import LEFT_OUT


def spanning_trees(distances: NDArray[np.floating[Any]], kept: NDArray[np.bool_]) -> Ints:
    """Minimum spanning trees of complete graphs, by Prim's algorithm; ties go to earlier words.

    Args:
        distances: shape (t, n, n).
        kept: which words a tree spans. Shape (t, n).

    Returns:
        the neighbour by which each word was reached; `ROOT` for a tree's first word, `LEFT_OUT` for
        words that are not kept. Shape (t, n).
    """
    n_trees, n = kept.shape
    every = np.arange(n_trees)
    heads = np.full((n_trees, n), LEFT_OUT)
    waiting = kept.copy()
    cost, via = np.where(kept, 0.0, np.inf), np.full((n_trees, n), ROOT)
    for _ in range(n):
        new = np.where(waiting, cost, np.inf).argmin(1)
        grown = waiting[every, new]  # not in trees that have all of their words
        heads[every[grown], new[grown]] = via[every[grown], new[grown]]
        waiting[every, new] = False
        near = distances[every, new]
        closer = (near < cost) | (via == ROOT)
        cost, via = np.where(closer, near, cost), np.where(closer, new[:, None], via)
    return heads
