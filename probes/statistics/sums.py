"""Sparse matrices of what sentences contribute to a metric, and ratios of their sums."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from probes.common.arrays import Floats

if TYPE_CHECKING:
    from scipy.sparse import csr_array


def ratio(numerator: NDArray[Any], denominator: NDArray[Any], otherwise: float = np.nan) -> Floats:
    """Quotients; `otherwise` where the denominator is 0."""
    out: Floats = np.full(np.broadcast(numerator, denominator).shape, otherwise)
    np.divide(numerator, denominator, out=out, where=denominator > 0)
    return out


def sparse(content: Any, shape: tuple[int, int] | None = None) -> csr_array:
    """A sparse matrix from a dense one, or from values and their places; equal places add up."""
    # Imported here, since it is slow and a run that computes nothing does not need it.
    from scipy.sparse import csr_array

    return csr_array(content, shape=shape)
