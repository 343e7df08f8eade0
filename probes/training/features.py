"""Standardised features of examples: in memory, as parts of other features, or in other axes.

Convex fits read features in their principal axes. An orthogonal change of axes changes neither the
L2 penalty nor the optimum, and Adam, which scales each coordinate by itself, then converges in a
fraction of the steps.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from probes.compute.memory import device_of_sums

CACHED_ROWS = 1 << 11
"""Rows that are processed at a time, so that they stay in the processor's cache."""

_GRAM_EXAMPLES = 1 << 14
"""The training examples, the first ones, whose features the principal axes are computed from."""


class Features(ABC):
    """Standardised features of one split's examples at L layers.

    Attributes:
        device: device of the blocks.
    """

    device: torch.device

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int, int]:
        """L layers, N examples, H features."""

    @abstractmethod
    def block(self, part: slice) -> Tensor:
        """Consecutive examples, float32. Shape (L, n, H)."""

    @property
    def held(self) -> Tensor | None:
        """All blocks (L, N, H) in memory or in a mapped file; None if they are computed anew."""
        return None

    def kept_block(self, part: slice) -> Tensor:
        """`block` for whoever reads all examples many times, as training steps do."""
        return self.block(part)

    def kept_rows(self, part: slice, rows: Tensor) -> Tensor:
        """`kept_block` for some examples of `part`.

        Args:
            rows: indices within `part`. Shape (m,).
        """
        return self.kept_block(part).index_select(1, rows)

    @cached_property
    def in_principal_axes(self) -> InAxes:
        """Features with each layer in the principal axes of its own features."""
        axes = principal_axes(self)
        return InAxes(self.rotated(axes), axes)

    @cached_property
    def in_common_axes(self) -> InAxes:
        """Features with all layers in the principal axes of their features together.

        A mix of rotated layers is then the rotated mix.
        """
        axes = principal_axes(self, common=True)
        return InAxes(self.rotated(axes), axes)

    def rotated(self, axes: Tensor) -> Features:
        """Features in other axes.

        Args:
            axes: orthonormal columns. Shape (L, H, H), or (1, H, H) for the same at every layer.
        """
        return Rotated(self, axes)


class InAxes(NamedTuple):
    """Features x U in the axes U."""

    features: Features
    axes: Tensor
    """Shape (L, H, H) or (1, H, H)."""

    def rotated(self, parameters: list[Tensor]) -> list[Tensor]:
        """The parameters for these features that give the outputs of the original ones.

        Args:
            parameters: weight (L, K, out, H) and bias of a convex family.
        """
        weight, *biases = parameters
        return [weight @ self.axes[:, None], *biases]

    def rotated_back(self, parameters: list[Tensor]) -> list[Tensor]:
        """The inverse of `rotated`."""
        weight, *biases = parameters
        return [weight @ self.axes.mT[:, None], *biases]


class Rotated(Features):
    """Other features in other axes, computed each time a block is read.

    Args: see `Features.rotated`.
    """

    def __init__(self, source: Features, axes: Tensor) -> None:
        self._source, self._axes, self.device = source, axes, source.device

    @property
    def shape(self) -> tuple[int, int, int]:
        """L layers, N examples, H features."""
        return self._source.shape

    def block(self, part: slice) -> Tensor:
        """Consecutive examples, float32. Shape (L, n, H)."""
        return self._source.block(part) @ self._axes


def principal_axes(features: Features, *, common: bool = False) -> Tensor:
    """The eigenvectors of XᵀX at each layer. Shape (L, H, H).

    Args:
        common: whether to take the eigenvectors of its sum over layers, (1, H, H).
    """
    n_layers, n_examples, n_features = features.shape
    n_read = min(n_examples, _GRAM_EXAMPLES)
    sum_device = device_of_sums(features.device)
    gram = torch.zeros(n_layers, n_features, n_features, dtype=torch.float64, device=sum_device)
    for first in range(0, n_read, CACHED_ROWS):
        block = features.block(slice(first, min(first + CACHED_ROWS, n_read)))
        # One by one: a layer's axes must not depend on which others are read with it.
        for total, x in zip(gram, block, strict=True):
            total += (x.T @ x).to(sum_device)
    if common:
        gram = gram.sum(0, keepdim=True)
    axes = torch.stack([torch.linalg.eigh(matrix).eigenvectors for matrix in gram.cpu()])
    return axes.float().to(features.device)


