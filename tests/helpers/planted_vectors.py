"""A context of measurements of a corpus in which a test says what the vectors of words are."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from probes.data.sentence import SPLITS, Corpus, Sentence
from probes.statistics.partition import partition


@dataclass
class PlantedVectors:
    """Stands for a `ModelContext`.

    Args:
        vectors_of: gives the vectors of a sentence at a layer. Shape (words, H).
        long: whether a sentence is longer than the model's window.
    """

    corpus: Corpus
    layers: tuple[int, ...]
    options: Any
    vectors_of: Callable[[Sentence, int], np.ndarray]
    long: Callable[[Sentence], bool] = lambda sentence: False

    def __post_init__(self):
        self.steps = 0
        every = [sentence for split in SPLITS for sentence in self.corpus.splits[split]]
        self.all_rows = {
            layer: np.concatenate([self.vectors_of(s, layer) for s in every]).astype(np.float32)
            for layer in self.layers
        }
        self.vectors = SimpleNamespace(layer=self.all_rows.get)

    def rows(self, split):
        lengths = {x: sum(map(len, self.corpus.splits[x])) for x in SPLITS}
        first = sum(lengths[x] for x in SPLITS[: SPLITS.index(split)])
        return np.arange(first, first + lengths[split])

    def words(self, split, layer):
        return self.all_rows[layer][self.rows(split)]

    def sentence_numbers(self, split):
        lengths = [len(sentence) for sentence in self.corpus.splits[split]]
        return np.repeat(np.arange(len(lengths)), lengths)

    def partition(self, split):
        return partition([sentence.document for sentence in self.corpus.splits[split]])

    def in_several_windows(self, split):
        return np.array([self.long(sentence) for sentence in self.corpus.splits[split]])

    @contextmanager
    def bar(self, n_steps):
        yield SimpleNamespace(update=self._step)
        assert self.steps == n_steps

    def _step(self, n):
        self.steps += n
