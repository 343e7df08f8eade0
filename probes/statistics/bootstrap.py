"""Bootstrap intervals by resampling test sentences.

The words of a sentence are not independent, so whole sentences are drawn with replacement
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
"""With fewer test sentences, resampling is too unreliable for intervals and tests."""

_SEED = 0

_DENSE = 0.1
"""Share of nonzero contributions from which on a dense product is faster than a sparse one."""

_ROWS = 128
"""Resamples per dense product: their counts become float64 within the processor's cache."""


@lru_cache(maxsize=1)
def resample(n_sentences: int, n: int = RESAMPLES, seed: int = _SEED) -> NDArray[np.float32]:
    """How often each sentence is drawn in each resample. Shape (n, n_sentences).

    The last result is cached, since a test set is resampled for every metric and model.
    """
    rng = np.random.default_rng(seed)
    even = np.full(n_sentences, 1 / n_sentences)
    draws = rng.multinomial(n_sentences, even, size=n).astype(np.float32)
    draws.flags.writeable = False
    return draws


def replicates(
    metric: Metric, gold: Gold, predicted: Predictions, draws: NDArray[np.float32]
) -> Floats:
    """The metric of each row of `predicted` (cells, n) in each resample.

    Shape (cells, resamples).
    """
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
    """Percentile interval over the last axis. Shape (…, 2).

    NaN values are left out; the interval is NaN if all values are.
    """
    tail = (1 - level) / 2
    bounds = np.full((*values.shape[:-1], 2), np.nan)
    known = ~np.isnan(values).all(-1)
    if known.any():
        bounds[known] = np.moveaxis(np.nanquantile(values[known], [tail, 1 - tail], axis=-1), 0, -1)
    return bounds


def bounds(pair: Floats) -> tuple[float, float] | None:
    """An interval (2,) as two numbers; None if it is undefined."""
    low, high = pair.tolist()
    return None if np.isnan(low) else (low, high)
