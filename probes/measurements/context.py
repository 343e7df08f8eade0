"""Contexts of measurements: of a model that has read a corpus, of a task, and of two models."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from probes.common.arrays import Floats, Ints
from probes.common.terminal import progress
from probes.data.sentence import Corpus, Sentence
from probes.examples.examples import Examples
from probes.examples.scoring import Scorer
from probes.extraction.collectors import Collector
from probes.extraction.interventions import Intervention
from probes.extraction.shards import Shard, kept_words, row_of_each_text
from probes.extraction.sites import Sites
from probes.extraction.store import Store
from probes.extraction.vectors import Vectors
from probes.extraction.views import View, plain_text
from probes.measurements.probing import Fits, Labels, Probing, joined
from probes.measurements.stored_probes import Trained
from probes.records.header import ModelRecord
from probes.records.parameters import Parameters, of_layer, read_parameters
from probes.records.probe_spec import ProbeSpec
from probes.records.record import Extent
from probes.records.result import Result
from probes.statistics.partition import Partition, partition
from probes.tasks.task import Task
from probes.training.batches import Batches
from probes.training.dataset import ProbingData
from probes.training.fit import Draw
from probes.training.steps import fit_steps


@dataclass(frozen=True, kw_only=True)
class ModelContext:
    """A model that has read a corpus.

    Attributes:
        corpus: sentences by split, with their annotation.
        model: what is known about the model.
        extent: which layers to measure, and how many times.
        view: the texts that the model has read: all sentences, each once, unless the measurement
            has a view of its own, or the task one that hides words.
        stored: what was kept: word vectors, or what the measurement's own collector keeps.
        read: lets the model read a view once more, and gives what a collector finds in each shard;
            nothing is stored.
        read_changed: as `read`, under interventions and in one shard; see
            `probes.extraction.encoding.read_changed`.
        sites: finds where the model's passes can be changed.
        device: where to compute.
        options: the measurement's options.
        title: what progress bars call it.
        tasks: the tasks that were scored, with one probe family; none unless the measurement comes
            after scores.
    """

    corpus: Corpus
    model: ModelRecord
    extent: Extent
    view: View
    stored: Store
    read: Callable[[View, Collector], Iterator[tuple[Shard, Mapping[str, torch.Tensor]]]]
    read_changed: Callable[
        [View, Collector, Sequence[Sequence[Intervention]]],
        Iterator[tuple[int, Mapping[str, torch.Tensor]]],
    ]
    sites: Callable[[], Sites]
    device: torch.device
    options: Any
    title: str = ""
    tasks: tuple[TaskContext, ...] = ()

    @property
    def layers(self) -> tuple[int, ...]:
        """The layers to measure."""
        return tuple(self.extent)

    def bar(self, n_steps: int) -> AbstractContextManager[Any]:
        """A progress bar, whose `update` takes the number of steps done; training advances it."""
        return progress.bar(self.title, total=n_steps, unit="step")

    # The corpus, and what was read of it.

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

        Raises:
            TypeError: the model has read something else than the sentences as they are.
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

    @cached_property
    def _shards(self) -> list[Shard]:
        return self.stored.shards(self.view)

    @cached_property
    def _starts(self) -> Ints:
        return self.first_rows(kept_words(self.view.texts))

    def _text(self, sentence: Sentence) -> int:
        text = plain_text(sentence)
        if text not in self.view.index:
            raise TypeError(
                f"sentences were not read as they are, but in the {self.view.name} view"
            )
        return self.view.index[text]


@dataclass(frozen=True, kw_only=True)
class PairContext(ModelContext):
    """A model, and the base with which it is compared.

    Attributes:
        base: with the same sentences, but its own layers and vectors.
    """

    base: ModelContext


@dataclass(frozen=True, kw_only=True)
class TaskContext(ModelContext):
    """A task with its examples, its probes and their scores.

    Attributes:
        probing: what fits probes, and what is stored of the scores.
    """

    probing: Probing

    @property
    def data(self) -> ProbingData:
        """Features, labels and scorers of the task."""
        return self.probing.data

    @property
    def spec(self) -> ProbeSpec:
        """How probes are fitted."""
        return self.probing.spec

    def with_spec(self, spec: ProbeSpec) -> TaskContext:
        """The same with probes that are fitted in another way."""
        return replace(self, probing=replace(self.probing, spec=spec))

    @property
    def memory(self) -> int:
        """Bytes that fits may take."""
        return self.probing.memory

    @property
    def examples(self) -> Examples:
        """The task's examples."""
        return self.data.examples

    @property
    def task(self) -> Task:
        """The task."""
        return self.examples.task

    @property
    def scorers(self) -> Mapping[str, Scorer]:
        """Score predictions on dev and test."""
        return self.data.scorers

    @property
    def result(self) -> Result:
        """The scores that this evidence supports; scores themselves have none yet."""
        assert self.probing.scores is not None
        return self.probing.scores

    @property
    def trained(self) -> Mapping[str, Trained]:
        """The probes of the same task and family that other corpora have trained, by corpus."""
        return self.probing.trained

    def predicted(self, layers: Sequence[int]) -> NDArray[Any]:
        """What the first fit of each layer, whose scores are reported, predicts on test (L, n)."""
        arrays = self.probing.arrays
        assert arrays is not None
        places = [arrays["layers"].tolist().index(layer) for layer in layers]
        found: NDArray[Any] = arrays["predicted"][places, 0]
        return found

    def parameters(self, layers: Sequence[int]) -> Parameters:
        """Of the probes whose scores are reported; see `probes.records.parameters`.

        Layers that the cache does not have, or no longer, are fitted again.

        Raises:
            UserError: the file in the cache is damaged.
        """
        cache = self.probing.cache
        stored = read_parameters(cache, self.result.key) if cache else None
        found = dict(stored or {})
        if missing := [layer for layer in layers if of_layer(layer, "weight") not in found]:
            found.update(self.fits(missing, [Draw()]).parameters)
        return found

    def groups(
        self, layers: Sequence[int], n_cells: int, n_concatenated: int = 1
    ) -> Iterator[tuple[list[int], int]]:
        """The layers in groups that fit in memory, and the bytes in which to hold their features.

        Args:
            n_cells: see `probes.training.dataset.work_of`.
            n_concatenated: see there.
        """
        size, room = self.data.group_layers(self.memory, self.spec, n_cells, n_concatenated)
        for first in range(0, len(layers), size):
            yield list(layers[first : first + size]), room

    def training_batches(self, layers: Sequence[int], room: int = 0) -> Batches:
        """The training split with the task's labels."""
        return self.data.batches("train", self.data.features(layers, room)["train"])

    def fits(
        self,
        layers: Sequence[int],
        draws: Sequence[Draw],
        labels: Labels | None = None,
        kept: NDArray[Any] | None = None,
    ) -> Fits:
        """Fit probes at some layers, in groups that fit in memory, and predict dev and test.

        Args:
            draws: seed and training sample of each of the K fits of a layer.
            labels: other labels than the task's; one set for all fits, or one for each.
            kept: which training examples each fit of a layer has, in the order of the split (K, n);
                by default all.

        Raises:
            TaskError: a dev loss is not finite.
        """
        groups, data = list(self.groups(layers, len(draws))), self.data
        steps = fit_steps(self.spec, data.sentences("train"), data.n_outputs, draws, kept)
        with self.bar(len(groups) * steps):
            return joined(self.probing.fits(*group, draws, labels, kept) for group in groups)
