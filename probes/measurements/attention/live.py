"""Reading attention maps of a sample of sentences, with nothing stored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from probes.data.sentence import Sentence
from probes.extraction.alignment import Pieces
from probes.extraction.padding import PaddedWindows
from probes.extraction.shards import Shard
from probes.measurements.attention.layout import WholeTexts
from probes.records.header import ModelRecord

PAIRS = 1 << 20
"""The most pairs of words of all sentences of a sample, which bounds memory and time where they
are long: 2,000 sentences of EWT have fewer."""


def sample(sentences: Sequence[Sentence], n: int, seed: int) -> list[int]:
    """The numbers of at most `n` of the sentences, drawn without replacement, ascending.

    There are fewer if more would have too many pairs of words (`PAIRS`); a longer sentence than
    that is never drawn.
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
        """See `Collector`."""
        super().start(shard, pieces)
        self.found: dict[int, torch.Tensor] = {}

    def finish(self) -> dict[str, torch.Tensor]:
        """What was found, by the text's place in the shard."""
        return {str(text): found for text, found in self.found.items()}


def by_text(
    read: Iterable[tuple[Shard, Mapping[str, torch.Tensor]]],
) -> dict[int, torch.Tensor]:
    """What a collector `PerText` finds, by the text's place in the view.

    Args:
        read: what `ModelContext.read` gives.
    """
    return {
        int(shard.index[int(place)]): tensor
        for shard, found in read
        for place, tensor in found.items()
    }


class Together(Live):
    """Holds what is wanted of all blocks of a pass, until they are read together."""

    def prepare(self, windows: PaddedWindows) -> None:
        """See `Collector`."""
        super().prepare(windows)
        self._blocks: list[torch.Tensor] = []

    def take_whole(self, block: int, maps: torch.Tensor, visible: torch.Tensor) -> None:
        """See `WholeTexts`."""
        self._blocks.append(self.wanted(maps))

    def add(self, windows: PaddedWindows, output: Any) -> None:
        """See `Collector`."""
        if self._blocks:
            device = self._blocks[0].device  # a model may be spread over several
            self.read_together(torch.stack([x.to(device) for x in self._blocks], dim=1))
            self._blocks = []

    def wanted(self, maps: torch.Tensor) -> torch.Tensor:
        """What is held of one block's maps (texts, heads, length, length): all of them."""
        return maps

    def read_together(self, maps: torch.Tensor) -> None:
        """Take what is kept of all blocks.

        Args:
            maps: as `wanted` returns them, of the texts of `layout`. Shape (texts, blocks, …).
        """
        raise NotImplementedError
