"""Standardised features, computed from stored vectors when they are read.

Memory grows with the number of spans only: the vectors stay in mapped files.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import embedding_bag

from probes.common.arrays import Ints
from probes.compute.memory import device_of_sums, to_device
from probes.extraction.reading.vectors import Sharded, StoredVectors
from probes.records.parameters import Parameters, of_layer
from probes.training.batches import READERS, evaluation_slices
from probes.training.features import CACHED_ROWS, Features

_CPU = torch.device("cpu")


class Standardisation(NamedTuple):
    """Features of L layers, which are computed from the mean vectors x of each example's spans.

    The H values of x are those of one span after another; features are (x − mean) · scale.
    With a projection P of each span's values, they are ((x − mean) · scale) P · projected_scale.

    Attributes:
        features: by split.
        mean, scale: each (L, H).
        projection: shape (H / spans, P); None for no projection.
        projected_scale: shape (L, spans × P); None for no projection.
    """

    features: Mapping[str, Features]
    mean: Tensor
    scale: Tensor
    projection: Tensor | None = None
    projected_scale: Tensor | None = None

    @property
    def last_scale(self) -> Tensor:
        """The factor by which features were multiplied last. Shape (L, features)."""
        return self.scale if self.projected_scale is None else self.projected_scale


def standardise(
    vectors: StoredVectors,
    layers: Sequence[int],
    spans: Mapping[str, Sequence[Ints]],
    project: int | None,
    device: torch.device,
) -> Standardisation:
    """Standardise features with mean and deviation of train.

    Args:
        spans: by split; first and end row of each example's span, once per span. Each (n, 2).
        project: dimensions to project each span's vector to; None for no projection.
    """
    with ThreadPoolExecutor(READERS) as pool:
        stored = list(pool.map(vectors.layer, layers))
        resolution = float(np.finfo(stored[0].dtype).eps) / 2
        train = spans["train"]
        scales = list(pool.map(lambda x: standard_scale(x, train, resolution, device), stored))
    mean, scale = (torch.stack(parts) for parts in zip(*scales, strict=True))
    features = {
        split: Streamed(stored, of_split, mean, scale, device) for split, of_split in spans.items()
    }
    if project is None:
        return Standardisation(features, mean, scale)
    narrow = projected(features, project, len(train))
    return Standardisation(narrow, mean, scale, narrow["train"].matrix, narrow["train"].scale)


def restored_features(
    vectors: StoredVectors,
    layer: int,
    spans: Sequence[Ints],
    parameters: Parameters,
    device: torch.device,
) -> Features:
    """Features of one layer, standardised and projected as stored parameters say.

    Args:
        vectors: of any corpus.
        spans: first and end row of each example's span, once per span. Each (n, 2).
        parameters: see `probes.records.parameters`.
    """

    def tensor(name: str) -> Tensor:
        return torch.from_numpy(parameters[of_layer(layer, name)])[None].to(device)

    features = Streamed([vectors.layer(layer)], spans, tensor("mean"), tensor("scale"), device)
    if "projection" not in parameters:
        return features
    matrix = torch.from_numpy(parameters["projection"]).to(device)
    return Projected(features, matrix, len(spans), tensor("projected-scale"))


_SEED = 0
"""All layers and runs are projected by the same matrix, so that their scores can be compared."""


class Projected(Features):
    """Features with the vector of every span projected, and standardised again.

    Args:
        source: features of `spans` concatenated vectors.

    Attributes:
        matrix: shape (hidden size, P).
        scale: factor for each projected feature. Shape (L, spans × P), or None for 1.
    """

    def __init__(
        self, source: Features, matrix: Tensor, spans: int, scale: Tensor | None = None
    ) -> None:
        self._source, self._spans, self.matrix, self.scale = source, spans, matrix, scale
        self.device = source.device

    @property
    def shape(self) -> tuple[int, int, int]:
        """L layers, N examples, H features."""
        n_layers, n_examples, _ = self._source.shape
        return n_layers, n_examples, self._spans * self.matrix.shape[1]

    def block(self, part: slice) -> Tensor:
        """Consecutive examples, float32. Shape (L, n, H)."""
        vectors = self._source.block(part).unflatten(2, (self._spans, -1))
        values: Tensor = (vectors @ self.matrix).flatten(2)
        return values if self.scale is None else values * self.scale[:, None]


def projected(features: Mapping[str, Features], width: int, spans: int) -> dict[str, Projected]:
    """Features by split, the vector of every span projected to `width` dimensions.

    Args:
        features: standardised; the scale is that of "train".
        spans: number of concatenated vectors of an example.
    """
    train = features["train"]
    n_layers, n_examples, n_features = train.shape
    generator = torch.Generator().manual_seed(_SEED)
    matrix = torch.randn(n_features // spans, width, generator=generator).to(train.device)
    raw = Projected(train, matrix, spans)
    sum_device = device_of_sums(train.device)
    square = torch.zeros(n_layers, spans * width, dtype=torch.float64, device=sum_device)
    for part in evaluation_slices(n_examples):
        square += raw.block(part).square().sum(1).to(sum_device)
    # The mean is still 0: a projection is linear.
    scale = (square / n_examples).clamp_min(1e-30).rsqrt().float().to(train.device)
    return {split: Projected(source, matrix, spans, scale) for split, source in features.items()}


class Streamed(Features):
    """Features computed from mapped vectors each time a block is read.

    Args:
        layers: the vectors of each layer. Each (rows, hidden size).
        spans: first and end row of each example's span, once per span. Each (N, 2).
        mean, scale: subtracted from each feature, which is then multiplied. Each (L, H).
    """

    def __init__(
        self,
        layers: Sequence[LayerVectors],
        spans: Sequence[Ints],
        mean: Tensor,
        scale: Tensor,
        device: torch.device,
    ) -> None:
        self._layers, self._spans, self.device = layers, spans, device
        self._mean, self._scale = to_device(mean, device), to_device(scale, device)

    @property
    def shape(self) -> tuple[int, int, int]:
        """L layers, N examples, H features."""
        return len(self._layers), len(self._spans[0]), self._mean.shape[1]

    def block(self, part: slice) -> Tensor:
        """Consecutive examples, float32. Shape (L, n, H)."""
        n_layers, n_examples, n_features = self.shape
        start, stop, _ = part.indices(n_examples)
        out = torch.empty(n_layers, stop - start, n_features, device=self.device)
        rows = torch.empty(min(stop - start, CACHED_ROWS), n_features, device=self.device)
        for first in range(start, stop, CACHED_ROWS):
            last = min(first + CACHED_ROWS, stop)
            buffer, target = rows[: last - first], out[:, first - start : last - start]
            span_rows = [SpanRows.of(span[first:last]) for span in self._spans]
            for layer, vectors in enumerate(self._layers):
                gather(vectors, span_rows, buffer)
                target[layer] = buffer.sub_(self._mean[layer]).mul_(self._scale[layer])
        return out


def mapped_tensor(array: NDArray[Any]) -> Tensor:
    """A tensor over a read-only mapped array, which must not be written to."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given NumPy array is not writable")
        return torch.from_numpy(array)


