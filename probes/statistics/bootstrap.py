"""Intervals and tests that resample test sentences.

Words of one sentence are not independent, so what is drawn with replacement are sentences
(Efron & Tibshirani 1993, ch. 6 and 13; Berg-Kirkpatrick et al. 2012 for the use in NLP). Every
cell of a split is scored on the same resamples, so that differences are paired.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from probes.common.arrays import Floats
from probes.statistics.gold import Gold, Predictions
from probes.statistics.metrics import Metric

if TYPE_CHECKING:
    from scipy.sparse import csr_array

RESAMPLES = 2000

LEVEL = 0.95

MIN_SENTENCES = 20
"""With fewer test sentences resampling says too little, and nothing is claimed."""

_SEED = 0

_DENSE = 0.1
"""Share of parts that are not 0 from which on a plain product is faster than a sparse one."""

_ROWS = 128
"""Resamples in one plain product: counts are widened for it in the processor's cache."""


@lru_cache(maxsize=1)
def resample(n_sentences: int, n: int = RESAMPLES, seed: int = _SEED) -> NDArray[np.float32]:
    """How often each sentence is drawn in each resample of as many. Shape (n, n_sentences).

    The last one is kept, since a test set is resampled for every metric, measure and model.
    """
    rng = np.random.default_rng(seed)
    even = np.full(n_sentences, 1 / n_sentences)
    draws = rng.multinomial(n_sentences, even, size=n).astype(np.float32)
    draws.flags.writeable = False
    return draws


def replicates(
    metric: Metric, gold: Gold, predicted: Predictions, draws: NDArray[np.float32]
) -> Floats:
    """The metric of every row of `predicted` (cells, n) in every resample. Shape (cells, n)."""
    return np.stack(
        [metric.value(gold, _sums(metric.parts(gold, row), draws)) for row in predicted]
    )


def _sums(parts: csr_array, draws: NDArray[np.float32]) -> Floats:
    """Parts (sentences, k) summed over the sentences of every resample. Shape (n, k)."""
    from scipy.sparse import csr_array  # here, as in probes.statistics.metrics

    parts = csr_array(parts, dtype=np.float64)
    if parts.nnz < _DENSE * math.prod(parts.shape):
        sums: Floats = (parts.T @ draws.T).T
        return sums
    dense = parts.toarray()
    blocks = (draws[first : first + _ROWS] for first in range(0, len(draws), _ROWS))
    return np.concatenate([block.astype(np.float64) @ dense for block in blocks])


def interval(values: Floats, level: float = LEVEL) -> Floats:
    """Percentile interval over the last axis. Shape (…, 2); resamples without a value are left out.

    NaN where no resample has a value.
    """
    tail = (1 - level) / 2
    bounds = np.full((*values.shape[:-1], 2), np.nan)
    known = ~np.isnan(values).all(-1)
    if known.any():
        bounds[known] = np.moveaxis(np.nanquantile(values[known], [tail, 1 - tail], axis=-1), 0, -1)
    return bounds


def bounds(pair: Floats) -> tuple[float, float] | None:
    """One interval as two numbers; None where it is undefined."""
    low, high = pair.tolist()
    return None if np.isnan(low) else (low, high)