class InMemory(Features):
    """Features in the device's memory."""

    def __init__(self, values: Tensor) -> None:
        self.values, self.device = values, values.device

    @property
    def shape(self) -> tuple[int, int, int]:
        """L layers, N examples, H features."""
        n_layers, n_examples, n_features = self.values.shape
        return n_layers, n_examples, n_features

    def block(self, part: slice) -> Tensor:
        """Consecutive examples, float32. Shape (L, n, H)."""
        return self.values[:, part]

    @property
    def held(self) -> Tensor:
        """All blocks. Shape (L, N, H)."""
        return self.values

    def rotated(self, axes: Tensor) -> Features:
        """Features in other axes, in memory too."""
        return InMemory(self.values @ axes)


class Slice(Features):
    """Consecutive examples of other features."""

    def __init__(self, source: Features, part: slice) -> None:
        self._source, self.device = source, source.device
        self._start, self._stop, _ = part.indices(source.shape[1])

    @property
    def shape(self) -> tuple[int, int, int]:
        """L layers, N examples, H features."""
        n_layers, _, n_features = self._source.shape
        return n_layers, self._stop - self._start, n_features

    def block(self, part: slice) -> Tensor:
        """Consecutive examples, float32. Shape (L, n, H)."""
        return self._source.block(self._of_source(part))

    def kept_block(self, part: slice) -> Tensor:
        """`block` for repeated reading."""
        return self._source.kept_block(self._of_source(part))

    @cached_property
    def in_principal_axes(self) -> InAxes:
        """Features in the principal axes of the source."""
        features, axes = self._source.in_principal_axes
        return InAxes(Slice(features, slice(self._start, self._stop)), axes)

    def _of_source(self, part: slice) -> slice:
        start, stop, _ = part.indices(self._stop - self._start)
        return slice(self._start + start, self._start + stop)


class Subset(Features):
    """Some examples of other features.

    Args:
        index: their indices, ascending. Shape (n,).
    """

    def __init__(self, source: Features, index: Tensor) -> None:
        self._source, self.device = source, source.device
        # The start and end of a block are read on the CPU, so that nothing waits for the device.
        self._index_on_cpu, self._index = index.cpu(), index.to(self.device)

    @property
    def shape(self) -> tuple[int, int, int]:
        """L layers, N examples, H features."""
        n_layers, _, n_features = self._source.shape
        return n_layers, len(self._index), n_features

    def block(self, part: slice) -> Tensor:
        """Consecutive examples, float32. Shape (L, n, H)."""
        spread, rows = self._of_source(part)
        return self._source.block(spread).index_select(1, rows)

    def kept_block(self, part: slice) -> Tensor:
        """`block` for repeated reading."""
        return self._source.kept_rows(*self._of_source(part))

    def _of_source(self, part: slice) -> tuple[slice, Tensor]:
        """The part of the source that spans the examples of `part`, and their indices within it."""
        examples = self._index_on_cpu[part]
        first, last = int(examples[0]), int(examples[-1])
        return slice(first, last + 1), self._index[part] - first


class SideBySide(Features):
    """Features of one layer that consist of several others.

    Args:
        parts: features that are kept, of the same examples at one layer each.
    """

    def __init__(self, parts: Sequence[Features]) -> None:
        self._parts, self.device = parts, parts[0].device

    @property
    def shape(self) -> tuple[int, int, int]:
        """One layer, N examples, H features of all parts together."""
        return 1, self._parts[0].shape[1], sum(part.shape[2] for part in self._parts)

    def block(self, part: slice) -> Tensor:
        """Consecutive examples, float32. Shape (1, n, H)."""
        return torch.cat([x.kept_block(part) for x in self._parts], 2)


class Concatenated(Features):
    """The first layer of other features, concatenated with each of the layers after it.

    Args:
        layers: features of 1 + L layers, each standardised by itself. Shape (1 + L, N, H).
    """

    def __init__(self, layers: Features) -> None:
        self._layers, self.device = layers, layers.device

    @property
    def shape(self) -> tuple[int, int, int]:
        """L pairs of layers, N examples, 2 H features."""
        n_layers, n_examples, n_features = self._layers.shape
        return n_layers - 1, n_examples, 2 * n_features

    def block(self, part: slice) -> Tensor:
        """Consecutive examples, float32. Shape (pairs, n, 2 H)."""
        x = self._layers.block(part)
        return torch.cat([x[:1].expand_as(x[1:]), x[1:]], 2)
