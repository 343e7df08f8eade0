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
from probes.training.batches import READERS
from probes.training.features import Features
from probes.training.projection import projected
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
