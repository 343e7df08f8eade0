"""Vectors of sentences: means of the vectors of their words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from probes.extraction.reading.alignment import Pieces
from probes.extraction.reading.collectors import WordVectors
from probes.extraction.reading.shards import Shard, kept_words
from probes.records.header import ModelRecord


class SentenceVectors(WordVectors):
    """Collects the mean of the word vectors of each text. Each part (texts, hidden size)."""

    name = "sentence vectors"

    def bytes_of(self, shard: Shard, model: ModelRecord) -> int:
        """Bytes of one float32 vector for each text and layer."""
        return 4 * len(self.pairs) * len(shard.texts) * model.hidden_size

    def start(self, shard: Shard, pieces: Sequence[Pieces]) -> None:
        """Begin a shard without vectors."""
        super().start(shard, pieces)
        self._shard = shard

    def finish(self) -> dict[str, torch.Tensor]:
        """The vectors of each layer."""
        lengths = kept_words(self._shard.texts)[:, None].astype(np.float32)
        return {
            part: torch.from_numpy(np.add.reduceat(x.cpu().numpy(), self._shard.starts) / lengths)
            for part, x in super().finish().items()
        }
