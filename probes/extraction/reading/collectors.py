"""Collectors keep part of a model's forward passes: the protocol, and word vectors."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from probes.common.arrays import Ints
from probes.common.errors import UserError
from probes.compute.memory import numbers_of
from probes.extraction.reading.alignment import PairTemplate, Pieces
from probes.extraction.reading.padding import PaddedWindows
from probes.extraction.reading.shards import Shard, kept_words
from probes.extraction.reading.vectors import layer_part
from probes.extraction.reading.views import Text
from probes.extraction.reading.windows import Pooling, Window
from probes.records.header import ModelRecord
from probes.tasks.task import ReadSite

Storage = Literal["float16", "float32"]
"""dtype of stored vectors."""

_FP16_MAX = torch.finfo(torch.float16).max


class ModelProperties(NamedTuple):
    """Properties of the model that a collector may use.

    Attributes:
        causal: whether the model reads from left to right.
        mask_id: id of the mask token; None if there is none.
        n_prefix, n_suffix: special tokens before and after the pieces of a window.
        split: splits texts into pieces.
        word_starts, pair: see `WordTokenizer`. Types are 0 if the model takes none.
        window: tokens that fit into a window.
    """

    causal: bool
    mask_id: int | None
    n_prefix: int
    n_suffix: int
    split: Callable[[Sequence[Text]], list[Pieces]]
    word_starts: NDArray[np.bool_]
    pair: PairTemplate | None
    window: int


class Collector(ABC):
    """Keeps part of what a model computes, one shard after the other.

    Every collector has its own forward passes, so that its requirements (such as a different
    attention function) do not affect other collectors. Collectors of attention maps are subclasses
    of `probes.extraction.reading.attention_maps.AttentionCollector`.

    Attributes:
        name, version: parts of the key of stored results.
        model_arguments: arguments for the model's `forward`, such as ``output_hidden_states``.
        pooling: the pieces that stand for a word in `PaddedWindows`; "mean" for all pieces.
        reads_logits: whether the language-model head is applied at `positions`; the output of the
            forward pass then has ``logits`` of shape (positions, vocabulary), and ``blocks()``,
            which gives them a few positions at once; see `PassWithHead`.
        after_start: whether decoders without a start token read one before each text.
        applies_head: whether the collector itself applies the head to states, with `head`.
        reads_gradients: whether the collector runs backward passes.
        head: function from a layer's states (n, hidden size) to logits (n, vocabulary); see
            `probes.extraction.models.lm_head.Lens`.
        inside: block numbers and sites of blocks whose states are handed to `see`.
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1
    model_arguments: ClassVar[Mapping[str, Any]] = {}
    pooling: Pooling = "mean"
    reads_logits: ClassVar[bool] = False
    after_start: ClassVar[bool] = False
    applies_head: ClassVar[bool] = False
    reads_gradients: ClassVar[bool] = False
    head: Callable[[torch.Tensor, int], torch.Tensor]
    inside: Sequence[tuple[int, ReadSite]] = ()

    @property
    def settings(self) -> dict[str, str | int]:
        """Settings that affect the results; part of the key."""
        return {}

    @property
    def annotation(self) -> str:
        """Fingerprint of the annotation that the collector reads, if any; part of the key."""
        return ""

    @property
    @abstractmethod
    def parts(self) -> tuple[str, ...]:
        """Names of the arrays to collect. A store may have some of them already."""

    def only(self, parts: Sequence[str]) -> Collector:
        """A collector of some of the parts."""
        assert tuple(parts) == self.parts, "this collector's parts are collected together"
        return self

    @abstractmethod
    def bytes_of(self, shard: Shard, model: ModelRecord) -> int:
        """Bytes of a shard on disk, without file headers."""

    def bytes_by_text(self, shard: Shard, model: ModelRecord) -> Ints:
        """Bytes of each text of a shard, by which a view is cut into shards. Shape (texts,).

        All layers of the model are counted, since layers may be added to a store.
        """
        n_bytes = self.bytes_of(shard, model) // max(1, shard.n_rows)
        n_bytes = max(n_bytes, 2 * (model.n_layers + 1) * model.hidden_size)
        return n_bytes * kept_words(shard.texts)

    @abstractmethod
    def start(self, shard: Shard, pieces: Sequence[Pieces]) -> None:
        """Begin or restart a shard.

        Args:
            pieces: the shard's texts as subwords.
        """

    def copies(self, windows: Sequence[Window], reader: ModelProperties) -> Sequence[Window]:
        """Windows for the model to read: those given, or changed copies, text by text."""
        return windows

    def prepare(self, windows: PaddedWindows) -> None:  # noqa: B027
        """Prepare for the next forward pass, over `windows`."""

    def pieces(self, windows: PaddedWindows) -> torch.Tensor:
        """Tokens that changes "at the pieces" are limited to. Shape (windows, length)."""
        return windows.pieces

    def see(self, block: int, site: ReadSite, states: torch.Tensor) -> None:
        """Collect states of one of `inside` (windows, length, hidden size), during the pass."""
        raise NotImplementedError

    def positions(self, windows: PaddedWindows) -> torch.Tensor:
        """Positions for the language-model head: indices into the flattened (windows, length)."""
        raise NotImplementedError

    def around(self, model: Any, windows: PaddedWindows) -> AbstractContextManager[None]:
        """A context for each forward pass and `add`, in which hooks may be set.

        Args:
            model: the model without its head.
        """
        return nullcontext()

    @abstractmethod
    def add(self, windows: PaddedWindows, output: Any) -> None:
        """Collect from the output of one forward pass."""

    @abstractmethod
    def finish(self) -> dict[str, torch.Tensor]:
        """Collected arrays of the shard, by part."""


