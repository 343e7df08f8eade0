"""Features of one layer joined with those of others."""

from __future__ import annotations

import torch
from torch import Tensor

from probes.training.features import Features


class Concatenated(Features):
    """The first layer of other features, concatenated with each of the layers after it.

    Args:
        layers: of 1 + L layers, each standardised by itself. Shape (1 + L, N, H).
    """

    def __init__(self, layers: Features) -> None:
        self._layers, self.device = layers, layers.device

    @property
    def shape(self) -> tuple[int, int, int]:
        """L pairs of layers, N examples, 2 H features."""
        n_layers, n_examples, n_features = self._layers.shape
        return n_layers - 1, n_examples, 2 * n_features

    def block(self, part: slice) -> Tensor:
        """See `Features`; the layers are pairs here."""
        x = self._layers.block(part)
        return torch.cat([x[:1].expand_as(x[1:]), x[1:]], 2)
