"""Random projection of vectors to a given width, so that models of different widths compare.

A wider vector gives a linear probe more parameters. Projected to the same width at random
(Johnson & Lindenstrauss 1984), the vectors of all models give it the same number.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from probes.training.batches import blocks
from probes.training.features import Features

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
