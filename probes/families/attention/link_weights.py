"""Attention between chosen words of a text: the collector behind `links`."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np
import torch

from probes.common.arrays import Floats
from probes.extraction.alignment import Pieces
from probes.extraction.attention_maps import AttentionCollector
from probes.extraction.padding import PaddedWindows
from probes.extraction.shards import Shard
from probes.extraction.views import Text
from probes.families.attention.collector import layout_of, uniform
from probes.families.attention.links import Link
from probes.records.header import ModelRecord


class LinkWeights(AttentionCollector):
    """Weight of each link: the greatest attention from a word of one span to one of the other.

    The part ``weights`` (links, blocks, heads + 1) has the links text by text. The last head
    attends to all visible tokens alike. Texts of several windows have NaN.

    Args:
        links: links of every text of the view.
    """

    name = "links"
    parts = ("weights",)

    def __init__(self, links: Mapping[Text, Sequence[Link]]) -> None:
        self._links = links

    @property
    def annotation(self) -> str:
        """Digest of the links."""
        links = [(text.words, links) for text, links in self._links.items()]
        return hashlib.sha256(repr(links).encode()).hexdigest()

    def bytes_of(self, shard: Shard, model: ModelRecord) -> int:
        """Upper bound, as no known model has heads of fewer than 32 dimensions."""
        n_links = sum(len(self._links[text]) for text in shard.texts)
        return 4 * model.n_layers * (1 - -model.hidden_size // 32) * n_links

    def start(self, shard: Shard, pieces: Sequence[Pieces]) -> None:
        """Begin a shard without weights."""
        self._pieces, self._texts = pieces, [self._links[text] for text in shard.texts]
        self._first = np.cumsum([0, *map(len, self._texts)])
        self._weights: dict[int, Floats] = {}

    def prepare(self, windows: PaddedWindows) -> None:
        """Find the pairs of words of the links of a pass."""
        self._layout = layout_of(windows, self._pieces)
        pairs = [
            (row, one, other, link)
            for row, text in enumerate(self._layout.text.tolist())
            for link, (span, to) in enumerate(self._texts[text], start=self._first[text])
            for one in range(*span)
            for other in range(*to)
        ]
        self._pairs = np.array(pairs, dtype=np.int64).reshape(-1, 4).T

    def take(self, block: int, maps: torch.Tensor, visible: torch.Tensor) -> None:
        """Keep the weights of the links of whole texts."""
        shape = self._first[-1], maps.shape[1] + 1
        weights = self._weights.setdefault(block, np.full(shape, np.nan, np.float32))
        row, one, other, link = self._pairs
        if not len(link):
            return
        layout = self._layout = self._layout.to(maps.device)
        both = [layout.between_words(x[layout.window]) for x in (maps, uniform(visible))]
        of_pairs = torch.cat(both, dim=1)[row, :, one, other].cpu().numpy()
        first = np.flatnonzero(np.diff(link, prepend=-1))
        weights[link[first]] = np.maximum.reduceat(of_pairs, first)

    def finish(self) -> dict[str, torch.Tensor]:
        """The weights of the shard."""
        weights = [self._weights[block] for block in sorted(self._weights)]
        return {"weights": torch.from_numpy(np.stack(weights, axis=1))}
