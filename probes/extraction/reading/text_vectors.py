"""The collector of texts' vectors: those at several positions, in one pass.

A text of several windows has each piece from the window in which it lies farthest from an edge (see
`probes.extraction.reading.windows`), and the token before all pieces from the first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from probes.common.arrays import Ints
from probes.compute.memory import ToHost, numbers_of, to_device
from probes.extraction.reading.alignment import Pieces
from probes.extraction.reading.chats import Rendered
from probes.extraction.reading.collectors import (
    Collector,
    NotFiniteError,
    Storage,
    layer_states,
    to_store,
)
from probes.extraction.reading.padding import PaddedWindows
from probes.extraction.reading.shards import Shard
from probes.extraction.reading.vectors import layer_part, lengths_part
from probes.extraction.reading.views import Text
from probes.records.header import ModelRecord
from probes.tasks.positions import Position
from probes.tasks.task import ReadSite

Splitter = Callable[[Sequence[Text]], list[Pieces]]
"""Splits texts into pieces, as a tokenizer does."""

Triple = tuple[int, ReadSite | None, Position]
"""A layer, a site (None for the layer itself) and a position."""

_INT64 = 8
"""Bytes of the length of a bag."""


class TextVectors(Collector):
    """Collects vectors of whole texts: one for each layer, site and position, or a bag of tokens.

    A bag is stored as the vectors of all its tokens, text after text (tokens, hidden size), and the
    number of tokens of each text (texts,).

    Args:
        triples: which layer is read at which site and position; see
            `probes.extraction.reading.collectors.WordVectors` for sites.
        storage: the type in which vectors are stored.
        split: splits texts into pieces; needed for the bytes of bags.
    """

    name = "text vectors"
    model_arguments: ClassVar[Mapping[str, Any]] = {"output_hidden_states": True}

    def __init__(
        self, triples: Sequence[Triple], storage: Storage = "float16", split: Splitter | None = None
    ) -> None:
        self.triples, self.storage, self._split = tuple(triples), storage, split
        positions = dict.fromkeys(position for *_, position in self.triples)
        self.bags = [position for position in positions if position.is_bag]
        self._n_texts = 0
        self._ranges: dict[Position, _PieceRanges] = {}
        self._vectors: dict[Triple, Tensor] = {}
        self._tokens: dict[Triple, list[tuple[Tensor, ToHost]]] = {}

    @property
    def settings(self) -> dict[str, str | int]:
        """Dtype of storage. Sites and positions are parts, so that one may be added to a store."""
        return {"storage": self.storage}

    @property
    def parts(self) -> tuple[str, ...]:
        """One part for each layer, site and position, and one with the lengths of each bag."""
        return (*(layer_part(*x) for x in self.triples), *map(lengths_part, self.bags))

    @property
    def inside(self) -> Sequence[tuple[int, ReadSite]]:  # type: ignore[override]
        """The blocks and sites that are read inside blocks."""
        return list(dict.fromkeys((layer, site) for layer, site, _ in self.triples if site))

    def only(self, parts: Sequence[str]) -> TextVectors:
        """A collector of some of the parts."""
        collector = copy(self)
        collector.triples = tuple(x for x in self.triples if layer_part(*x) in parts)
        collector.bags = [x for x in self.bags if lengths_part(x) in parts]
        return collector

    def in_float32(self) -> TextVectors:
        """A copy of the collector with float32 storage."""
        collector = copy(self)
        collector.storage = "float32"
        return collector

    def bytes_of(self, shard: Shard, model: ModelRecord) -> int:
        """Bytes of the vectors of a shard, and of the lengths of its bags."""
        n_rows = self._n_rows(shard)
        n_vectors = sum(int(n_rows[position].sum()) for *_, position in self.triples)
        n_lengths = len(self.bags) * len(shard.texts)
        return n_vectors * model.hidden_size * self._dtype.itemsize + n_lengths * _INT64

    def bytes_by_text(self, shard: Shard, model: ModelRecord) -> Ints:
        """Bytes by which a view is cut into shards; see `Collector.bytes_by_text`."""
        n_rows = self._n_rows(shard)
        stored = sum(n_rows[position] for *_, position in self.triples) * self._dtype.itemsize
        all_layers = 2 * (model.n_layers + 1) * np.maximum.reduce(list(n_rows.values()))
        n_bytes: Ints = model.hidden_size * np.maximum(stored, all_layers)
        return n_bytes

    @property
    def _dtype(self) -> torch.dtype:
        dtype: torch.dtype = getattr(torch, self.storage)
        return dtype

    @property
    def _positions(self) -> list[Position]:
        """The positions that are read, each once."""
        return list(dict.fromkeys([*self.bags, *(position for *_, position in self.triples)]))

    def _n_rows(self, shard: Shard) -> dict[Position, Ints]:
        """Number of vectors of each text of a shard at each position. Each (texts,)."""
        n_rows = {x: np.ones(len(shard.texts), dtype=np.int64) for x in self._positions}
        if bags := [x for x in self._positions if x.is_bag]:
            assert self._split is not None, "the bytes of bags need a tokenizer"
            pieces = self._split(shard.texts)
            n_rows |= {x: _PieceRanges.of(x, shard.texts, pieces).lengths.numpy() for x in bags}
        return n_rows

    def start(self, shard: Shard, pieces: Sequence[Pieces]) -> None:
        """Begin a shard without vectors."""
        assert all(text.written for text in shard.texts)
        self._n_texts, self._vectors = len(shard.texts), {}
        self._tokens = {x: [] for x in self.triples if x[-1].is_bag}
        self._ranges = {x: _PieceRanges.of(x, shard.texts, pieces) for x in self._positions}

    def prepare(self, windows: PaddedWindows) -> None:
        """Find out which tokens of these windows are read."""
        self._windows = windows
        self._read = {x: ranges.read_in(windows) for x, ranges in self._ranges.items()}

    def see(self, block: int, site: ReadSite, states: Tensor) -> None:
        """Take the vectors of each text at a site."""
        self._take(block, site, states)

    def add(self, windows: PaddedWindows, output: Any) -> None:
        """Take the vectors of each text in layers; pieces of a long one may come in several passes.

        Each layer stays on the device that computed it; a bag goes to the host at once.
        """
        states = layer_states(output)
        for layer in dict.fromkeys(layer for layer, site, _ in self.triples if site is None):
            self._take(layer, None, states[layer])

    def _take(self, layer: int, site: ReadSite | None, states: Tensor) -> None:
        """Take what the states of a layer and site have of each text, at all positions."""
        flat = states.reshape(-1, states.shape[-1])  # parts of blocks may read (tokens, size)
        for triple in self.triples:
            position = triple[2]
            if triple[:2] != (layer, site):
                continue
            rows, values = self._vectors_of_pass(position, flat)
            if position.is_bag:
                peak = values.abs().max() if len(rows) else values.new_zeros(())
                self._tokens[triple].append((rows, ToHost(values.to(self._dtype), peak)))
                continue
            if triple not in self._vectors:
                least = -math.inf if position.kind == "max" else 0.0
                self._vectors[triple] = values.new_full((self._n_texts, values.shape[-1]), least)
            vectors, rows = self._vectors[triple], to_device(rows, values.device)
            before = vectors.index_select(0, rows)
            merged = torch.maximum(values, before) if position.kind == "max" else values + before
            vectors.index_copy_(0, rows, merged)

    def _vectors_of_pass(self, position: Position, states: Tensor) -> tuple[Tensor, Tensor]:
        """Rows with something to take in a pass (n,), and the vectors in float32 (n, H)."""
        windows = self._windows
        if position.kind in ("mean", "max"):
            plan = (windows.position, windows.offset, windows.weight)
            used, offset, weight = (to_device(part, states.device) for part in plan)
            states = states.float()
            if position.kind == "max":
                return windows.word, embedding_bag(used, states, offset, mode="max")
            return windows.word, embedding_bag(
                used, states, offset, mode="sum", per_sample_weights=weight
            )
        if position.kind == "first":
            first_token = torch.arange(len(windows.first)) * windows.inputs["input_ids"].shape[1]
            is_read = windows.first == 0
            rows, used = windows.text[is_read], first_token[is_read]
        else:
            rows, used = self._read[position]
        return rows, states.index_select(0, to_device(used, states.device)).float()

    def finish(self) -> dict[str, Tensor]:
        """Vectors in the storage type, each (texts or tokens, hidden size), and lengths of bags.

        Raises:
            NotFiniteError, OutOfRangeError: see `to_store`. The row is that of the text.
        """
        arrays = {}
        maxima = {triple: vectors.abs().max() for triple, vectors in self._vectors.items()}
        peaks = dict(zip(maxima, numbers_of([*maxima.values()]), strict=True))
        for triple in self.triples:
            layer, _, position = triple
            ranges = self._ranges[position]
            if position.is_bag:
                vectors, peak = _joined(self._tokens.pop(triple), int(ranges.lengths.sum()))
            else:
                vectors, peak = self._vectors.pop(triple), peaks[triple]
            try:
                arrays[layer_part(*triple)] = to_store(layer, vectors, peak, self.storage)
            except NotFiniteError as error:
                text = torch.searchsorted(ranges.rows, error.row, right=True) - 1
                raise NotFiniteError(layer, int(text)) from error
        return arrays | {lengths_part(x): self._ranges[x].lengths for x in self.bags}


class _PieceRanges(NamedTuple):
    """The pieces of some texts that are read at a position.

    Attributes:
        first, end: the first piece of each text, and the end. Each (texts,).
        rows: the row of its first vector. Shape (texts,).
    """

    first: Tensor
    end: Tensor
    rows: Tensor

    @classmethod
    def of(
        cls, position: Position, texts: Sequence[Text], pieces: Sequence[Pieces]
    ) -> _PieceRanges:
        """The pieces that are read at `position`."""
        ranges = [pieces_at(position, *of_text) for of_text in zip(texts, pieces, strict=True)]
        first = torch.tensor([x.start for x in ranges])
        end = torch.tensor([x.stop for x in ranges])
        lengths = end - first
        rows = lengths.cumsum(0) - lengths if position.is_bag else torch.arange(len(ranges))
        return cls(first, end, rows)

    @property
    def lengths(self) -> Tensor:
        """Number of pieces of each text. Shape (texts,)."""
        return self.end - self.first

    def read_in(self, windows: PaddedWindows) -> tuple[Tensor, Tensor]:
        """Rows of the vectors to read in these windows, and the flattened positions. Each (n,)."""
        # A piece in several windows is used in one of them.
        used, length = windows.position, windows.inputs["input_ids"].shape[1]
        window = used // length
        piece, text = used % length - windows.n_prefix + windows.first[window], windows.text[window]
        is_read = (piece >= self.first[text]) & (piece < self.end[text])
        rows = self.rows[text] + piece - self.first[text]
        return rows[is_read], used[is_read]


def _joined(passes: Sequence[tuple[Tensor, ToHost]], n_rows: int) -> tuple[Tensor, float]:
    """Vectors that passes gave for rows, in order (rows, H), and the largest absolute value.

    Args:
        passes: rows (n,), and the vectors (n, H) with their largest absolute value.
    """
    arrived = [(rows, *sent.wait()) for rows, sent in passes]
    joined = torch.empty(n_rows, arrived[0][1].shape[1], dtype=arrived[0][1].dtype)
    for rows, vectors, _ in arrived:
        joined.index_copy_(0, rows, vectors)
    return joined, float(torch.stack([peak for *_, peak in arrived]).max())


def pieces_at(position: Position, text: Text, pieces: Pieces) -> range:
    """The pieces at which a text is read; empty if it has no such piece, and for "first"."""
    n_pieces, role = len(pieces.ids), position.role
    if position.kind == "first":
        return range(0)
    if position.from_end:
        first = n_pieces - position.from_end
        if position.is_bag:
            return range(max(0, first), n_pieces)
        return range(first, first + 1) if first >= 0 else range(0)
    if not position.of and not role:  # "mean", "max" and "all"
        return range(n_pieces)
    rendered = pieces.rendered or Rendered(text.words[0])
    span = rendered.span_of(role) if role else position.span(rendered.text)
    if span is None:
        return range(0)
    assert pieces.letters is not None
    # Tokenizers drop letters such as line breaks: the piece beside one is another's.
    start, end = pieces.letters.T
    inside = np.flatnonzero((start < span[1]) & (end > span[0]))
    if not len(inside):
        return range(0)
    bag = range(int(inside[0]), int(inside[-1]) + 1)
    if position.is_bag:
        return bag
    return bag[:1] if position.kind == "after" else bag[-1:]
