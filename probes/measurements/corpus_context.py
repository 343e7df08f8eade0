"""What a measurement of a corpus as a whole is given: sentences, and the vectors of words."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from probes.common.arrays import Floats, Ints
from probes.common.terminal import progress
from probes.data.sentence import Corpus, Sentence
from probes.extraction.shards import Shard, shards_of
from probes.extraction.store import Store
from probes.extraction.vectors import Vectors
from probes.extraction.views import View, plain_text
from probes.records.header import ModelRecord
from probes.statistics.partition import Partition, partition


@dataclass(frozen=True)
class CorpusContext:
    """For `CorpusMeasurement.compute`.

    Attributes:
        corpus: sentences by split, with their annotation.
        model: what is known about the model.
        layers: the layers to measure.
        view: the texts that the model has read: all sentences, each once.
        stored: what was kept: word vectors, or what the measurement's own collector keeps.
        device: where to compute.
        options: the measurement's options.
        title: what progress bars call it.
        base: the same of the model that this one is compared with; see `PairMeasurement`.
    """

    corpus: Corpus
    model: ModelRecord
    layers: tuple[int, ...]
    view: View
    stored: Store
    device: torch.device
    options: Any
    title: str = ""
    base: CorpusContext | None = None

    @property
    def vectors(self) -> Vectors:
        """The vectors of all words.

        Raises:
            TypeError: the measurement's own collector has kept something else.
        """
        if not isinstance(self.stored, Vectors):
            raise TypeError("no word vectors: this measurement has a collector of its own")
        return self.stored

    def words(self, split: str, layer: int) -> Floats:
        """The vectors of a split's words at one layer, in corpus order, float32. Shape (n, H)."""
        vectors: Floats = self.vectors.layer(layer)[self.rows(split)].astype(np.float32)
        return vectors

    def rows(self, split: str) -> Ints:
        """The row of each word of a split in `vectors.layer(…)`, in corpus order. Shape (n,)."""
        return np.concatenate(
            [
                np.arange(len(sentence)) + self.vectors.starts[self._text(sentence)]
                for sentence in self.corpus.splits[split]
            ]
        )

    def sentence_numbers(self, split: str) -> Ints:
        """The sentence of each word of a split, as its number in the split. Shape (n,)."""
        lengths = [len(sentence) for sentence in self.corpus.splits[split]]
        return np.repeat(np.arange(len(lengths)), lengths)

    def of_sentences(self, split: str, part: str) -> NDArray[Any]:
        """What a collector of one row per text has kept of a split's sentences, in corpus order.

        Args:
            part: name of the array.

        Returns:
            one row per sentence, of whatever shape the collector gives it.
        """
        place = np.empty(len(self.view.texts), dtype=np.int64)
        place[np.concatenate([shard.index for shard in self._shards])] = np.arange(len(place))
        rows = np.concatenate(self.stored.arrays(part))
        return rows[place[[self._text(s) for s in self.corpus.splits[split]]]]

    def in_several_windows(self, split: str) -> NDArray[np.bool_]:
        """Whether a sentence is longer than the model's window. Shape (sentences,)."""
        long = {
            int(shard.index[place])
            for shard in self._shards
            for place in self.stored.long_texts(shard.number)
        }
        return np.array([self._text(s) in long for s in self.corpus.splits[split]], dtype=bool)

    def partition(self, split: str) -> Partition:
        """What intervals resample: documents, or sentences where the corpus names none."""
        return partition([sentence.document for sentence in self.corpus.splits[split]])

    def bar(self, n_steps: int) -> AbstractContextManager[Any]:
        """A progress bar, whose `update` takes the number of steps done."""
        return progress.bar(self.title, total=n_steps, unit="step")

    @cached_property
    def _shards(self) -> list[Shard]:
        return shards_of(self.view, self.stored.manifest["words_per_shard"])

    def _text(self, sentence: Sentence) -> int:
        return self.view.index[plain_text(sentence)]
