"""The collector of texts' vectors: those at several positions, in one pass.

A text of several windows has each piece from the window in which it lies farthest from an edge (see
`probes.extraction.reading.windows`), and the token before all pieces from the first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from probes.compute.memory import to_device
from probes.extraction.reading.alignment import Pieces
from probes.extraction.reading.chats import Rendered
from probes.extraction.reading.collectors import Collector, Storage, layer_states, to_store
from probes.extraction.reading.padding import PaddedWindows
from probes.extraction.reading.shards import Shard
from probes.extraction.reading.vectors import layer_part
from probes.extraction.reading.views import Text
from probes.records.header import ModelRecord
from probes.tasks.positions import Position
from probes.tasks.task import Sublayer

_Triple = tuple[int, Sublayer | None, Position]


class TextVectors(Collector):
    """Collects a vector of each whole text for some layers, sites and positions.

    Args:
        triples: which layer is read at which site and position; see
            `probes.extraction.reading.collectors.WordVectors` for sites.
        storage: the type in which vectors are stored.
    """

    name = "text vectors"
    model_arguments: ClassVar[Mapping[str, Any]] = {"output_hidden_states": True}

    def __init__(self, triples: Sequence[_Triple], storage: Storage = "float16") -> None:
        self.triples, self.storage = tuple(triples), storage
        self._vectors: dict[_Triple, Tensor] = {}
        self._n_texts = 0
        self._windows: PaddedWindows | None = None
        self._pieces: dict[Position, Tensor] = {}

    @property
    def settings(self) -> dict[str, str | int]:
        """Dtype of storage. Sites and positions are parts, so that one may be added to a store."""
        return {"storage": self.storage}

    @property
    def parts(self) -> tuple[str, ...]:
        """One part for each layer, site and position."""
        return tuple(layer_part(*x) for x in self.triples)

    @property
    def inside(self) -> Sequence[tuple[int, Sublayer]]:  # type: ignore[override]
        """The blocks and sites that are read inside blocks."""
        return list(dict.fromkeys((layer, site) for layer, site, _ in self.triples if site))

    def only(self, parts: Sequence[str]) -> TextVectors:
        """A collector of some layers, sites and positions."""
        return TextVectors([x for x in self.triples if layer_part(*x) in parts], self.storage)

    def in_float32(self) -> TextVectors:
        """A copy of the collector with float32 storage."""
        return TextVectors(self.triples, "float32")

    def bytes_of(self, shard: Shard, model: ModelRecord) -> int:
        """Bytes of the vectors of a shard."""
        item: int = getattr(torch, self.storage).itemsize
        return len(self.triples) * len(shard.texts) * model.hidden_size * item

    def start(self, shard: Shard, pieces: Sequence[Pieces]) -> None:
        """Begin a shard without vectors."""
        assert all(text.written for text in shard.texts)
        self._n_texts, self._vectors = len(shard.texts), {}
        text_pairs = list(zip(shard.texts, pieces, strict=True))
        for position in {position for *_, position in self.triples}:
            places = [piece_at(position, text, parts) for text, parts in text_pairs]
            self._pieces[position] = torch.tensor([-1 if x is None else x for x in places])

    def prepare(self, windows: PaddedWindows) -> None:
        """Keep the windows for `see`."""
        self._windows = windows

    def see(self, block: int, site: Sublayer, states: Tensor) -> None:
        """Take the vectors of each text at a site."""
        assert self._windows is not None, "a pass is running"
        self._take(self._windows, block, site, states)

    def add(self, windows: PaddedWindows, output: Any) -> None:
        """Take the vectors of each text in layers.

        Each layer stays on the device that computed it.
        """
        states = layer_states(output)
        for layer in {layer for layer, site, _ in self.triples if site is None}:
            self._take(windows, layer, None, states[layer])

    def _take(
        self, windows: PaddedWindows, layer: int, site: Sublayer | None, states: Tensor
    ) -> None:
        """Take vectors at each position; pieces of a long text may come in several passes."""
        n_windows, length = windows.inputs["input_ids"].shape
        state = states.reshape(n_windows, length, -1).float()  # parts may read (tokens, size)
        for triple in self.triples:
            position = triple[2]
            if triple[:2] != (layer, site):
                continue
            rows, values = _vectors_of_pass(state, position, windows, self._pieces[position])
            if triple not in self._vectors:
                least = -math.inf if position.kind == "max" else 0.0
                self._vectors[triple] = state.new_full((self._n_texts, state.shape[-1]), least)
            vectors, rows = self._vectors[triple], to_device(rows, state.device)
            before = vectors.index_select(0, rows)
            merged = torch.maximum(values, before) if position.kind == "max" else values + before
            vectors.index_copy_(0, rows, merged)

    def finish(self) -> dict[str, Tensor]:
        """The vectors of each triple in the storage type. Each (texts, hidden size)."""
        arrays = {}
        for triple, vectors in self._vectors.items():
            peak = float(vectors.abs().max())
            arrays[layer_part(*triple)] = to_store(triple[0], vectors, peak, self.storage)
        return arrays


def piece_at(position: Position, text: Text, pieces: Pieces) -> int | None:
    """The piece at which a text is read; None if it is several, or the text has no such piece."""
    if position.kind == "last":
        index = len(pieces.ids) - position.from_end
        return index if index >= 0 else None
    rendered = pieces.rendered or Rendered(text.words[0])
    span = position.span(rendered.text) if position.of else rendered.span_of(position.kind)
    if span is None:
        return None
    assert pieces.letters is not None
    # Tokenizers drop letters such as line breaks: the piece beside one is another's.
    start, end = pieces.letters.T
    inside = np.flatnonzero((start < span[1]) & (end > span[0]))
    return int(inside[0 if position.kind == "after" else -1]) if len(inside) else None


def _vectors_of_pass(
    state: Tensor, position: Position, windows: PaddedWindows, places: Tensor
) -> tuple[Tensor, Tensor]:
    """Texts with something to take in these windows (n,), and the vectors (n, H).

    Args:
        state: states of one layer. Shape (windows, length, H).
        places: see `piece_at`; -1 for none as well. Shape (texts,).
    """
    flat = state.flatten(0, 1)
    if position.kind in ("mean", "max"):
        plan = (windows.position, windows.offset, windows.weight)
        used, offset, weight = (to_device(part, state.device) for part in plan)
        if position.kind == "max":
            return windows.word, embedding_bag(used, flat, offset, mode="max")
        return windows.word, embedding_bag(
            used, flat, offset, mode="sum", per_sample_weights=weight
        )
    first_token = torch.arange(len(windows.first)) * state.shape[1]
    if position.kind == "first":
        is_read, positions = windows.first == 0, first_token
    else:
        piece = places[windows.text] - windows.first
        positions = first_token + windows.n_prefix + piece
        is_read = (piece >= 0) & (piece < windows.n_pieces) & (places[windows.text] >= 0)
        # A piece in several windows is used in one of them.
        is_read &= torch.isin(positions, windows.position)
    return windows.text[is_read], flat[to_device(positions[is_read], state.device)]