LayerVectors = Tensor | Sharded
"""Vectors, of which some rows at a time are read."""


@dataclass(frozen=True)
class SpanRows:
    """The rows of some spans, the same for every layer.

    Attributes:
        rows: the rows of each span, span after span.
        offsets: where the rows of each span begin; None if every span is a single row.
    """

    rows: Tensor
    offsets: Tensor | None

    @classmethod
    def of(cls, span: Ints) -> SpanRows:
        """The rows of spans given by first and end row. Shape (n, 2)."""
        lengths = span[:, 1] - span[:, 0]
        if (lengths == 1).all():
            return cls(torch.from_numpy(np.ascontiguousarray(span[:, 0])), None)
        offsets = np.cumsum(lengths) - lengths
        rows = np.repeat(span[:, 0] - offsets, lengths) + np.arange(lengths.sum())
        return cls(torch.from_numpy(rows), torch.from_numpy(offsets))

    def means(self, vectors: LayerVectors, device: torch.device = _CPU) -> Tensor:
        """The mean of each span of `vectors` (rows, hidden size). Shape (n, hidden size).

        Args:
            device: where they are computed, from rows in the type in which they are stored.
        """
        if self.offsets is None:
            return to_device(_selected_rows(vectors, self.rows), device)
        # However long spans are, about as many rows are in memory at once as for single words.
        n_at_once = max(1, CACHED_ROWS * len(self.offsets) // len(self.rows))
        bounds = [*self.offsets[::n_at_once].tolist(), len(self.rows)]
        means = []
        for (first, last), offsets in zip(
            pairwise(bounds), self.offsets.split(n_at_once), strict=True
        ):
            values = to_device(_selected_rows(vectors, self.rows[first:last]), device).float()
            index, begins = torch.arange(last - first, device=device), offsets - first
            means.append(embedding_bag(index, values, to_device(begins, device), mode="mean"))
        return torch.cat(means)


def _selected_rows(vectors: LayerVectors, rows: Tensor) -> Tensor:
    if isinstance(vectors, Tensor):
        return vectors.index_select(0, rows)
    return torch.from_numpy(vectors[rows.numpy()])


def gather(vectors: LayerVectors, spans: Sequence[SpanRows], out: Tensor) -> None:
    """Features of examples at one layer: the mean vectors of their spans, concatenated.

    Args:
        vectors: shape (rows, hidden size).
        out: receives the features, float32, on the device that computes them. Shape (n, hidden size
            × spans).
    """
    hidden = vectors.shape[1]
    for index, span in enumerate(spans):
        out[:, index * hidden : (index + 1) * hidden] = span.means(vectors, out.device)


def standard_scale(
    vectors: LayerVectors, spans: Sequence[Ints], resolution: float, device: torch.device = _CPU
) -> tuple[Tensor, Tensor]:
    """Mean of each feature, and the factor that scales it to variance 1. Each (H,), on the CPU.

    The factor is 0 for a constant feature, one that varies by less than the storage format
    resolves. The last bit of a stored value depends on the batch it was computed in, and
    must not be scaled up to variance 1.

    Args:
        vectors: shape (rows, hidden size).
        spans: first and end row of each example's span, once per span. Each (n, 2).
        resolution: half the machine epsilon of the storage format.
        device: where sums over examples are computed.
    """
    n_examples, n_features = len(spans[0]), vectors.shape[1] * len(spans)
    total = torch.zeros(2, n_features, dtype=torch.float64, device=device_of_sums(device))
    pivot = torch.zeros(0)
    for first in range(0, n_examples, CACHED_ROWS):
        part = slice(first, min(first + CACHED_ROWS, n_examples))
        block = torch.empty(part.stop - part.start, n_features, device=device)
        gather(vectors, [SpanRows.of(span[part]) for span in spans], block)
        if not len(pivot):
            # Subtracting a value near the mean keeps sums of squares from losing precision.
            pivot = block.mean(0)
        block.sub_(pivot)
        # A matrix product is many times faster than a sum over the first dimension.
        ones = torch.ones(1, len(block), device=device)
        total += torch.cat([ones @ block, ones @ block.square_()]).to(total.device)
    shifted, square = total.cpu() / n_examples
    mean = pivot.cpu() + shifted
    deviation = (square - shifted**2).clamp_min(0).sqrt()
    constant = deviation <= resolution * mean.abs()
    scale = torch.where(constant, 0.0, 1 / deviation.clamp_min(1e-30))
    return mean.float(), scale.float()
