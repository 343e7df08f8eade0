"""Subspaces: their bases, principal angles and overlap, two by two or all pairs of layers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import subspace_angles

from probes.common.arrays import Floats


def row_basis(rows: Floats) -> Floats:
    """An orthonormal basis of the space that rows span. Shape (k, H).

    Its dimension k is the number of singular values above max(n, H) · ε times the greatest one, as
    in `numpy.linalg.matrix_rank`, with the ε of float32, in which parameters are stored.

    Args:
        rows: shape (n, H).
    """
    _, values, vectors = np.linalg.svd(rows, full_matrices=False)
    least = values[0] * max(rows.shape) * np.finfo(np.float32).eps
    return np.asarray(vectors[values > least], dtype=np.float64)


def principal_angles(a: Floats, b: Floats) -> Floats:
    """The principal angles of two subspaces in degrees, ascending (Björck & Golub 1973).

    Args:
        a, b: orthonormal bases, (k, H) and (m, H).

    Returns:
        shape (min(k, m),).
    """
    if not len(a) or not len(b):
        return np.zeros(0)
    return np.asarray(np.degrees(subspace_angles(a.T, b.T))[::-1], dtype=np.float64)


def overlap(a: Floats, b: Floats) -> float | None:
    """The mean squared cosine of the principal angles: 1 if one subspace contains the other.

    Its expectation for subspaces that are drawn at random is max(k, m) / H.

    Args:
        a, b: see `principal_angles`.

    Returns:
        None if a subspace has no dimension.
    """
    k = min(len(a), len(b))
    return float(np.square(a @ b.T).sum() / k) if k else None


Bases = Sequence[Sequence[Floats]]
"""Of each of L layers orthonormal bases, each (k, H): the first one against which others stand."""


def mean_overlaps(bases: Bases, others: Sequence[int]) -> tuple[tuple[float | None, ...], ...]:
    """Overlaps of the first basis of one layer with others of another, averaged over both ways.

    Args:
        others: which bases of a layer the others are.

    Returns:
        (L, L), symmetric; None where a subspace has no dimension.
    """

    def mean(a: Sequence[Floats], b: Sequence[Floats]) -> float | None:
        values = [overlap(x[0], y[k]) for x, y in ((a, b), (b, a)) for k in others]
        known = [value for value in values if value is not None]
        return float(np.mean(known)) if len(known) == len(values) else None

    return tuple(tuple(mean(a, b) for b in bases) for a in bases)


def all_angles(bases: Bases) -> Floats:
    """Principal angles of the first basis of one layer and the second of another.

    Returns:
        degrees, ascending; (L, L, k), NaN where there are fewer than k.
    """
    most = max(len(basis) for each in bases for basis in each[:2])
    found = np.full((len(bases), len(bases), most), np.nan)
    for i, (first, *_) in enumerate(bases):
        for j, (_, second, *_) in enumerate(bases):
            angles = principal_angles(first, second)
            found[i, j, : len(angles)] = angles
    return found
