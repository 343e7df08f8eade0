"""What a measurement of a corpus as a whole is given: sentences, and the vectors of words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
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
from probes.extraction.collectors import Collector
from probes.extraction.shards import Shard, kept_words, row_of_each_text, shards_of
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
        view: the texts that the model has read: all sentences, each once, unless the measurement
            has a view of its own.
        stored: what was kept: word vectors, or what the measurement's own collector keeps.
        read: lets the model read a view once more, and gives what a collector finds in each shard;
            nothing is stored.
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
    read: Callable[[View, Collector], Iterator[tuple[Shard, Mapping[str, torch.Tensor]]]]
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
        """The row of each word of a split in `vectors.layer(…)`, in corpus order. Shape (n,).

        Collectors that keep a row for each word of plain texts keep them in the same order.
        """
        return np.concatenate(
            [
                np.arange(len(sentence)) + self._starts[self._text(sentence)]
                for sentence in self.corpus.splits[split]
            ]
        )

    def sentence_numbers(self, split: str) -> Ints:
        """The sentence of each word of a split, as its number in the split. Shape (n,)."""
        lengths = [len(sentence) for sentence in self.corpus.splits[split]]
        return np.repeat(np.arange(len(lengths)), lengths)

    def of_texts(self, part: str) -> NDArray[Any]:
        """What a collector of one row per text has kept, in the order of `view.texts`.

        Args:
            part: name of the array.
        """
        place = self.first_rows(np.ones(len(self.view.texts), dtype=np.int64))
        return np.concatenate(self.stored.arrays(part))[place]

    def of_sentences(self, split: str, part: str) -> NDArray[Any]:
        """The same of a split's sentences, in corpus order. One row per sentence."""
        return self.of_texts(part)[[self._text(s) for s in self.corpus.splits[split]]]

    def first_rows(self, n_rows: Ints) -> Ints:
        """Where the rows of each text begin in `stored`, shards one after the other.

        Args:
            n_rows: how many rows a collector gives each text. Shape (texts,).
        """
        return row_of_each_text(self._shards, n_rows)

    def in_several_windows(self, split: str) -> NDArray[np.bool_]:
        """Whether a sentence is longer than the model's window. Shape (sentences,)."""
        return self.long_texts[[self._text(s) for s in self.corpus.splits[split]]]

    @cached_property
    def long_texts(self) -> NDArray[np.bool_]:
        """Whether a text of the view is longer than the model's window. Shape (texts,)."""
        long = np.zeros(len(self.view.texts), dtype=bool)
        for shard in self._shards:
            long[shard.index[self.stored.long_texts(shard.number)]] = True
        return long

    def partition(self, split: str) -> Partition:
        """What intervals resample: documents, or sentences where the corpus names none."""
        return partition([sentence.document for sentence in self.corpus.splits[split]])

    def bar(self, n_steps: int) -> AbstractContextManager[Any]:
        """A progress bar, whose `update` takes the number of steps done."""
        return progress.bar(self.title, total=n_steps, unit="step")

    @cached_property
    def _shards(self) -> list[Shard]:
        return shards_of(self.view, self.stored.manifest["words_per_shard"])

    @cached_property
    def _starts(self) -> Ints:
        return self.first_rows(kept_words(self.view.texts))

    def _text(self, sentence: Sentence) -> int:
        return self.view.index[plain_text(sentence)]
