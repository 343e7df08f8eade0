"""Erasers: affine maps after which no linear probe finds some labels, and their controls.

An eraser is x ↦ x − (x − mean) · left · right. All are computed from second moments of vectors and
labels, which are summed over training examples.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from probes.common.arrays import Floats

_NEGLIGIBLE = 1e-10
"""A correlation with labels, or share of a variance, that rounding may leave of none."""

_INLP_LEFT = 0.01
"""INLP stops where a linear map explains no more than this share of what it did at first."""


@dataclass(frozen=True)
class Moments:
    """Of vectors x and labels z, over n examples of S spans each.

    Attributes:
        mean: of all vectors. Shape (H,).
        xx: their covariance. Shape (H, H).
        xz: covariance of each span's vectors with labels. Shape (S, H, K).
        spread: of labels, the root of their summed variance.
        n: how many vectors there are.
    """

    mean: Floats
    xx: Floats
    xz: Floats
    spread: float
    n: int

    @classmethod
    def of(cls, blocks: Iterable[tuple[Floats, Floats]]) -> Moments:
        """Summed in float64.

        Args:
            blocks: vectors (n, S, H) and labels (n, K) of some examples at a time: classes as
                columns of 0 and 1, label sets likewise, or a number.
        """
        n, pivot = 0, None
        for x, z in blocks:
            x, z = x.astype(np.float64), z.astype(np.float64)
            if pivot is None:  # a value near the mean, so that squares do not lose precision
                pivot = x.mean((0, 1))
                sum_x, sum_z = np.zeros(x.shape[1:]), np.zeros((2, z.shape[1]))
                xx = np.zeros((len(pivot), len(pivot)))
                xz = np.zeros((x.shape[1], len(pivot), z.shape[1]))
            x = x - pivot
            n += len(x)
            sum_x += x.sum(0)
            sum_z += np.stack([z.sum(0), (z**2).sum(0)])
            for span, own in enumerate(x.swapaxes(0, 1)):
                xx += own.T @ own
                xz[span] += own.T @ z
        assert pivot is not None, "there are examples"
        mean_x, (mean_z, square_z) = sum_x / n, sum_z / n
        mean = mean_x.mean(0)
        xx = xx / (n * len(mean_x)) - np.outer(mean, mean)
        xz = xz / n - mean_x[:, :, None] * mean_z
        spread = np.sqrt(max((square_z - mean_z**2).sum(), 0.0))
        return cls(mean + pivot, xx, xz, float(spread), n * len(mean_x))

    def with_labels(self, columns: slice) -> Moments:
        """Those of some columns of labels."""
        return replace(self, xz=self.xz[:, :, columns])

    @property
    def shrunk(self) -> Floats:
        """`xx`, drawn towards its mean variance as far as n is small (Bodnar et al. 2014).

        Without it, what is fitted to few vectors divides by variances that are next to none, and
        throws others out of their range.
        """
        n_features, total = len(self.xx), np.trace(self.xx)
        uneven = np.sum(self.xx**2) - total**2 / n_features
        share = min(total**2 / self.n / uneven, 1.0) if uneven > 0 else 1.0
        found: Floats = (1 - share) * self.xx + share * total / n_features * np.eye(n_features)
        return found

    @property
    def wide(self) -> Floats:
        """`xz`, that of one span beside that of the next. Shape (H, S × K)."""
        return np.concatenate(list(self.xz), axis=1)


class Eraser(NamedTuple):
    """See the module.

    Attributes:
        mean: shape (H,).
        left: shape (H, rank).
        right: shape (rank, H).
    """

    mean: Floats
    left: Floats
    right: Floats

    @property
    def rank(self) -> int:
        """How many dimensions are taken away."""
        return len(self.right)

    def __call__(self, x: Floats) -> Floats:
        """What is left of vectors. Shape (n, H)."""
        found: Floats = x - (x - self.mean) @ self.left @ self.right
        return found

    def change(self, moments: Moments) -> float:
        """By how much vectors are changed: the mean square, as a share of their variance.

        Of vectors like those of the moments, whose covariance is `Moments.shrunk`.
        """
        inner = self.left.T @ moments.shrunk @ self.left
        changed, total = np.trace(self.right.T @ inner @ self.right), np.trace(moments.xx)
        return float(changed / total) if total else 0.0


def leace(moments: Moments) -> Eraser:
    """The least change after which vectors and labels do not covary (Belrose et al. 2023, eq. 1).

    The rank is at most the number of classes less one; with several spans, that of each.
    """
    values, axes = np.linalg.eigh(moments.shrunk)
    kept = values > values[-1] * len(values) * np.finfo(np.float64).eps
    roots, axes = np.sqrt(values[kept]), axes[:, kept]
    whitened = (axes / roots).T @ moments.wide
    directions, strengths, _ = np.linalg.svd(whitened, full_matrices=False)
    found = directions[:, strengths > moments.spread * _NEGLIGIBLE]
    return Eraser(moments.mean, axes / roots @ found, found.T @ (axes * roots).T)


def inlp(moments: Moments) -> Eraser:
    """Iterative nullspace projection (Ravfogel et al. 2020) of least-squares classifiers.

    In each round the directions that a linear map from vectors to labels reads are projected away,
    until such a map explains next to nothing. Unlike theirs it is centred.
    """
    free = np.eye(len(moments.mean))  # an orthonormal basis of what is left
    taken = [free[:, :0]]
    enough = (moments.spread * _NEGLIGIBLE) ** 2
    while free.shape[1]:
        xz = free.T @ moments.wide
        weights = np.linalg.pinv(free.T @ moments.shrunk @ free, hermitian=True) @ xz
        explained = float(np.sum(weights * xz))
        if explained <= enough:
            break
        if len(taken) == 1:
            enough = max(enough, explained * _INLP_LEFT)
        axes, strengths, _ = np.linalg.svd(weights)
        rank = int((strengths > strengths[0] * _NEGLIGIBLE).sum())
        taken.append(free @ axes[:, :rank])
        free = free @ axes[:, rank:]
    basis = np.concatenate(taken, axis=1)
    return Eraser(moments.mean, basis, basis.T)


def random_subspace(moments: Moments, change: float, seed: int = 0) -> Eraser:
    """Directions at random, as many as it takes to change vectors as much.

    Features that hardly vary are left alone: probes scale them up, and whatever a direction brings
    into them.

    Args:
        change: see `Eraser.change`. The last direction is taken away in part, so that it is met.
    """
    variances = np.diag(moments.xx)
    (varying,) = np.nonzero(variances > variances.max() * _NEGLIGIBLE)
    n = len(varying)
    basis = np.zeros((len(variances), n))
    basis[varying] = np.linalg.qr(np.random.default_rng(seed).standard_normal((n, n)))[0]
    of_each = np.einsum("hr,hk,kr->r", basis, moments.shrunk, basis, optimize=True)
    taken = np.concatenate([[0.0], np.cumsum(of_each)])
    wanted = change * np.trace(moments.xx)
    rank = min(int(np.searchsorted(taken, wanted)), n)
    right = basis[:, :rank].T.copy()
    if rank:
        right[-1] *= np.sqrt(min((wanted - taken[rank - 1]) / of_each[rank - 1], 1.0))
    return Eraser(moments.mean, basis[:, :rank], right)
