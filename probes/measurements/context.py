"""Contexts of measurements: a model that has read a corpus, a task, or two models."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from probes.common.arrays import Floats, Ints
from probes.common.terminal import progress
from probes.data.sentence import Corpus, Sentence
from probes.examples.examples import Examples
from probes.examples.scoring import Scorer
from probes.extraction.changing.interventions import Intervention
from probes.extraction.changing.sites import Sites
from probes.extraction.reading.alignment import WordTokenizer
from probes.extraction.reading.collectors import Collector
from probes.extraction.reading.encoder import Encoder
from probes.extraction.reading.shards import Shard, kept_words, row_of_each_text
from probes.extraction.reading.store import Store
from probes.extraction.reading.vectors import StoredVectors
from probes.extraction.reading.views import View, plain_text
from probes.measurements.layer_fits import Fits, Labels, concatenated_fits
from probes.measurements.trained_probes import Trained
from probes.records.header import ModelRecord
from probes.records.parameters import Parameters, of_layer, read_parameters
from probes.records.probe_spec import ProbeSpec
from probes.records.record import FitsPerLayer
from probes.records.record_files import Arrays
from probes.records.result import Result
from probes.records.values import Estimate
from probes.statistics.bootstrap import means
from probes.statistics.partition import Partition, partition
from probes.tasks.task import Task
from probes.tasks.validation import TaskError
from probes.training.batches import Batches
from probes.training.dataset import ProbingData
from probes.training.families import family_of, is_convex, reads_tokens
from probes.training.family import FittedProbes
from probes.training.fit import FitSeed, first_margins, fit, fit_steps
from probes.training.fitted import parameters_by_name


@dataclass(frozen=True, kw_only=True)
class ModelContext:
    """A model that has read a corpus.

    Attributes:
        corpus: sentences by split, with their annotation.
        model: record of the model.
        extent: number of repetitions by layer to measure.
        view: the texts that the model has read. These are all sentences, each once, unless the
            measurement has its own view, or the task hides words.
        stored: word vectors, or the parts of the measurement's own collector.
        read: reads a view again and yields each shard with the collector's parts; nothing is
            stored.
        read_changed: like `read`, under interventions and in one shard; see
            `probes.extraction.reading.encoding.read_changed`.
        sites: finds the places where the model's passes can be changed.
        device: device to compute on.
        options: the measurement's options.
        title: title of progress bars.
        tokenizer: splits texts into pieces; None for given vectors.
        language_model: the model with its head, to generate with.
        tasks: scored tasks with one probe family; empty unless the measurement comes after scores.
    """

    corpus: Corpus
    model: ModelRecord
    extent: FitsPerLayer
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
    tokenizer: WordTokenizer | None = None
    language_model: Callable[[], Encoder] | None = None
    tasks: tuple[TaskContext, ...] = ()

    @property
    def layers(self) -> tuple[int, ...]:
        """The layers to measure."""
        return tuple(self.extent)

    def bar(self, n_steps: int) -> AbstractContextManager[Any]:
        """A progress bar; `update` takes the number of steps done, and training advances it."""
        return progress.bar(self.title, total=n_steps, unit="step")

    # The corpus and the parts read from it.

    @property
    def vectors(self) -> StoredVectors:
        """The vectors of all words.

        Raises:
            TypeError: the measurement has its own collector.
        """
        if not isinstance(self.stored, StoredVectors):
            raise TypeError("no word vectors: this measurement has its own collector")
        return self.stored

    def words(self, split: str, layer: int) -> Floats:
        """The vectors of a split's words at one layer, in corpus order, float32. Shape (n, H)."""
        vectors: Floats = self.vectors.layer(layer)[self.rows(split)].astype(np.float32)
        return vectors

    def rows(self, split: str) -> Ints:
        """The row of each word of a split in `vectors.layer(…)`, in corpus order. Shape (n,).

        Other collectors with one row per word of plain texts use the same order.

        Raises:
            TypeError: the view is not "plain".
        """
        return np.concatenate(
            [
                np.arange(len(sentence)) + self._starts[self._text(sentence)]
                for sentence in self.corpus.splits[split]
            ]
        )

    def sentence_numbers(self, split: str) -> Ints:
        """Number of each word's sentence in the split. Shape (n,)."""
        lengths = [len(sentence) for sentence in self.corpus.splits[split]]
        return np.repeat(np.arange(len(lengths)), lengths)

    def of_texts(self, part: str) -> NDArray[Any]:
        """A collector's part with one row per text, in the order of `view.texts`."""
        rows = self.first_rows(np.ones(len(self.view.texts), dtype=np.int64))
        return np.concatenate(self.stored.arrays(part))[rows]

    def of_sentences(self, split: str, part: str) -> NDArray[Any]:
        """A collector's part for the sentences of a split, in corpus order, one row each."""
        return self.of_texts(part)[[self._text(s) for s in self.corpus.splits[split]]]

    def first_rows(self, n_rows: Ints) -> Ints:
        """First row of each text in the concatenated shards of `stored`. Shape (texts,).

        Args:
            n_rows: number of rows of each text. Shape (texts,).
        """
        return row_of_each_text(self._shards, n_rows)

    def in_several_windows(self, split: str) -> NDArray[np.bool_]:
        """True for sentences longer than the model's window. Shape (sentences,)."""
        return self.long_texts[[self._text(s) for s in self.corpus.splits[split]]]

    @cached_property
    def long_texts(self) -> NDArray[np.bool_]:
        """True for texts of the view longer than the model's window. Shape (texts,)."""
        long = np.zeros(len(self.view.texts), dtype=bool)
        for shard in self._shards:
            long[shard.index[self.stored.long_texts(shard.number)]] = True
        return long

    def mean(self, split: str, values: Floats, mask: NDArray[np.bool_] | None = None) -> Estimate:
        """Mean over the words of a split, with a 95 % interval; see `Row.estimated`.

        Args:
            values: a number for each word. Shape (n,).
            mask: True for words to average; by default all. Shape (n,).
        """
        clusters = self.partition(split)
        cluster = clusters.of_sentence[self.sentence_numbers(split)]
        if mask is not None:
            values, cluster = values[mask], cluster[mask]
        (estimate,) = means(values[:, None], cluster, clusters.n, clusters.clusters)
        return estimate

    def partition(self, split: str) -> Partition:
        """The clusters that intervals resample: documents, or else sentences."""
        return partition([sentence.document for sentence in self.corpus.splits[split]], split)

    @cached_property
    def _shards(self) -> list[Shard]:
        return self.stored.shards(self.view)

    @cached_property
    def _starts(self) -> Ints:
        return self.first_rows(kept_words(self.view.texts))

    def _text(self, sentence: Sentence) -> int:
        text = plain_text(sentence)
        if text not in self.view.index:
            raise TypeError(f"sentences were read in the {self.view.name!r} view, not in 'plain'")
        return self.view.index[text]


