"""Vectors that someone else has computed, in the place of a model that reads."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from probes.common.errors import UserError
from probes.extraction.alignment import Pieces
from probes.extraction.collectors import Collector, WordVectors, to_store
from probes.extraction.shards import Shard
from probes.extraction.vectors import layer_part
from probes.extraction.views import Text
from probes.records.header import ModelRecord
from probes.tasks.task import Sublayer

Words = tuple[str, ...]


class GivenVectors:
    """What an `Encoder` is for word vectors, without a model: it looks them up by their text.

    Args:
        name: what tables call their model.
        layers: the vectors of each layer. Each (words, dimensions), text by text.
        texts: the words of each text, all distinct.
        revision: see `ModelRecord`.
        digest: of their files; `content` if empty.
        notes: what records say of them.

    Attributes:
        content: digest of the vectors, text by text.

    Raises:
        UserError: layers differ in shape.
    """

    reads_text = False
    has_head = False
    """No other text can be read, and nothing but word vectors."""

    capacity = 1 << 62
    """No text has several windows."""

    def __init__(
        self,
        name: str,
        layers: Mapping[int, NDArray[Any]],
        texts: Sequence[Words],
        *,
        revision: str = "",
        digest: str = "",
        notes: Mapping[str, str] | None = None,
    ) -> None:
        self._layers, self.device = dict(sorted(layers.items())), torch.device("cpu")
        self.words = self
        self.mask_id = None
        self.notes = dict(notes or {})
        starts = np.cumsum([0, *map(len, texts)])
        self._rows = {text: int(start) for text, start in zip(texts, starts[:-1], strict=True)}
        first, *others = self._layers
        shape = self._layers[first].shape
        for layer in (first, *others):
            if self._layers[layer].shape != shape or len(shape) != 2:
                raise UserError(
                    f"{name}: layer {layer} has the shape {self._layers[layer].shape}, layer "
                    f"{first} has {shape}; give one (words, dimensions) for all layers."
                )
        if shape[0] != starts[-1]:
            raise UserError(f"{name}: {shape[0]:,} vectors for {starts[-1]:,} words.")
        self.content = _digest(self._layers)
        self.info = ModelRecord(
            name=name,
            revision=revision,
            digest=digest or self.content,
            architecture="given vectors",
            n_layers=max(self._layers),
            hidden_size=shape[1],
            parameters=0,
            window=0,
            causal=False,
            random_seed=None,
        )

    def require(self, site: Sublayer) -> None:
        """See `Encoder.require`.

        Raises:
            UserError: always.
        """
        raise UserError(f"--sites {site}: {self.info.name} is given vectors, which are of layers.")

    def require_pieces(self, texts: Sequence[Text]) -> None:
        """Every text has its vectors."""

    def split(self, texts: Sequence[Text]) -> list[Pieces]:
        """Texts without subwords, of which nothing is known."""
        none = np.empty(0, dtype=np.int64)
        return [Pieces(none, np.zeros(len(text.words) + 1, dtype=np.int64), 0) for text in texts]

    def encode(
        self, shard: Shard, pieces: Sequence[Pieces], batch_tokens: int, collector: Collector
    ) -> dict[str, torch.Tensor]:
        """The vectors of a shard's words; see `Encoder.encode`.

        Raises:
            UserError: something else than word vectors is asked for, a text has none, or a layer
                was not given.
            NotFiniteError, OutOfRangeError: see `WordVectors.finish`.
        """
        name = self.info.name
        if not isinstance(collector, WordVectors):
            raise UserError(f"{name}: given vectors have no {collector.name}; leave it out.")
        found = {}
        rows = np.concatenate([self._places(text) for text in shard.texts])
        for layer, _ in collector.kept:
            if layer not in self._layers:
                given = ", ".join(map(str, self._layers))
                raise UserError(
                    f"{name}: no vectors of layer {layer}; give --layers {given.replace(' ', '')}."
                )
            vectors = torch.from_numpy(np.array(self._layers[layer][rows], dtype=np.float32))
            peak = float(vectors.abs().max())
            found[layer_part(layer)] = to_store(layer, vectors, peak, collector.storage)
        return found

    def _places(self, text: Text) -> NDArray[np.int64]:
        start = self._rows.get(text.words)
        if start is None or text.mask is not None:
            raise UserError(f"{self.info.name}: no vectors of {' '.join(text.words)[:80]!r}.")
        return np.arange(start + text.keep[0], start + text.keep[1])


def _digest(layers: Mapping[int, NDArray[Any]]) -> str:
    digest = hashlib.sha256()
    for layer, vectors in layers.items():
        digest.update(f"{layer} {vectors.dtype.str} {vectors.shape}".encode())
        digest.update(np.ascontiguousarray(vectors).tobytes())
    return digest.hexdigest()
