"""What is kept of a model's forward passes: the protocol, and the collector of word vectors."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from typing import Any, ClassVar, Literal, NamedTuple

import torch

from probes.common.errors import UserError
from probes.extraction.alignment import Pieces
from probes.extraction.padding import PaddedWindows
from probes.extraction.shards import Shard
from probes.extraction.vectors import layer_part
from probes.extraction.views import Text
from probes.extraction.windows import Pooling, Window
from probes.records.header import ModelRecord
from probes.tasks.task import Sublayer

Storage = Literal["float16", "float32"]
"""The type in which vectors are stored."""

_FP16_MAX = torch.finfo(torch.float16).max


class Reader(NamedTuple):
    """What a collector may know of the model that reads.

    Attributes:
        causal: whether it reads from left to right.
        mask_id: id of the mask token; None if it has none.
        n_prefix, n_suffix: special tokens before and after the pieces of a window.
        split: splits texts into pieces.
    """

    causal: bool
    mask_id: int | None
    n_prefix: int
    n_suffix: int
    split: Callable[[Sequence[Text]], list[Pieces]]


class Collector(ABC):
    """Keeps part of what a model computes, one shard after the other.

    Every collector has forward passes of its own, so that what one asks of the model (such as
    attention computed in another way) does not change what another one finds. Those that need
    attention maps are subclasses of `probes.extraction.attention_maps.AttentionCollector`.

    Attributes:
        name, version: parts of the key of what is stored.
        model_arguments: arguments for the model's `forward`, such as ``output_hidden_states``.
        pooling: which pieces stand for a word in `PaddedWindows`; all of them with "mean".
        reads_logits: whether the language-model head is applied, at the positions that `positions`
            names; the output of the forward pass then has ``logits`` of shape (positions, tokens
            of the vocabulary).
        after_start: whether a decoder reads a token for the start of a text before it where its
            tokenizer puts none there.
        applies_head: whether the collector itself applies the head to states, with `head`.
        reads_gradients: whether it goes back from what a pass gives.
        head: of states (n, hidden size) of a layer, the logits (n, vocabulary); see
            `probes.extraction.lm_head.Lens`.
        inside: the parts of blocks, by the block's number, whose outputs `see` is given.
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
    inside: Sequence[tuple[int, Sublayer]] = ()

    @property
    def settings(self) -> dict[str, str | int]:
        """Settings that change what is found; part of the key."""
        return {}

    @property
    def annotation(self) -> str:
        """Fingerprint of the annotation that is read; part of the key, empty if none is read."""
        return ""

    @property
    @abstractmethod
    def parts(self) -> tuple[str, ...]:
        """Names of the arrays to be collected. A store may have some of them already."""

    def only(self, parts: Sequence[str]) -> Collector:
        """The same collector for some of its parts."""
        assert tuple(parts) == self.parts, "this collector's parts are collected together"
        return self

    @abstractmethod
    def bytes_of(self, shard: Shard, model: ModelRecord) -> int:
        """What a shard will take on disk, headers left aside."""

    @abstractmethod
    def start(self, shard: Shard, pieces: Sequence[Pieces]) -> None:
        """Begin a shard, or begin it again.

        Args:
            pieces: its texts as subwords.
        """

    def copies(self, windows: Sequence[Window], reader: Reader) -> Sequence[Window]:
        """What the model reads of some windows: these themselves, or changed copies of them.

        Those of one text come one after the other.
        """
        return windows

    def prepare(self, windows: PaddedWindows) -> None:  # noqa: B027
        """Learn what the next forward pass will read."""

    def see(self, block: int, part: Sublayer, states: torch.Tensor) -> None:
        """Take what is kept of one of `inside`, during the pass. (windows, length, hidden size)."""
        raise NotImplementedError

    def positions(self, windows: PaddedWindows) -> torch.Tensor:
        """Where the language-model head is applied: indices into (windows × length), flattened."""
        raise NotImplementedError

    def around(self, model: Any, windows: PaddedWindows) -> AbstractContextManager[None]:
        """Entered for each forward pass and for `add`, such as to look into the model.

        Args:
            model: without its head.
        """
        return nullcontext()

    @abstractmethod
    def add(self, windows: PaddedWindows, output: Any) -> None:
        """Take what is kept from one forward pass."""

    @abstractmethod
    def finish(self) -> dict[str, torch.Tensor]:
        """What was found of the shard, by part."""


class CollectorError(UserError):
    """A collector of a plug-in does not keep to the protocol."""


class NotFiniteError(Exception):
    """A vector is not finite, so that the whole encoding is useless.

    Attributes:
        layer, row: where, rows counted within the shard.
    """

    def __init__(self, layer: int, row: int) -> None:
        super().__init__(layer, row)
        self.layer, self.row = layer, row


class OutOfRangeError(Exception):
    """A value is beyond the range of fp16."""


def layer_states(output: Any) -> list[torch.Tensor]:
    """The states of layers 0 to L, each of shape (windows, length, hidden size).

    Layer L is always `last_hidden_state`: some models list it in `hidden_states` without their
    final norm.
    """
    return [*output.hidden_states[:-1], output.last_hidden_state]


_Kept = tuple[int, Sublayer | None]


