"""Sums over rows, sparse and dense, and ratios of sums."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from probes.common.arrays import Floats, Ints

if TYPE_CHECKING:
    from scipy.sparse import csr_array


def ratio(numerator: NDArray[Any], denominator: NDArray[Any], otherwise: float = np.nan) -> Floats:
    """Quotients; `otherwise` where the denominator is 0."""
    out: Floats = np.full(np.broadcast(numerator, denominator).shape, otherwise)
    np.divide(numerator, denominator, out=out, where=denominator > 0)
    return out


def sparse_matrix(content: Any, shape: tuple[int, int] | None = None) -> csr_array:
    """A sparse matrix from a dense one, or from values and their indices; equal indices add up."""
    # This import is slow, and a run that computes nothing does not need it.
    from scipy.sparse import csr_array

    return csr_array(content, shape=shape)


def side_by_side(blocks: Sequence[csr_array]) -> csr_array:
    """Join sparse matrices with the same number of rows side by side."""
    from scipy.sparse import hstack

    return hstack(blocks, format="csr")


VectorRows = NDArray[np.floating[Any]]
"""One vector per row, mostly in float32. Shape (n, H)."""

_BLOCK = 4096
"""Rows processed at once."""


def row_slices(n: int) -> Iterator[slice]:
    """Yield blocks that cover n rows."""
    for start in range(0, n, _BLOCK):
        yield slice(start, min(start + _BLOCK, n))


def group_sums(rows: VectorRows, group: Ints, n_groups: int) -> Floats:
    """The sum of the rows of each group. Shape (groups, H)."""
    total = np.zeros((n_groups, rows.shape[1]))
    for block in row_slices(len(rows)):
        index = group[block], np.arange(block.stop - block.start)
        members = sparse_matrix((np.ones(len(index[0])), index), (n_groups, len(index[0])))
        total += members @ rows[block].astype(np.float64)
    return total


def centred(rows: VectorRows) -> VectorRows:
    """The rows minus their mean."""
    centred_rows: VectorRows = rows - rows.mean(0, dtype=np.float64).astype(rows.dtype)
    return centred_rows


def cross_gram(x: VectorRows, y: VectorRows) -> Floats:
    """Xᵀ Y of two matrices with the same rows. Shape (H of x, H of y).

    Products of blocks are in float32, their sum in float64.
    """
    total = np.zeros((x.shape[1], y.shape[1]))
    for block in row_slices(len(x)):
        total += x[block].T @ y[block]
    return total