class CollectorError(UserError):
    """A plug-in's collector violates the protocol."""


class NotFiniteError(Exception):
    """A vector is not finite, so that the whole encoding is useless.

    Attributes:
        layer, row: position of the vector; rows are counted within the shard.
    """

    def __init__(self, layer: int, row: int) -> None:
        super().__init__(layer, row)
        self.layer, self.row = layer, row


class OutOfRangeError(Exception):
    """A value is beyond the range of fp16."""


def layer_states(output: Any) -> list[torch.Tensor]:
    """States of layers 0 to L, each of shape (windows, length, hidden size).

    Layer L is always `last_hidden_state`, since the last of `hidden_states` lacks the final norm in
    some models.
    """
    return [*output.hidden_states[:-1], output.last_hidden_state]


_LayerSite = tuple[int, ReadSite | None]


class WordVectors(Collector):
    """Collects the vectors of some layers, one per kept word, in the order of the shard's rows.

    Args:
        layers: the layers to collect.
        pooling: how a word's vector is computed from its pieces.
        storage: dtype of stored vectors.
        sites: None for the layer itself, or a site of block b, stored as layer b; see
            `probes.extraction.changing.sites.Site`. Layer 0 has none.

    Attributes:
        pairs: the pairs of layer and site that are read.
    """

    name = "word vectors"
    model_arguments: ClassVar[Mapping[str, Any]] = {"output_hidden_states": True}

    def __init__(
        self,
        layers: Sequence[int],
        pooling: Pooling = "mean",
        storage: Storage = "float16",
        sites: Sequence[ReadSite | None] = (None,),
    ) -> None:
        self.pooling, self.storage = pooling, storage
        self.pairs = tuple((layer, site) for site in sites for layer in layers if layer or not site)
        self._n_rows = 0
        self._windows: PaddedWindows | None = None
        self._vectors: dict[_LayerSite, torch.Tensor] = {}
        self._peaks: dict[_LayerSite, torch.Tensor] = {}

    @property
    def settings(self) -> dict[str, str | int]:
        """Pooling and dtype. Sites are parts, so that a site may be added to a store."""
        return {"pooling": self.pooling, "storage": self.storage}

    @property
    def parts(self) -> tuple[str, ...]:
        """One part for each layer and site."""
        return tuple(layer_part(*x) for x in self.pairs)

    @property
    def inside(self) -> Sequence[tuple[int, ReadSite]]:  # type: ignore[override]
        """The blocks and sites that are read inside blocks."""
        return [(layer, site) for layer, site in self.pairs if site]

    def only(self, parts: Sequence[str]) -> WordVectors:
        """A collector of some layers and sites."""
        collector = copy(self)
        collector.pairs = tuple(x for x in self.pairs if layer_part(*x) in parts)
        return collector

    def in_float32(self) -> WordVectors:
        """A copy of the collector with float32 storage."""
        collector = copy(self)
        collector.storage = "float32"
        return collector

    def bytes_of(self, shard: Shard, model: ModelRecord) -> int:
        """Bytes of the vectors of a shard."""
        item: int = getattr(torch, self.storage).itemsize
        return len(self.pairs) * shard.n_rows * model.hidden_size * item

    def start(self, shard: Shard, pieces: Sequence[Pieces]) -> None:
        """Begin a shard without vectors."""
        self._n_rows, self._vectors, self._peaks = shard.n_rows, {}, {}

    def prepare(self, windows: PaddedWindows) -> None:
        """Keep the windows for `see`."""
        self._windows = windows

    def see(self, block: int, site: ReadSite, states: torch.Tensor) -> None:
        """Pool the states of a site."""
        assert self._windows is not None, "a pass is running"
        self._pool(self._windows, (block, site), states)

    def add(self, windows: PaddedWindows, output: Any) -> None:
        """Pool each word's pieces, which may come in several passes.

        Each layer stays on the device that computed it.
        """
        states = layer_states(output)
        for layer, site in self.pairs:
            if site is None:
                self._pool(windows, (layer, site), states[layer])

    def _pool(self, windows: PaddedWindows, layer_site: _LayerSite, states: torch.Tensor) -> None:
        flat = states.reshape(-1, states.shape[-1]).float()
        position, offset, weight, word = windows.plan(flat.device)
        pooled = torch.nn.functional.embedding_bag(
            position, flat, offset, mode="sum", per_sample_weights=weight
        )
        if layer_site not in self._vectors:
            self._vectors[layer_site] = flat.new_zeros(self._n_rows, flat.shape[-1])
            self._peaks[layer_site] = flat.new_zeros(())
        vectors = self._vectors[layer_site]
        # No word occurs twice in a pass, and this is faster than `index_add_` on CPUs.
        vectors.index_copy_(0, word, pooled.add_(vectors.index_select(0, word)))
        low, high = torch.aminmax(pooled)
        self._peaks[layer_site] = torch.maximum(self._peaks[layer_site], torch.maximum(-low, high))

    def finish(self) -> dict[str, torch.Tensor]:
        """The vectors of each layer in the storage type. Each (words, hidden size).

        Raises:
            NotFiniteError, OutOfRangeError: see `to_store`.
        """
        arrays = {}
        peaks = numbers_of([self._peaks[layer_site] for layer_site in self.pairs])
        for layer_site, peak in zip(self.pairs, peaks, strict=True):
            vectors = self._vectors.pop(layer_site)
            arrays[layer_part(*layer_site)] = to_store(layer_site[0], vectors, peak, self.storage)
        return arrays


def to_store(layer: int, vectors: torch.Tensor, peak: float, storage: Storage) -> torch.Tensor:
    """Convert a layer's vectors to the storage dtype. Shape (rows, hidden size).

    Args:
        peak: the largest absolute value; not finite if any value is not.

    Raises:
        NotFiniteError: a value is not finite.
        OutOfRangeError: a value is too large for the storage dtype.
    """
    if not math.isfinite(peak):
        odd = ~vectors.isfinite()
        raise NotFiniteError(layer, int(odd.any(dim=1).nonzero()[0]))
    if storage == "float16" and peak > _FP16_MAX:
        raise OutOfRangeError(f"layer {layer} reaches {peak:.0f}, beyond fp16's range")
    return vectors.to(getattr(torch, storage))
