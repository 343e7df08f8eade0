"""Models whose attention maps a test says, and contexts in which they are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from probes.data.sentence import Corpus
from probes.extraction.alignment import Pieces
from probes.extraction.attention_maps import AttentionCollector
from probes.extraction.encoder import Encoder
from probes.extraction.encoding import read
from probes.extraction.padding import pad_windows
from probes.extraction.shards import Shard, shards_of
from probes.extraction.views import Text, View
from probes.extraction.windows import windows_of_text

CLS, SEP = 1, 2


@dataclass(frozen=True)
class PlantedModel:
    """A model of one token per word, between two special ones.

    Attributes:
        maps: gives those of a text. Shape (blocks, heads, words + 2, words + 2).
        window: its size in tokens.
    """

    maps: Callable[[Text], np.ndarray]
    window: int = 64
    texts_at_once: int = 3

    def read(
        self, view: View, collector: AttentionCollector
    ) -> Iterator[tuple[Shard, Mapping[str, torch.Tensor]]]:
        """As `ModelContext.read`, in small shards and passes."""
        for shard in shards_of(view, [i // 3 for i in range(len(view.texts))]):
            pieces = [
                Pieces(3 + np.arange(len(text.words)), np.arange(len(text.words) + 1), 0)
                for text in shard.texts
            ]
            collector.start(shard, pieces)
            for first in range(0, len(shard.texts), self.texts_at_once):
                batch = range(first, min(first + self.texts_at_once, len(shard.texts)))
                self._pass(shard, pieces, batch, collector)
            yield shard, collector.finish()

    def _pass(
        self, shard: Shard, pieces: list[Pieces], batch: range, collector: AttentionCollector
    ) -> None:
        windows = [
            window
            for i in batch
            for window in windows_of_text(
                pieces[i],
                shard.texts[i].keep,
                "mean",
                capacity=self.window - 2,
                prefix=[CLS],
                suffix=[SEP],
                text=i,
            )
        ]
        given = pad_windows(windows, 0, n_prefix=1, n_suffix=1)
        collector.prepare(given)
        mask = given.inputs["attention_mask"].bool()
        length = mask.shape[1]
        planted = [torch.from_numpy(self.maps(shard.texts[window.text])) for window in windows]
        n_blocks, n_heads = planted[0].shape[:2]
        # Rows of padding attend to something, as in a model.
        every = torch.zeros(len(windows), n_blocks, n_heads, length, length)
        every[..., 0] = 1.0
        for place, (window, maps) in enumerate(zip(windows, planted, strict=True)):
            n = len(window.ids)
            every[place, :, :, :n] = 0
            every[place, :, :, :n, :n] = maps[..., :n, :n]
        visible = mask[:, None].expand(-1, length, length)
        for block in range(n_blocks):
            collector.take(block + 1, every[:, block], visible)
        collector.add(given, None)


def context_of(
    corpus: Corpus, model: PlantedModel | Encoder, n_blocks: int = 2, **more: Any
) -> Any:
    """Stands for a `ModelContext` whose measurement reads the model live."""
    reads = model.read if isinstance(model, PlantedModel) else (lambda v, c: read(v, c, model, 64))
    return SimpleNamespace(
        corpus=corpus,
        model=SimpleNamespace(n_layers=n_blocks, name="planted"),
        layers=tuple(range(1, n_blocks + 1)),
        read=reads,
        device=torch.device("cpu"),
        **more,
    )


def eager_maps(encoder: Encoder, text: Text) -> np.ndarray:
    """The maps that a model itself returns of one text. Shape (blocks, heads, length, length)."""
    (pieces,) = encoder.split([text])
    ids = torch.tensor([[*encoder.words.prefix, *pieces.ids, *encoder.words.suffix]])
    used = encoder.model.config._attn_implementation
    encoder.model.set_attn_implementation("eager")
    with torch.no_grad():
        output = encoder.model(
            input_ids=ids, attention_mask=torch.ones_like(ids), output_attentions=True
        )
    encoder.model.set_attn_implementation(used)
    return torch.stack(output.attentions)[:, 0].numpy()
