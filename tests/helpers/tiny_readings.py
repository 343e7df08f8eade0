"""Views of random text, read by tiny models, and what is then on disk."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tiny_models import FAMILIES, build

from probes.extraction.reading.attention_maps import AttentionCollector
from probes.extraction.reading.collectors import Collector, WordVectors
from probes.extraction.reading.encoder import Encoder
from probes.extraction.reading.encoding import StoreRequest, word_vectors
from probes.extraction.reading.padding import _BATCH_TOKENS
from probes.extraction.reading.shards import Shard, single_shard
from probes.extraction.reading.views import Text, View
from probes.extraction.reading.windows import Pooling

WORDS = ("light", "she", "counts", "the", "boats", "lightkeepers")


def encoder_of(name: str, kind: str = "") -> Encoder:
    """The encoder of a tiny model; by default of the family's class without a head."""
    kind = kind or FAMILIES[name].config.replace("Config", "Model")
    return Encoder(*build(name, kind), name=name, device="cpu")


def plain_input(encoder: Encoder, text: Text) -> dict[str, torch.Tensor]:
    """The input of a plain pass over one text."""
    (pieces,) = encoder.split([text])
    ids = torch.tensor([[*encoder.words.prefix, *pieces.ids, *encoder.words.suffix]])
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


def random_texts(n: int, seed: int = 0) -> list[Text]:
    """Texts of 1 to 20 words, some of which are kept."""
    rng = np.random.default_rng(seed)
    found = []
    for length in rng.integers(1, 21, n):
        start, end = sorted(rng.choice(length + 1, 2, replace=False))
        found.append(Text(tuple(map(str, rng.choice(WORDS, length))), (int(start), int(end))))
    return found


def random_view(n: int, seed: int = 0) -> View:
    """Distinct random texts."""
    return View("plain", tuple(dict.fromkeys(random_texts(n, seed))))


def reading_of(
    cache: Path, encoder: Encoder, view: View, layers: Sequence[int] | None = None
) -> StoreRequest:
    """The reading of word vectors, by default of all layers."""
    every = range(encoder.info.n_layers + 1)
    return word_vectors(cache, encoder.info, "float32", view, every if layers is None else layers)


def collected(
    encoder: Encoder, texts: Sequence[Text], collector: Collector, batch_tokens: int = 512
) -> dict[str, torch.Tensor]:
    """The arrays that a collector keeps of some texts."""
    shard = single_shard(View("plain", tuple(texts)))
    return encoder.encode(shard, encoder.split(texts), batch_tokens, collector)


def vectors_by_layer(
    encoder: Encoder, texts: Sequence[Text], pooling: Pooling = "mean", batch_tokens: int = 512
) -> list[torch.Tensor]:
    """The vectors of some texts' words at every layer. Each (words, hidden size)."""
    layers = range(encoder.info.n_layers + 1)
    found = collected(encoder, texts, WordVectors(layers, pooling, "float32"), batch_tokens)
    return list(found.values())


class Maps(AttentionCollector):
    """Keeps all attention maps."""

    name, version = "maps", 1
    parts = ()

    def __init__(self) -> None:
        self.found: list[tuple[int, torch.Tensor, torch.Tensor]] = []

    def bytes_of(self, *_: Any) -> int:
        return 0

    def start(self, *_: Any) -> None:
        self.found = []

    def take(self, block: int, maps: torch.Tensor, visible: torch.Tensor) -> None:
        self.found.append((block, maps, visible))

    def finish(self) -> dict[str, torch.Tensor]:
        return {}


def files_below(folder: Path) -> dict[str, bytes]:
    """The content of every file, by its place in `folder`."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def small_shards(monkeypatch: Any, n_tokens: int, n_batches: int = 1) -> None:
    """Let batches be of so many tokens, and shards of so many batches: a tiny corpus has several."""
    monkeypatch.setattr("probes.extraction.reading.shards._MOST_BATCHES", n_batches)
    monkeypatch.setitem(_BATCH_TOKENS, "cpu", n_tokens)


def shards_of_store(reading: StoreRequest) -> list[Shard]:
    """The shards of a store that has been begun."""
    store = reading.stored()
    assert store is not None
    return store.shards(reading.view)
