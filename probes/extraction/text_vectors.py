"""The collector of texts' vectors: those of their pieces, pooled in several ways in one pass.

"mean" and "max" are over all pieces of a text, special tokens left aside; "cls" is the first token
of what the model reads, the special one if it puts one there; "last" is the text's last piece. A
text of several windows has each piece from the window in which it lies farthest from an edge (see
`probes.extraction.windows`), "cls" from the first and "last" from the last.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from probes.compute.memory import to_device
from probes.extraction.alignment import Pieces
from probes.extraction.collectors import Collector, Storage, layer_states, to_store
from probes.extraction.padding import PaddedWindows
from probes.extraction.shards import Shard
from probes.extraction.vectors import layer_part
from probes.records.header import ModelRecord
from probes.tasks.task import TextPooling


class TextVectors(Collector):
    """Collects a vector of each whole text for some layers and poolings.

    Args:
        kept: which layer is pooled in which way.
        storage: the type in which vectors are stored.
    """

    name = "text vectors"
    model_arguments: ClassVar[Mapping[str, Any]] = {"output_hidden_states": True}

    def __init__(
        self, kept: Sequence[tuple[int, TextPooling]], storage: Storage = "float16"
    ) -> None:
        self.kept, self.storage = tuple(kept), storage
        self._vectors: dict[tuple[int, TextPooling], Tensor] = {}
        self._n_texts, self._n_pieces = 0, torch.empty(0, dtype=torch.int64)

    @property
    def settings(self) -> dict[str, str | int]:
        """Dtype of storage. Poolings are parts, so that one may be added to a store."""
        return {"storage": self.storage}

    @property
    def parts(self) -> tuple[str, ...]:
        """One part for each layer and pooling."""
        return tuple(layer_part(*each) for each in self.kept)

    def only(self, parts: Sequence[str]) -> TextVectors:
        """A collector of some layers and poolings."""
        return TextVectors([x for x in self.kept if layer_part(*x) in parts], self.storage)

    def in_float32(self) -> TextVectors:
        """A copy of the collector with float32 storage."""
        return TextVectors(self.kept, "float32")

    def bytes_of(self, shard: Shard, model: ModelRecord) -> int:
        """Bytes of the vectors of a shard."""
        item: int = getattr(torch, self.storage).itemsize
        return len(self.kept) * len(shard.texts) * model.hidden_size * item

    def start(self, shard: Shard, pieces: Sequence[Pieces]) -> None:
        """Begin a shard without vectors."""
        assert all(text.written for text in shard.texts)
        self._n_texts, self._vectors = len(shard.texts), {}
        self._n_pieces = torch.tensor([len(each.ids) for each in pieces])

    def add(self, windows: PaddedWindows, output: Any) -> None:
        """Pool the pieces of each text; those of a long one may come in several passes.

        Each layer stays on the device that computed it.
        """
        states = layer_states(output)
        for layer, pooling in self.kept:
            state = states[layer].float()
            rows, found = _pooled(state, pooling, windows, self._n_pieces)
            if (layer, pooling) not in self._vectors:
                least = -math.inf if pooling == "max" else 0.0
                self._vectors[layer, pooling] = state.new_full(
                    (self._n_texts, state.shape[-1]), least
                )
            vectors, rows = self._vectors[layer, pooling], to_device(rows, state.device)
            before = vectors.index_select(0, rows)
            joined = torch.maximum(found, before) if pooling == "max" else found + before
            vectors.index_copy_(0, rows, joined)

    def finish(self) -> dict[str, Tensor]:
        """The vectors of each layer and pooling in the storage type. Each (texts, hidden size).

        Raises:
            NotFiniteError, OutOfRangeError: see `probes.extraction.collectors.to_store`.
        """
        found = {}
        for (layer, pooling), vectors in self._vectors.items():
            peak = float(vectors.abs().max())
            found[layer_part(layer, pooling)] = to_store(layer, vectors, peak, self.storage)
        return found


def _pooled(
    state: Tensor, pooling: TextPooling, windows: PaddedWindows, n_pieces: Tensor
) -> tuple[Tensor, Tensor]:
    """Texts with something to pool in these windows (n,), and the pooled vectors (n, H).

    Args:
        state: of one layer. Shape (windows, length, H).
        n_pieces: of each text of the shard. Shape (texts,).
    """
    if pooling in ("mean", "max"):
        plan = (windows.position, windows.offset, windows.weight)
        position, offset, weight = (to_device(part, state.device) for part in plan)
        flat = state.flatten(0, 1)
        if pooling == "max":
            return windows.word, embedding_bag(position, flat, offset, mode="max")
        return windows.word, embedding_bag(
            position, flat, offset, mode="sum", per_sample_weights=weight
        )
    if pooling == "cls":
        window, place = torch.nonzero(windows.first == 0)[:, 0], 0 * windows.first
    else:
        place = n_pieces[windows.text] - 1 - windows.first
        window = torch.nonzero(place < windows.n_pieces)[:, 0]
        place = place + windows.n_prefix
    at = (to_device(each, state.device) for each in (window, place[window]))
    return windows.text[window], state[tuple(at)]
