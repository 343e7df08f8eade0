"""What is kept of a model's forward passes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Protocol

import torch

from probes.compute.transfers import to_device
from probes.extraction.padding import PaddedWindows


class Collector(Protocol):
    """Keeps part of what a model computes.

    Attributes:
        model_arguments: arguments for the model's `forward`, e.g. ``output_hidden_states``.
    """

    model_arguments: ClassVar[dict[str, Any]]

    def start(self, texts: Sequence[int], n_words: int) -> None:
        """Begin a batch: the indices of its texts, and how many of their words are kept."""

    def add(self, windows: PaddedWindows, output: Any) -> None:
        """Take what is kept from one forward pass of the batch."""

    def finish(self) -> None:
        """Complete the batch."""


def layer_states(output: Any) -> list[torch.Tensor]:
    """The states of layers 0 to L, each of shape (windows, length, hidden size).

    Layer L is always `last_hidden_state`: some models list it in `hidden_states` without their
    final norm.
    """
    return [*output.hidden_states[:-1], output.last_hidden_state]


class WordVectors:
    """Collects the vectors of every layer, one per kept word.

    After each batch, `vectors` holds one float32 tensor (words, hidden size) per layer.
    """

    model_arguments: ClassVar[dict[str, Any]] = {"output_hidden_states": True}

    def __init__(self) -> None:
        self.vectors: list[torch.Tensor] = []
        self._n_words = 0

    def start(self, texts: Sequence[int], n_words: int) -> None:
        """See `Collector`."""
        self.vectors, self._n_words = [], n_words

    def add(self, windows: PaddedWindows, output: Any) -> None:
        """Pool each word's pieces; a word's pieces may come in several passes.

        Each layer stays on the device that computed it.
        """
        plan = (windows.position, windows.offset, windows.weight, windows.word)
        plans: dict[torch.device, list[torch.Tensor]] = {}
        # Most passes have every word once and in order: their result is used as it is.
        whole = torch.equal(windows.word, torch.arange(self._n_words))
        for layer, hidden in enumerate(layer_states(output)):
            flat = hidden.reshape(-1, hidden.shape[-1]).float()
            if flat.device not in plans:
                plans[flat.device] = [to_device(part, flat.device) for part in plan]
            position, offset, weight, word = plans[flat.device]
            pooled = torch.nn.functional.embedding_bag(
                position, flat, offset, mode="sum", per_sample_weights=weight
            )
            if layer < len(self.vectors):
                self.vectors[layer].index_add_(0, word, pooled)
            elif whole:
                self.vectors.append(pooled)
            else:
                empty = flat.new_zeros(self._n_words, flat.shape[-1])
                self.vectors.append(empty.index_add_(0, word, pooled))

    def finish(self) -> None:
        """See `Collector`."""
