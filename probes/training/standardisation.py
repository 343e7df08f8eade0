"""From stored vectors to standardised features, and how the ones follow from the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from probes.common.arrays import Ints
from probes.extraction.vectors import Vectors
from probes.training.batches import READERS, blocks
from probes.training.features import Features
from probes.training.streamed import Mapped, Streamed, standard_scale


class Standardisation(NamedTuple):
    """Features of L layers, which are computed from the mean vectors x of each example's spans.

    Those of one span after the other make up the H values of x; features are (x − mean) · scale.
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


def standardise(
    vectors: Vectors,
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
        mapped = list(map(Mapped, stored))
        resolution = float(np.finfo(stored[0].dtype).eps) / 2
        train = spans["train"]
        scales = list(pool.map(lambda x: standard_scale(x, train, resolution), mapped))
    mean, scale = (torch.stack(parts) for parts in zip(*scales, strict=True))
    features = {
        split: Streamed(mapped, of_split, mean, scale, device) for split, of_split in spans.items()
    }
    if project is None:
        return Standardisation(features, mean, scale)
    narrow = projected(features, project, len(train))
    return Standardisation(narrow, mean, scale, narrow["train"].matrix, narrow["train"].scale)


_SEED = 0


class Projected(Features):
    """Features with the vector of every span projected, and standardised again.

    Args:
        whole: features of `spans` concatenated vectors.

    Attributes:
        matrix: shape (hidden size, P).
        scale: factor for each projected feature. Shape (L, spans × P), or None for 1.
    """

    def __init__(
        self, whole: Features, matrix: Tensor, spans: int, scale: Tensor | None = None
    ) -> None:
        self._whole, self._spans, self.matrix, self.scale = whole, spans, matrix, scale
        self.device = whole.device

    @property
    def shape(self) -> tuple[int, int, int]:
        """See `Features`."""
        n_layers, n_examples, _ = self._whole.shape
        return n_layers, n_examples, self._spans * self.matrix.shape[1]

    def block(self, part: slice) -> Tensor:
        """See `Features`."""
        vectors = self._whole.block(part).unflatten(2, (self._spans, -1))
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
    square = torch.zeros(n_layers, spans * width, dtype=torch.float64)
    for part in blocks(n_examples):
        square += raw.block(part).square().sum(1).cpu()
    # The mean is still 0.
    scale = (square / n_examples).clamp_min(1e-30).rsqrt().float().to(train.device)
    return {split: Projected(whole, matrix, spans, scale) for split, whole in features.items()}
