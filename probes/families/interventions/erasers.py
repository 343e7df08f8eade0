"""Erasers: affine maps after which no linear probe can decode some labels (LEACE).

An eraser is x ↦ x − (x − mean) · left · right, computed from second moments of the vectors and
labels of training examples.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from probes.common.arrays import Floats

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from probes.examples.examples import Examples
    from probes.measurements.context import TaskContext

NEGLIGIBLE = 1e-10
"""Correlations with labels, or shares of a variance, up to this size may be due to rounding."""

_ROWS = 1 << 13
"""Number of examples whose moments are summed at a time."""


@dataclass(frozen=True)
class Moments:
    """Second moments of vectors x and labels z, over examples with S spans each.

    Attributes:
        mean: mean of all vectors. Shape (H,).
        xx: covariance of vectors. Shape (H, H).
        xz: covariance of each span's vectors with labels. Shape (S, H, K).
        spread: root of the summed variance of labels.
        n: number of vectors.
    """

    mean: Floats
    xx: Floats
    xz: Floats
    spread: float
    n: int

    @classmethod
    def of(cls, blocks: Iterable[tuple[Floats, Floats]]) -> Moments:
        """Sum moments in float64.

        Args:
            blocks: vectors (n, S, H) and labels (n, K) of some examples at a time; classes and
                label sets are columns of 0 and 1, numbers one column.
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
            for span, of_span in enumerate(x.swapaxes(0, 1)):
                xx += of_span.T @ of_span
                xz[span] += of_span.T @ z
        assert pivot is not None, "there are examples"
        mean_x, (mean_z, square_z) = sum_x / n, sum_z / n
        mean = mean_x.mean(0)
        xx = xx / (n * len(mean_x)) - np.outer(mean, mean)
        xz = xz / n - mean_x[:, :, None] * mean_z
        spread = np.sqrt(max((square_z - mean_z**2).sum(), 0.0))
        return cls(mean + pivot, xx, xz, float(spread), n * len(mean_x))

    @property
    def shrunk(self) -> Floats:
        """`xx`, shrunk towards its mean variance, more so if n is small (Bodnar et al. 2014).

        Otherwise an eraser fitted to few vectors divides by variances close to 0, and moves other
        vectors out of their range.
        """
        n_features, total = len(self.xx), np.trace(self.xx)
        uneven = np.sum(self.xx**2) - total**2 / n_features
        share = min(total**2 / self.n / uneven, 1.0) if uneven > 0 else 1.0
        covariance: Floats = (1 - share) * self.xx + share * total / n_features * np.eye(n_features)
        return covariance


class Eraser(NamedTuple):
    """The map x ↦ x − (x − mean) · left · right.

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
        """Number of erased dimensions."""
        return len(self.right)

    def __call__(self, x: Floats) -> Floats:
        """Erase from vectors of shape (n, H)."""
        vectors: Floats = x - (x - self.mean) @ self.left @ self.right
        return vectors

    def change(self, moments: Moments) -> float:
        """Mean squared change of vectors with covariance `Moments.shrunk`, relative to variance."""
        inner = self.left.T @ moments.shrunk @ self.left
        changed, total = np.trace(self.right.T @ inner @ self.right), np.trace(moments.xx)
        return float(changed / total) if total else 0.0


def leace(moments: Moments) -> Eraser:
    """Smallest change after which vectors and labels do not covary (Belrose et al. 2023, eq. 1).

    The rank is at most the number of classes minus one, per span.
    """
    values, axes = np.linalg.eigh(moments.shrunk)
    is_nonzero = values > values[-1] * len(values) * np.finfo(np.float64).eps
    roots, axes = np.sqrt(values[is_nonzero]), axes[:, is_nonzero]
    whitened = (axes / roots).T @ np.concatenate(list(moments.xz), axis=1)  # spans side by side
    directions, strengths, _ = np.linalg.svd(whitened, full_matrices=False)
    basis = directions[:, strengths > moments.spread * NEGLIGIBLE]
    return Eraser(moments.mean, axes / roots @ basis, basis.T @ (axes * roots).T)


def moments_of_layer(context: TaskContext, layer: int, targets: Sequence[NDArray[Any]]) -> Moments:
    """Moments of all training examples at one layer.

    Args:
        targets: several sets of labels in the form of `Examples.targets`; their columns are put
            side by side.
    """
    import torch

    from probes.training.standardisation import SpanRows, gather

    stored = context.vectors.of(context.task.position)
    vectors = stored.layer(layer)
    examples, n = context.examples, len(targets[0])
    spans = examples.rows("train", context.view, stored)

    def blocks() -> Iterator[tuple[Floats, Floats]]:
        for first in range(0, n, _ROWS):
            part = slice(first, min(first + _ROWS, n))
            out = torch.empty(part.stop - first, len(spans) * vectors.shape[1])
            gather(vectors, [SpanRows.of(span[part]) for span in spans], out)
            labels = [_as_columns(examples, x[part]) for x in targets]
            yield out.numpy().reshape(len(out), len(spans), -1), np.concatenate(labels, axis=1)

    return Moments.of(blocks())


def _as_columns(examples: Examples, targets: NDArray[Any]) -> Floats:
    """Labels as numbers: a column for each class or label, or the number itself. Shape (n, K).

    Args:
        targets: in the form of `Examples.targets`.
    """
    if examples.members is not None:
        return examples.members[targets, : len(examples.classes)].astype(np.float64)
    if not examples.classes:
        return targets[:, None].astype(np.float64)
    columns: Floats = np.eye(len(examples.classes))[targets]
    return columns
