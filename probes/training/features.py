"""Vectors of a task's spans, read from the store block by block and standardised.

Nothing here grows with the corpus but the spans themselves: the vectors stay in the map.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import embedding_bag

from probes.common.arrays import Ints
from probes.compute.precision import rounding
from probes.compute.transfers import host_empty, to_device

_CACHED_ROWS = 1 << 11
"""Rows that are read, averaged and standardised while they are in the processor's cache."""


class Features(ABC):
    """Standardised features of one split's examples at L layers.

    Attributes:
        device: where blocks lie.
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
        """The same for the products of a training step, in the type in which it multiplies."""
        read, multiplied = rounding(self.device)
        return self.block(part).to(read).to(multiplied)

    def rounded_rows(self, part: slice, rows: Tensor) -> Tensor:
        """`rounded`, of some examples alone.

        Args:
            rows: which ones of `part`. Shape (m,).
        """
        return self.rounded(part).index_select(1, rows)

    def of_layers(self, layers: Sequence[int]) -> Features:
        """Some layers alone, by their place."""
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
    """All examples in the device's memory, brought there block by block."""
    values = torch.empty(features.shape, device=features.device)
    for first in range(0, features.shape[1], _CACHED_ROWS):
        part = slice(first, first + _CACHED_ROWS)
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
        index: which ones, ascending. Shape (n,).
    """

    def __init__(self, whole: Features, index: Tensor) -> None:
        self._whole, self.device = whole, whole.device
        # Where a block starts and ends is asked for on the CPU, so that no device is waited for.
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
        """Where the examples of `part` lie in the whole, and which ones there they are."""
        places = self._places[part]
        first, last = int(places[0]), int(places[-1])
        return slice(first, last + 1), self._index[part] - first


class OfLayers(Features):
    """Some layers of other features whose blocks are views, so that no other layer is read.

    Args:
        layers: which ones, by their place.
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


class Streamed(Features):
    """Features made anew from the mapped vectors each time a block is asked for.

    Args:
        layers: the vectors of each layer, mapped. Each (rows, hidden size).
        spans: first and end row of each example's span, once per span. Each (N, 2).
        mean, scale: what is taken off each feature, and what it is then multiplied by. (L, H).
    """

    def __init__(
        self,
        layers: Sequence[Tensor],
        spans: Sequence[Ints],
        mean: Tensor,
        scale: Tensor,
        device: torch.device,
    ) -> None:
        self._layers, self._spans, self._mean, self._scale = layers, spans, mean, scale
        self.device = device

    @property
    def shape(self) -> tuple[int, int, int]:
        """See `Features`."""
        return len(self._layers), len(self._spans[0]), self._mean.shape[1]

    def block(self, part: slice) -> Tensor:
        """See `Features`."""
        return self._made(part, torch.float32)

    def rounded(self, part: slice) -> Tensor:
        """See `Features`."""
        read, multiplied = rounding(self.device)
        return self._made(part, read).to(multiplied)

    def of_layers(self, layers: Sequence[int]) -> Features:
        """See `Features`."""
        places = list(layers)
        some = [self._layers[i] for i in places]
        return Streamed(some, self._spans, self._mean[places], self._scale[places], self.device)

    def _made(self, part: slice, dtype: torch.dtype) -> Tensor:
        n_layers, n_examples, n_features = self.shape
        start, stop, _ = part.indices(n_examples)
        out = host_empty(n_layers, stop - start, n_features, dtype=dtype, device=self.device)
        rows = torch.empty(min(stop - start, _CACHED_ROWS), n_features)
        for first in range(start, stop, _CACHED_ROWS):
            last = min(first + _CACHED_ROWS, stop)
            here, there = rows[: last - first], out[:, first - start : last - start]
            wanted = [SpanRows.of(span[first:last]) for span in self._spans]
            for layer, vectors in enumerate(self._layers):
                gather(vectors, wanted, here)
                there[layer] = here.sub_(self._mean[layer]).mul_(self._scale[layer])
        return to_device(out, self.device)


