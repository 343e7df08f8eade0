"""Collectors that read attention maps of a sample of sentences and store nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from probes.data.sentence import Sentence
from probes.extraction.alignment import Pieces
from probes.extraction.padding import PaddedWindows
from probes.extraction.shards import Shard
from probes.families.attention.layout import WholeTexts
from probes.records.header import ModelRecord

PAIRS = 1 << 20
"""Maximum number of word pairs in a sample, which bounds memory and time for long sentences.
2,000 sentences of EWT have fewer."""


def sample(sentences: Sequence[Sentence], n: int, seed: int) -> list[int]:
    """Numbers of up to `n` sentences drawn without replacement, ascending.

    The sample is smaller where `n` sentences would have more than `PAIRS` pairs of words.
    """
    usable = [i for i, each in enumerate(sentences) if len(each) ** 2 <= PAIRS]
    drawn = np.random.default_rng(seed).permutation(usable)[:n].tolist()
    pairs = np.cumsum([len(sentences[i]) ** 2 for i in drawn])
    return sorted(drawn[: (pairs <= PAIRS).sum()])


class Live(WholeTexts):
    """A collector for `ModelContext.read`."""

    parts = ()

    def bytes_of(self, shard: Shard, model: ModelRecord) -> int:
        """Nothing is stored."""
        return 0


class PerText(Live):
    """Finds one tensor for each text that fits into the model's window; see `by_text`."""

    def start(self, shard: Shard, pieces: Sequence[Pieces]) -> None:
        """Begin a shard with nothing found."""
        super().start(shard, pieces)
        self.found: dict[int, torch.Tensor] = {}

    def finish(self) -> dict[str, torch.Tensor]:
        """Tensors by the text's place in the shard."""
        return {str(text): found for text, found in self.found.items()}


def by_text(
    read: Iterable[tuple[Shard, Mapping[str, torch.Tensor]]],
) -> dict[int, torch.Tensor]:
    """Tensors of a `PerText` collector by the text's place in the view.

    Args:
        read: the result of `ModelContext.read`.
    """
    return {
        int(shard.index[int(place)]): tensor
        for shard, found in read
        for place, tensor in found.items()
    }


class Together(Live):
    """Holds the maps of all blocks of a pass, then reads them together."""

    def prepare(self, windows: PaddedWindows) -> None:
        """Begin a pass."""
        super().prepare(windows)
        self._blocks: list[torch.Tensor] = []

    def take_whole(self, block: int, maps: torch.Tensor, visible: torch.Tensor) -> None:
        """Hold the maps of a block."""
        self._blocks.append(self.wanted(maps))

    def add(self, windows: PaddedWindows, output: Any) -> None:
        """Read the maps at the end of a pass."""
        if self._blocks:
            device = self._blocks[0].device  # a model may be spread over several
            self.read_together(torch.stack([x.to(device) for x in self._blocks], dim=1))
            self._blocks = []

    def wanted(self, maps: torch.Tensor) -> torch.Tensor:
        """Reduce a block's maps (texts, heads, length, length) to what to hold: by default all."""
        return maps

    def read_together(self, maps: torch.Tensor) -> None:
        """Read the maps of all blocks, as `wanted` returned them. Shape (texts, blocks, …)."""
        raise NotImplementedError