class WordVectors(Collector):
    """Collects the vectors of some layers, one per kept word, in the order of the shard's rows.

    Args:
        layers: which layers.
        pooling: how a word's vector is made from those of its pieces.
        storage: the type in which they are stored.
        sites: where they are read: None for the layer itself; or a part of block b, as layer b.
            Read is what the part's last linear map gives, bias included: before any norm or
            scaling that comes after it, and before it is added to the residual stream. Layer 0
            has no parts.

    Attributes:
        kept: which layer is read at which site.
    """

    name = "word vectors"
    model_arguments: ClassVar[Mapping[str, Any]] = {"output_hidden_states": True}

    def __init__(
        self,
        layers: Sequence[int],
        pooling: Pooling = "mean",
        storage: Storage = "float16",
        sites: Sequence[Sublayer | None] = (None,),
    ) -> None:
        self.pooling, self.storage = pooling, storage
        self.kept = tuple((layer, site) for site in sites for layer in layers if layer or not site)
        self._n_rows = 0
        self._windows: PaddedWindows | None = None
        self._vectors: dict[_Kept, torch.Tensor] = {}
        self._peaks: dict[_Kept, torch.Tensor] = {}

    @property
    def settings(self) -> dict[str, str | int]:
        """See `Collector`. Sites are parts, so that one may be added to a store."""
        return {"pooling": self.pooling, "storage": self.storage}

    @property
    def parts(self) -> tuple[str, ...]:
        """See `Collector`."""
        return tuple(layer_part(*each) for each in self.kept)

    @property
    def inside(self) -> Sequence[tuple[int, Sublayer]]:  # type: ignore[override]
        """See `Collector`."""
        return [(layer, site) for layer, site in self.kept if site]

    def only(self, parts: Sequence[str]) -> WordVectors:
        """See `Collector`."""
        found = copy(self)
        found.kept = tuple(each for each in self.kept if layer_part(*each) in parts)
        return found

    def in_float32(self) -> WordVectors:
        """The same collector, storing fp32."""
        found = copy(self)
        found.storage = "float32"
        return found

    def bytes_of(self, shard: Shard, model: ModelRecord) -> int:
        """See `Collector`."""
        item: int = getattr(torch, self.storage).itemsize
        return len(self.kept) * shard.n_rows * model.hidden_size * item

    def start(self, shard: Shard, pieces: Sequence[Pieces]) -> None:
        """See `Collector`."""
        self._n_rows, self._vectors, self._peaks = shard.n_rows, {}, {}

    def prepare(self, windows: PaddedWindows) -> None:
        """See `Collector`."""
        self._windows = windows

    def see(self, block: int, part: Sublayer, states: torch.Tensor) -> None:
        """See `Collector`."""
        assert self._windows is not None, "a pass is running"
        self._pool(self._windows, (block, part), states)

    def add(self, windows: PaddedWindows, output: Any) -> None:
        """Pool each word's pieces; a word's pieces may come in several passes.

        Each layer stays on the device that computed it.
        """
        states = layer_states(output)
        for layer, site in self.kept:
            if site is None:
                self._pool(windows, (layer, site), states[layer])

    def _pool(self, windows: PaddedWindows, kept: _Kept, states: torch.Tensor) -> None:
        flat = states.reshape(-1, states.shape[-1]).float()
        position, offset, weight, word = windows.plan(flat.device)
        pooled = torch.nn.functional.embedding_bag(
            position, flat, offset, mode="sum", per_sample_weights=weight
        )
        if kept not in self._vectors:
            self._vectors[kept] = flat.new_zeros(self._n_rows, flat.shape[-1])
            self._peaks[kept] = flat.new_zeros(())
        found = self._vectors[kept]
        # Faster on CPUs than `index_add_`; no word occurs twice in a pass.
        found.index_copy_(0, word, pooled.add_(found.index_select(0, word)))
        low, high = torch.aminmax(pooled)
        self._peaks[kept] = torch.maximum(self._peaks[kept], torch.maximum(-low, high))

    def finish(self) -> dict[str, torch.Tensor]:
        """The vectors of each layer in the storage type. Each (words, hidden size).

        Raises:
            NotFiniteError, OutOfRangeError: see `to_store`.
        """
        found = {}
        for kept in self.kept:
            peak, vectors = float(self._peaks[kept]), self._vectors.pop(kept)
            found[layer_part(*kept)] = to_store(kept[0], vectors, peak, self.storage)
        return found


def to_store(layer: int, vectors: torch.Tensor, peak: float, storage: Storage) -> torch.Tensor:
    """A layer's vectors in the type in which they are stored. Shape (rows, hidden size).

    Args:
        peak: the largest absolute value, not finite if any value is not.

    Raises:
        NotFiniteError: a value is not finite.
        OutOfRangeError: one is too large for the storage type.
    """
    if not math.isfinite(peak):
        odd = ~vectors.isfinite()
        raise NotFiniteError(layer, int(odd.any(dim=1).nonzero()[0]))
    if storage == "float16" and peak > _FP16_MAX:
        raise OutOfRangeError(f"layer {layer} reaches {peak:.0f}, beyond fp16's range")
    return vectors.to(getattr(torch, storage))