@dataclass(frozen=True, kw_only=True)
class PairContext(ModelContext):
    """A model and the base to compare it with.

    Attributes:
        base: context of the base, with the same sentences but other layers and vectors.
    """

    base: ModelContext


@dataclass(frozen=True, kw_only=True)
class TaskContext(ModelContext):
    """A task with examples, probes and scores.

    Attributes:
        data: features, labels and scorers of the task.
        spec: settings of probes.
        memory: bytes that fits may use.
        scores: the result that this evidence supports; None while scores are measured.
        predictions: the arrays of that result.
        cache: folder in which the result's parameters may be stored.
        trained: probes of the same task and family trained on other corpora, by corpus.
        elsewhere: these corpora, by name.
        negatives: reads the corpus of `--threshold-from` (all in train), its view and vectors.
    """

    data: ProbingData
    spec: ProbeSpec
    memory: int
    scores: Result | None = None
    predictions: Arrays | None = None
    cache: Path | None = None
    trained: Mapping[str, Trained] = field(default_factory=dict)
    elsewhere: Mapping[str, Corpus] = field(default_factory=dict)
    negatives: Callable[[], tuple[Corpus, View, StoredVectors]] | None = None

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
        """Scorers of predictions, by split."""
        return self.data.scorers

    @property
    def result(self) -> Result:
        """The scores that this evidence supports; not available while measuring scores."""
        assert self.scores is not None
        return self.scores

    @property
    def has_least_groups(self) -> bool:
        """Whether layers are already fitted one by one, with no features held in memory."""
        return self.data.group_layers(self.memory, self.spec, 1) == (1, 0)

    def predicted(self, layers: Sequence[int]) -> NDArray[Any]:
        """Test predictions of the reported fit of each layer. Shape (L, n)."""
        assert self.predictions is not None
        stored_layers = self.predictions["layers"].tolist()
        indices = [stored_layers.index(layer) for layer in layers]
        predicted: NDArray[Any] = self.predictions["predicted"][indices, 0]
        return predicted

    def parameters(self, layers: Sequence[int]) -> Parameters:
        """Parameters of the reported probes; see `probes.records.parameters`.

        Layers that are missing in the cache are fitted again.

        Raises:
            UserError: the file in the cache is damaged.
        """
        stored = read_parameters(self.cache, self.result.key) if self.cache else None
        parameters = dict(stored or {})
        if missing := [layer for layer in layers if of_layer(layer, "weight") not in parameters]:
            parameters.update(self.fits(missing, [FitSeed()]).parameters)
        return parameters

    def scored_probes(self, layers: Sequence[int]) -> list[torch.Tensor]:
        """Weight (L, 1, C, H) and bias (L, 1, C) of the reported probes of a convex family.

        They are on the CPU. See `parameters`.
        """
        return probes_of(self.parameters(layers), layers)

    def groups(
        self, layers: Sequence[int], n_cells: int, n_concatenated: int = 1
    ) -> Iterator[tuple[list[int], int]]:
        """The layers in groups that fit in memory, and the bytes in which to hold their features.

        Args:
            n_cells, n_concatenated: see `ProbingData.group_layers`.
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
        seeds: Sequence[FitSeed],
        labels: Labels | None = None,
        in_training: NDArray[Any] | None = None,
        *,
        from_scored: bool = False,
    ) -> Fits:
        """Fit probes at some layers, in groups that fit in memory, and predict dev and test.

        Args:
            seeds: seed and training sample of each of the K fits of a layer.
            labels: other labels than the task's; one set for all fits, or one per fit.
            in_training: training examples of each fit, in the split's order (K, n); by default all.
            from_scored: whether convex classifiers start from the reported probes, which is faster
                if their optimum is near.

        Raises:
            TaskError: a dev loss is not finite.
        """
        groups, data = list(self.groups(layers, len(seeds))), self.data
        from_scored &= bool(data.n_outputs) and is_convex(self.spec)
        # Before features are held: probes that are not stored are fitted again.
        scored = self.parameters(layers) if from_scored else None
        sentences = data.sentences("train")
        if is_convex(self.spec) and reads_tokens(self.spec):  # fitted to single tokens
            sentences = sentences.repeat_interleave(torch.from_numpy(data.lengths("train")))
        steps = fit_steps(self.spec, sentences, data.n_outputs, seeds, in_training)
        with self.bar(len(groups) * steps):
            return concatenated_fits(
                self._fits_of_group(
                    layers,
                    room,
                    seeds,
                    labels,
                    in_training,
                    probes_of(scored, layers) if scored else None,
                )
                for layers, room in groups
            )

    def _fits_of_group(
        self,
        layers: Sequence[int],
        room: int,
        seeds: Sequence[FitSeed],
        labels: Labels | None,
        in_training: NDArray[Any] | None,
        start: list[torch.Tensor] | None,
    ) -> Fits:
        """Fit layers that fit in memory together, which is freed on return.

        Args:
            room: bytes in which features may be held; see `ProbingData.features`.
        """
        data, spec = self.data, self.spec
        standardisation = data.read_by(spec, layers, room)
        features, layers_read = standardisation.features, data.layers_read(spec, layers)
        other_labels = {split: data.standardised(array) for split, array in (labels or {}).items()}
        train = data.batches("train", features["train"], other_labels, in_training)
        # Distances of `MeanDifference` are those of vectors before they are standardised.
        train = replace(train, scale=standardisation.last_scale)
        dev = data.batches("dev", features["dev"], other_labels)
        strengths = None
        if self.scores is not None:
            # Evidence concerns the scored probe, and so uses the same strength.
            rows = [self.scores.at("strength", layer, "train") for layer in layers]
            strengths = torch.tensor([row.value for row in rows if row], dtype=torch.float64)
        fitted = fit(train, dev, data.n_outputs, spec, seeds, strengths, start)
        unit = None if data.n_outputs else data.unit
        self._require_finite(fitted)
        predicted, margins = {}, {}
        for split in ("dev", "test"):
            predicted[split] = data.predictions(fitted, features[split], spec)
            if data.ordered:
                margins[split] = first_margins(fitted, features[split], spec).cpu().numpy()
        return Fits(
            predicted,
            fitted.strength.cpu().numpy(),
            fitted.stopped.cpu().numpy(),
            fitted.dev_loss.cpu().double().numpy() * data.unit[1] ** 2,
            family_of(spec).n_parameters([p[0, 0] for p in fitted.parameters]),
            parameters_by_name(layers, standardisation, fitted, unit, layers_read),
            margins,
        )

    def _require_finite(self, fitted: FittedProbes) -> None:
        if not fitted.dev_loss.isfinite().all():
            raise TaskError(
                f"Task {self.data.examples.task.name!r}, {self.spec.family} probes: the dev loss "
                "is not finite, probably because labels or vectors are too large; scale the "
                "labels, or leave the task out with --tasks."
            )


def probes_of(parameters: Parameters, layers: Sequence[int]) -> list[torch.Tensor]:
    """Weight (L, 1, C, H) and bias (L, 1, C) of the probes of some layers, on the CPU."""
    return [
        torch.from_numpy(np.stack([parameters[of_layer(layer, name)] for layer in layers]))[:, None]
        for name in ("weight", "bias")
    ]


def rows_of(
    parameters: list[torch.Tensor], layers: Sequence[int], some: Sequence[int]
) -> list[torch.Tensor]:
    """Parameters of some layers, given those of `layers` along the first dimension."""
    index = [list(layers).index(layer) for layer in some]
    return [p[index] for p in parameters]
