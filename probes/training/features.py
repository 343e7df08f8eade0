"""Standardised features of examples, in memory or as parts of other features."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor

from probes.compute.precision import rounding

CACHED_ROWS = 1 << 11
"""Rows that are processed at a time, so that they stay in the processor's cache."""


class Features(ABC):
    """Standardised features of one split's examples at L layers.

    Attributes:
        device: of the blocks.
    """

    device: torch.device

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int, int]:
        """L layers, N examples, H features."""

    @abstractmethod
    def block(self, part: slice) -> Tensor:
        """Consecutive examples, float32. Shape (L, n, H)."""

    def rounded(self, part: slice) -> Tensor:
        """The same, rounded as for a training step, in the dtype of its products."""
        read, multiplied = rounding(self.device)
        return self.block(part).to(read).to(multiplied)

    def rounded_rows(self, part: slice, rows: Tensor) -> Tensor:
        """`rounded` for some examples of `part`.

        Args:
            rows: indices within `part`. Shape (m,).
        """
        return self.rounded(part).index_select(1, rows)

    def of_layers(self, layers: Sequence[int]) -> Features:
        """Some layers, by index."""
        return OfLayers(self, layers)


class Held(Features):
    """Features in the device's memory."""

    def __init__(self, values: Tensor) -> None:
        self.values = values
        self.device = values.device

    @property
    def shape(self) -> tuple[int, int, int]:
        """See `Features`."""
        n_layers, n_examples, n_features = self.values.shape
        return n_layers, n_examples, n_features

    def block(self, part: slice) -> Tensor:
        """See `Features`."""
        return self.values[:, part]


def held(features: Features) -> Held:
    """Features copied to the device's memory, block by block."""
    values = torch.empty(features.shape, device=features.device)
    for first in range(0, features.shape[1], CACHED_ROWS):
        part = slice(first, first + CACHED_ROWS)
        values[:, part] = features.block(part)
    return Held(values)


class Part(Features):
    """Consecutive examples of other features."""

    def __init__(self, whole: Features, part: slice) -> None:
        self._whole = whole
        self._start, self._stop, _ = part.indices(whole.shape[1])
        self.device = whole.device

    @property
    def shape(self) -> tuple[int, int, int]:
        """See `Features`."""
        n_layers, _, n_features = self._whole.shape
        return n_layers, self._stop - self._start, n_features

    def block(self, part: slice) -> Tensor:
        """See `Features`."""
        return self._whole.block(self._of_whole(part))

    def rounded(self, part: slice) -> Tensor:
        """See `Features`."""
        return self._whole.rounded(self._of_whole(part))

    def of_layers(self, layers: Sequence[int]) -> Features:
        """See `Features`."""
        return Part(self._whole.of_layers(layers), slice(self._start, self._stop))

    def _of_whole(self, part: slice) -> slice:
        start, stop, _ = part.indices(self._stop - self._start)
        return slice(self._start + start, self._start + stop)


class Chosen(Features):
    """Some examples of other features.

    Args:
        index: their indices, ascending. Shape (n,).
    """

    def __init__(self, whole: Features, index: Tensor) -> None:
        self._whole, self.device = whole, whole.device
        # The start and end of a block are read on the CPU, so that nothing waits for the device.
        self._places, self._index = index.cpu(), index.to(self.device)

    @property
    def shape(self) -> tuple[int, int, int]:
        """See `Features`."""
        n_layers, _, n_features = self._whole.shape
        return n_layers, len(self._index), n_features

    def block(self, part: slice) -> Tensor:
        """See `Features`."""
        spread, rows = self._of_whole(part)
        return self._whole.block(spread).index_select(1, rows)

    def rounded(self, part: slice) -> Tensor:
        """See `Features`."""
        return self._whole.rounded_rows(*self._of_whole(part))

    def of_layers(self, layers: Sequence[int]) -> Features:
        """See `Features`."""
        return Chosen(self._whole.of_layers(layers), self._index)

    def _of_whole(self, part: slice) -> tuple[slice, Tensor]:
        """The part of the whole that spans the examples of `part`, and their indices within it."""
        places = self._places[part]
        first, last = int(places[0]), int(places[-1])
        return slice(first, last + 1), self._index[part] - first


class OfLayers(Features):
    """Some layers of other features, whose blocks are views, so that no other layer is read.

    Args:
        layers: their indices.
    """

    def __init__(self, whole: Features, layers: Sequence[int]) -> None:
        self._whole, self.device = whole, whole.device
        self._layers = torch.tensor(layers, device=whole.device)

    @property
    def shape(self) -> tuple[int, int, int]:
        """See `Features`."""
        return len(self._layers), *self._whole.shape[1:]

    def block(self, part: slice) -> Tensor:
        """See `Features`."""
        return self._whole.block(part).index_select(0, self._layers)
