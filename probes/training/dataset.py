"""The data of a task that probes are trained on and scored by, from examples and stored vectors."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from probes.common.arrays import Ints
from probes.data.sentence import SPLITS
from probes.examples.examples import Examples
from probes.examples.scoring import Scorer
from probes.extraction.reading.vectors import StoredVectors
from probes.extraction.reading.views import View
from probes.records.probe_spec import ProbeSpec
from probes.statistics.metrics import ranks_margins, weighs_classes
from probes.statistics.sums import ratio
from probes.tasks.task import layers_at
from probes.training.bags import Bags
from probes.training.batches import Batches, batch_bounds
from probes.training.cached_features import CachedOnce, Memory
from probes.training.families import MULTI_LAYER, is_seeded, reads_tokens
from probes.training.family import FittedProbes
from probes.training.features import Concatenated, Features, SideBySide
from probes.training.fit import predict
from probes.training.memory_plan import Work, group_layers
from probes.training.standardisation import SpanRows, Standardisation, standardise
from probes.training.trainer import fits_at_once

Array = NDArray[Any]

T = TypeVar("T")

_MEMORY: defaultdict[torch.device, Memory] = defaultdict(Memory)
"""Holds features by device, of all tasks and models of this process."""


_NARROW = 64
"""Dimensions to which `MULTI_LAYER` probes project the vectors of each layer, at most."""


class ProbingData:
    """Features, labels and weights of one task.

    Args:
        project: dimensions to project each span's vector to; None for no projection.

    Attributes:
        n_outputs: number of classes; 0 for a regression.
        scorers: scorers of dev and test.
        unit: mean and standard deviation by which numbers are standardised, those of train: how
            fast Adam learns a number depends on its size.
        sets: the label sets of a multi-label task; see `probes.training.batches.Batches`.
        width: H, features of an example.
        width_read: features of the blocks read for an example, including those that are projected.
        n_layers: layers of the model, including the embedding layer.
        vectors: the stored vectors.
        spans: by split; first and end row of each example's span in `vectors`, once per span. Each
            (n, 2). Those of train are in training order.
    """

    def __init__(
        self,
        examples: Examples,
        view: View,
        vectors: StoredVectors,
        device: torch.device,
        *,
        project: int | None,
    ) -> None:
        self.examples, self.device = examples, device
        self.n_outputs = len(examples.classes)
        self.sets = self._sets()
        self.unit = (0.0, 1.0) if examples.classes else label_unit(examples.targets("train"))
        self.scorers = {split: Scorer(examples, split) for split in ("dev", "test")}
        self.vectors, self._project = vectors, project
        self.n_layers = vectors.n_layers
        self._order = training_order(examples.splits["train"].sentence)
        self.spans = {split: examples.rows(split, view, vectors) for split in SPLITS}
        self.spans["train"] = [span[self._order] for span in self.spans["train"]]
        hidden = vectors.manifest["model"]["hidden_size"]
        self.width = (project or hidden) * examples.n_spans
        # A block is in memory both before and after its projection.
        self.width_read = (hidden if project is None else project + hidden) * examples.n_spans

    @property
    def as_margins(self) -> bool:
        """Whether predictions are margins, which the headline metric ranks."""
        return ranks_margins(self.examples.task.metric)

    @property
    def ordered(self) -> bool:
        """Whether ranking metrics are computed: of two classes of texts, or of given vectors."""
        task, given_vectors = self.examples.task, not self.vectors.manifest["model"]["window"]
        two = task.kind == "classification" and self.n_outputs == 2
        return two and (task.shape == "text" or given_vectors)

    def group_layers(
        self, memory: int, spec: ProbeSpec, n_cells: int, n_concatenated: int = 1
    ) -> tuple[int, int]:
        """`probes.training.memory_plan.group_layers` for this task.

        Args:
            n_cells: cells of a layer that are fitted at once: those of all draws, or of an online
                code one for each prior.
            n_concatenated: layers whose features one probe reads.
        """
        n_features, n_read = n_concatenated * self.width, n_concatenated * self.width_read
        n_examples = sum(len(part.examples) for part in self.examples.splits.values())
        n_tokens = 0
        if reads_tokens(spec):
            lengths = np.concatenate([self.lengths(split) for split in SPLITS])
            n_examples, n_tokens = int(lengths.sum()), int(lengths.mean())
        if spec.family == MULTI_LAYER:
            n_features = self.n_layers * self._narrow * self.examples.n_spans
        if n_concatenated > 1:
            n_read += n_features  # A block is in memory both before and after it is concatenated.
        work = Work(
            spec,
            n_features=n_features,
            n_read=n_read,
            n_examples=n_examples,
            n_outputs=self.n_outputs,
            n_cells=n_cells,
            n_batches=min(n_cells, fits_at_once(self.device)) if is_seeded(spec) else 1,
            n_tokens=n_tokens,
        )
        size, room = group_layers(memory, self.device, work)
        # Probes of several layers differ in width. They read layers side by side, and each alone.
        return (1, 2 * room) if spec.family == MULTI_LAYER else (size, room)

    def read_by(self, spec: ProbeSpec, layers: Sequence[int], room: int = 0) -> Standardisation:
        """Features of some layers as the probes of a family read them, by split.

        Args:
            layers: a single one for `MULTI_LAYER`; the result is of its `layers_read`.
            room: see `features`.
        """
        if spec.family == MULTI_LAYER:
            return self._side_by_side(self.layers_read(spec, layers), room)
        if not reads_tokens(spec):
            return self.standardisation(layers)._replace(features=self.features(layers, room))
        tokens, bags = self._of_tokens, {}
        for split, features in tokens.features(layers, room).items():
            bags[split] = Bags(features, torch.from_numpy(self.lengths(split)))
        return tokens.standardisation(layers)._replace(features=bags)

    def layers_read(self, spec: ProbeSpec, layers: Sequence[int]) -> Sequence[int]:
        """The layers that the probes of some layers read: of `MULTI_LAYER` all up to the last."""
        if spec.family != MULTI_LAYER:
            return layers
        return layers_at(self.examples.task.site, range(layers[-1] + 1), self.n_layers - 1)

    def _side_by_side(self, layers: Sequence[int], room: int) -> Standardisation:
        """Projected features of several layers as those of one."""
        parts = [self._derived("narrow", [x], partial(self._narrowed, room)) for x in layers]
        features = {
            split: self.computed_once(SideBySide([part.features[split] for part in parts]), room)
            for split in SPLITS
        }
        mean, scale, last_scale = (
            torch.cat(tensors)
            for tensors in zip(*((x.mean, x.scale, x.last_scale) for x in parts), strict=True)
        )
        return Standardisation(features, mean, scale, parts[0].projection, last_scale)

    @property
    def _narrow(self) -> int:
        hidden: int = self.vectors.manifest["model"]["hidden_size"]
        return self._project or min(hidden, _NARROW)

    def _narrowed(self, room: int, layers: Sequence[int]) -> Standardisation:
        """Projected features of one layer, kept for the probes of all layers above."""
        narrow = standardise(self.vectors, layers, self.spans, self._narrow, self.device)
        kept = {split: self.computed_once(x, room) for split, x in narrow.features.items()}
        return narrow._replace(features=kept)

    @cached_property
    def _of_tokens(self) -> ProbingData:
        """A copy for features in which each token of a text is an example."""
        tokens = copy(self)
        vars(tokens).pop("_spans_digest", None)
        tokens.spans = {split: [token_spans(spans)] for split, (spans,) in self.spans.items()}
        return tokens

    def lengths(self, split: str) -> Ints:
        """The number of tokens of each text. Shape (n,)."""
        (spans,) = self.spans[split]
        return spans[:, 1] - spans[:, 0]

    def features(self, layers: Sequence[int], room: int = 0) -> dict[str, Features]:
        """Standardised features of some layers, by split; those of train in training order.

        Args:
            room: bytes of the device's memory for them; 0 for none. They stay there for later
                readers while all have room together. Without room a CPU writes a scratch file,
                which lives as long as they do.
        """

        def with_cache(layers: Sequence[int]) -> dict[str, Features]:
            by_split = self.standardisation(layers).features
            # A CPU reads test once for each fit.
            once = ("train", "dev") if self.device.type == "cpu" else SPLITS
            return {**by_split, **{k: self.computed_once(by_split[k], room) for k in once}}

        return self._derived("features", layers, with_cache) if room else with_cache(layers)

    def _storage(self, room: int) -> Memory | Path:
        """Place where features are kept."""
        if not room:
            return self.vectors.folder.parent
        _MEMORY[self.device].room = room
        return _MEMORY[self.device]

    def standardisation(self, layers: Sequence[int]) -> Standardisation:
        """Standardised features of some layers, with the parameters that standardise them."""
        return self._derived("standardisation", layers, self._standardise)

    def _derived(self, kind: str, layers: Sequence[int], make: Callable[[Sequence[int]], T]) -> T:
        """Cache of what is derived from stored vectors, keyed by layers and spans."""
        cache_key = kind, list(layers), self._project, self.device, self._spans_digest
        return self.vectors.derived(repr(cache_key), lambda: make(layers))

    @cached_property
    def _spans_digest(self) -> str:
        digest = hashlib.sha256()
        for spans in map(np.stack, self.spans.values()):
            digest.update(repr(spans.shape).encode() + spans.tobytes())
        return digest.hexdigest()

    def _standardise(self, layers: Sequence[int]) -> Standardisation:
        return standardise(self.vectors, layers, self.spans, self._project, self.device)

    def concatenated(self, first: int, layers: Sequence[int], room: int = 0) -> dict[str, Features]:
        """Features of one layer concatenated with those of each of some others, by split.

        Args:
            room: see `features`.
        """
        standardised = self.standardisation((first, *layers)).features
        by_split: dict[str, Features] = {k: Concatenated(x) for k, x in standardised.items()}
        once = ("train",) if self.device.type == "cpu" else SPLITS
        return {**by_split, **{k: self.computed_once(by_split[k], room) for k in once}}

    def computed_once(self, features: Features, room: int) -> Features:
        """Features of this task's examples that are not computed anew each time they are read.

        Without room, other devices than the CPU return them as they are.

        Args:
            room: see `features`.
        """
        if self.device.type != "cpu" and not room:
            return features
        return CachedOnce(features, self._storage(room))

    def batches(
        self,
        split: str,
        features: Features,
        labels: Mapping[str, Array] | None = None,
        in_training: Array | None = None,
    ) -> Batches:
        """A split; an example whose label train lacks has weight 0.

        Args:
            labels: labels of train and the split, in training form and in the order of the split's
                examples, each (R, n); by default `targets`. Each row has its own class weights.
            in_training: which examples each cell has, the others having weight 0; (K, n) in the
                order of the split's examples, by default all.
        """
        targets = labels or {part: self.targets(part) for part in ("train", split)}
        rows = targets[split]
        weights = np.where(rows < 0, 0, 1) if self.n_outputs else np.ones((1, rows.shape[1]))
        if weighs_classes(self.examples.task.metric):
            by_class = [class_weights(row, self.n_outputs) for row in targets["train"]]
            pairs = zip(by_class, rows, strict=True)
            weights = weights * np.stack([of_class[row] for of_class, row in pairs])
        if in_training is not None:
            weights = weights * in_training
        if (weights == weights[:1]).all():
            weights = weights[:1]
        if split == "train":
            rows, weights = rows[:, self._order], weights[:, self._order]
        if self.n_outputs:  # unseen labels (-1) have weight 0, but must be valid indices
            rows = rows.clip(0)
        sentences = self.sentences(split)
        return Batches(
            features,
            torch.from_numpy(rows).to(self.device),
            torch.from_numpy(weights.astype(np.float32)).to(self.device),
            sentences.to(self.device),
            batch_bounds(sentences),
            self.sets,
            self.examples.splits[split].partition,
        )

    def sentences(self, split: str) -> torch.Tensor:
        """The sentence of each example, those of train in training order. Shape (n,)."""
        sentences = self.examples.splits[split].sentence
        return torch.from_numpy(sentences[self._order] if split == "train" else sentences)

    def _sets(self) -> torch.Tensor | None:
        if self.examples.members is None:
            return None
        classes = self.examples.members[:, : self.n_outputs]
        return torch.from_numpy(classes.astype(np.float32)).to(self.device)

    def targets(self, split: str) -> Array:
        """The task's own labels in training form. Shape (1, n)."""
        return self.standardised(self.examples.targets(split)[None])

    def standardised(self, labels: Array) -> Array:
        """Labels as probes are trained on them; the inverse is `in_labels_unit`.

        Numbers are standardised in float64, then rounded to float32. Class indices are left as they
        are.

        Args:
            labels: in the form of `Examples.targets`. Any shape.
        """
        if self.n_outputs:
            return labels
        mean, deviation = self.unit
        return ((labels - mean) / deviation).astype(np.float32)

    def predictions(self, fitted: FittedProbes, features: Features, spec: ProbeSpec) -> Array:
        """Predictions of fitted probes in the form that scorers take. Shape (L, K, N, …)."""
        outputs = predict(
            fitted, features, self.n_outputs, spec, self.sets, as_margins=self.as_margins
        )
        return self.in_labels_unit(outputs.cpu().numpy())

    def in_labels_unit(self, predicted: Array) -> Array:
        """Predictions in the unit of the task's labels; class indices are left as they are.

        Numbers become float64, since float32 may not distinguish large ones.
        """
        if self.n_outputs:
            return predicted
        mean, deviation = self.unit
        return predicted.astype(np.float64) * deviation + mean


