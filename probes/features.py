"""Vectors of a task's spans, gathered from the store and standardised."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from probes.alignment import Ints

_BLOCK_ROWS = 1 << 16
_SUM_ROWS = 1 << 12


def gather(vectors: NDArray[np.floating[Any]], spans: list[Ints], out: Tensor) -> None:
    """Features of examples at one layer: the mean of each span, spans side by side.

    Args:
        vectors: the layer, mapped. Shape (rows, H).
        spans: first and end row of each example's span, once per span. Each (n, 2).
        out: where the features go, float32. Shape (n, H × spans).
    """
    hidden = vectors.shape[1]
    for index, span in enumerate(spans):
        columns = slice(index * hidden, (index + 1) * hidden)
        lengths = span[:, 1] - span[:, 0]
        last = np.searchsorted(
            np.cumsum(lengths), np.arange(_BLOCK_ROWS, lengths.sum(), _BLOCK_ROWS)
        )
        for part in np.split(np.arange(len(span)), np.unique(last)):
            if len(part):
                out[part[0] : part[-1] + 1, columns] = _means(vectors, span[part], lengths[part])


def _means(vectors: NDArray[np.floating[Any]], span: Ints, lengths: Ints) -> Tensor:
    """The mean of each span of rows. Shape (n, H)."""
    if (lengths == 1).all():
        return torch.from_numpy(vectors[span[:, 0]]).float()
    offsets = np.cumsum(lengths) - lengths
    rows = np.repeat(span[:, 0] - offsets, lengths) + np.arange(lengths.sum())
    values = torch.from_numpy(vectors[rows]).float()
    bags = torch.nn.functional.embedding_bag(
        torch.arange(len(rows)), values, torch.from_numpy(offsets), mode="mean"
    )
    return bags


def standardise(features: Tensor, others: list[Tensor], resolution: float) -> None:
    """Give every feature of `features` mean 0 and variance 1, and treat `others` alike, in place.

    A feature that is constant in `features` becomes 0 everywhere, in `others` too. Constant
    is what varies by less than the storage format resolves: the last bit of a stored value
    depends on the batch it was computed in, and must not be blown up to variance 1.

    Args:
        resolution: half the machine epsilon of the storage format.
    """
    mean = _column_means(features, lambda block: block)
    for tensor in (features, *others):
        tensor.sub_(mean.float())
    deviation = _column_means(features, torch.square).sqrt()
    constant = deviation <= resolution * mean.abs()
    scale = torch.where(constant, 0.0, 1 / deviation.clamp_min(1e-30)).float()
    for tensor in (features, *others):
        tensor.mul_(scale)


def _column_means(features: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
    """Mean of `function` over examples, per feature, in float64.

    Blocks are summed in float32 by a matrix product, which is many times faster than a sum
    over the first dimension.
    """
    total = torch.zeros(features.shape[1], dtype=torch.float64)
    for block in features.split(_SUM_ROWS):
        total += (torch.ones(1, len(block)) @ function(block)).squeeze(0)
    return total / len(features)
