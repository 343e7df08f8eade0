"""What is taken from a model's forward passes: word vectors, and later other things."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Protocol

import torch

from probes.compute.transfers import to_device
from probes.extraction.windows import Rows


class Collector(Protocol):
    """Takes from forward passes what it is for.

    Attributes:
        model_arguments: what the model is asked to return, e.g. ``output_hidden_states``.
    """

    model_arguments: ClassVar[dict[str, Any]]

    def start(self, texts: Sequence[int], n_words: int) -> None:
        """A batch begins: indices of its texts, and how many words they keep."""

    def add(self, rows: Rows, output: Any) -> None:
        """One forward pass of the batch."""

    def finish(self) -> None:
        """The batch is complete."""


def layer_states(output: Any) -> list[torch.Tensor]:
    """The states of layers 0 to L, each of shape (rows, length, hidden size).

    Layer L is `last_hidden_state` also where a model lists it before its final norm.
    """
    return [*output.hidden_states[:-1], output.last_hidden_state]


class WordVectors:
    """Collects the vectors of every layer, one per kept word.

    After each batch, `vectors` holds one float32 array (words, hidden size) per layer.
    """

    model_arguments: ClassVar[dict[str, Any]] = {"output_hidden_states": True}

    def __init__(self) -> None:
        self.vectors: list[torch.Tensor] = []
        self._n_words = 0

    def start(self, texts: Sequence[int], n_words: int) -> None:
        """See `Collector`."""
        self.vectors, self._n_words = [], n_words

    def add(self, rows: Rows, output: Any) -> None:
        """Pool each word's pieces; a word's pieces may come in several passes.

        Each layer stays on the device where it was computed.
        """
        plan = (rows.position, rows.offset, rows.weight, rows.word)
        plans: dict[torch.device, list[torch.Tensor]] = {}
        # Mostly a pass has each word once and in order; then nothing is to be put in its place.
        whole = torch.equal(rows.word, torch.arange(self._n_words))
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
