"""Contributions of sentences to a metric, and values of their sums."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from probes.common.arrays import Floats

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from probes.statistics.gold import Gold


def ratio(numerator: NDArray[Any], denominator: NDArray[Any], otherwise: float = np.nan) -> Floats:
    """Quotients; `otherwise` where the denominator is 0."""
    out: Floats = np.full(np.broadcast(numerator, denominator).shape, otherwise)
    np.divide(numerator, denominator, out=out, where=denominator > 0)
    return out


def sparse(content: Any, shape: tuple[int, int] | None = None) -> csr_array:
    """A sparse matrix of a dense one, or of values and places, which add up."""
    # Imported only here: a run that computes nothing has no use for it.
    from scipy.sparse import csr_array

    return csr_array(content, shape=shape)


def mean_parts(gold: Gold, values: Floats) -> csr_array:
    """Parts of a mean over examples, `values` (n,): their sum and their number."""
    sums = np.add.reduceat(values, gold.bounds[:-1])
    return sparse(np.stack([sums, np.diff(gold.bounds)], axis=1))


def mean_value(gold: Gold, sums: Floats) -> Floats:
    """The value of a mean whose parts are `mean_parts`."""
    return ratio(sums[..., 0], sums[..., 1])