def token_spans(spans: Ints) -> Ints:
    """A span for each row of some spans: (n, 2) to (tokens, 2)."""
    rows = SpanRows.of(spans).rows.numpy()
    return np.stack([rows, rows + 1], axis=1)


def label_unit(numbers: Array) -> tuple[float, float]:
    """Mean and deviation of training labels; the latter is 1 if all are equal. Shape (n,)."""
    if not np.ptp(numbers):
        # The mean of equal numbers may have a rounding error, and so a deviation above 0.
        return float(numbers[0]), 1.0
    return float(numbers.mean()), float(numbers.std())


def training_order(sentence: Array) -> Array:
    """Order of training examples: sentences shuffled in the same way for every run and layer.

    Args:
        sentence: sentence of each example. Shape (n,).
    """
    numbers, sentence_index = np.unique(sentence, return_inverse=True)
    shuffled = np.random.default_rng(0).permutation(len(numbers))
    return np.argsort(shuffled[sentence_index], kind="stable")


def class_weights(labels: Array, n_classes: int) -> Array:
    """Inverse frequency of each class, with mean 1 over the examples; 0 of one that is not there.

    Args:
        labels: training labels. Shape (n,).
    """
    count = np.bincount(labels, minlength=n_classes)
    return ratio(labels.size / (count > 0).sum(), count, otherwise=0.0)