def mapped_tensor(vectors: NDArray[np.floating[Any]]) -> Tensor:
    """A tensor on a read-only map, which nothing here writes to."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given NumPy array is not writable")
        return torch.from_numpy(vectors)


@dataclass(frozen=True)
class SpanRows:
    """Which rows the means of some spans are taken over, whatever the layer.

    Attributes:
        rows: those of each span, span after span.
        offsets: where each span's begin; None if every span is a single row.
    """

    rows: Tensor
    offsets: Tensor | None

    @classmethod
    def of(cls, span: Ints) -> SpanRows:
        """Those of spans given by first and end row. Shape (n, 2)."""
        lengths = span[:, 1] - span[:, 0]
        if (lengths == 1).all():
            return cls(torch.from_numpy(np.ascontiguousarray(span[:, 0])), None)
        offsets = np.cumsum(lengths) - lengths
        rows = np.repeat(span[:, 0] - offsets, lengths) + np.arange(lengths.sum())
        return cls(torch.from_numpy(rows), torch.from_numpy(offsets))

    def means(self, vectors: Tensor) -> Tensor:
        """The mean of each span of `vectors` (rows, hidden size). Shape (n, hidden size)."""
        if self.offsets is None:
            return vectors.index_select(0, self.rows)
        # However long spans are, about as many rows lie in memory at once as of single words.
        n_at_once = max(1, _CACHED_ROWS * len(self.offsets) // len(self.rows))
        bounds = [*self.offsets[::n_at_once].tolist(), len(self.rows)]
        found = []
        for (first, last), offsets in zip(
            pairwise(bounds), self.offsets.split(n_at_once), strict=True
        ):
            values = vectors.index_select(0, self.rows[first:last]).float()
            each = torch.arange(last - first)
            found.append(embedding_bag(each, values, offsets - first, mode="mean"))
        return torch.cat(found)


def gather(vectors: Tensor, spans: Sequence[SpanRows], out: Tensor) -> None:
    """Features of examples at one layer: the mean of each span, spans side by side.

    Args:
        vectors: shape (rows, hidden size).
        out: where the features go, float32. Shape (n, hidden size × spans).
    """
    hidden = vectors.shape[1]
    for index, span in enumerate(spans):
        out[:, index * hidden : (index + 1) * hidden] = span.means(vectors)


def standard_scale(
    vectors: Tensor, spans: Sequence[Ints], resolution: float
) -> tuple[Tensor, Tensor]:
    """Mean of each feature, and the factor that then gives it variance 1. Each (H,).

    The factor is 0 for a feature that is constant: one that varies by less than the storage
    format resolves. The last bit of a stored value depends on the batch it was computed in, and
    must not be blown up to variance 1.

    Args:
        vectors: shape (rows, hidden size).
        spans: first and end row of each example's span, once per span. Each (n, 2).
        resolution: half the machine epsilon of the storage format.
    """
    n_examples, n_features = len(spans[0]), vectors.shape[1] * len(spans)
    total = torch.zeros(2, n_features, dtype=torch.float64)
    pivot = torch.zeros(0)
    for first in range(0, n_examples, _CACHED_ROWS):
        part = slice(first, min(first + _CACHED_ROWS, n_examples))
        block = torch.empty(part.stop - part.start, n_features)
        gather(vectors, [SpanRows.of(span[part]) for span in spans], block)
        if not len(pivot):
            # Sums of squares are taken about a value near the mean: none is lost to rounding.
            pivot = block.mean(0)
        block.sub_(pivot)
        # Blocks are summed by a matrix product, many times faster than over the first dimension.
        ones = torch.ones(1, len(block))
        total += torch.cat([ones @ block, ones @ block.square_()])
    shifted, square = total / n_examples
    mean = pivot + shifted
    deviation = (square - shifted**2).clamp_min(0).sqrt()
    constant = deviation <= resolution * mean.abs()
    scale = torch.where(constant, 0.0, 1 / deviation.clamp_min(1e-30))
    return mean.float(), scale.float()
