"""A task's examples over stored vectors, as what probes are trained on and scored by."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from probes.compute.workers import each
from probes.data.sentence import SPLITS
from probes.examples.control_task import control_labels, has_types
from probes.examples.examples import Examples
from probes.examples.scoring import Scorer
from probes.extraction.store import Vectors
from probes.extraction.views import View
from probes.records.probe_spec import ProbeSpec
from probes.training.batches import Batches, batch_bounds
from probes.training.features import Features, Streamed, held, mapped_tensor, standard_scale
from probes.training.memory_plan import Work, group_layers
from probes.training.prefixes import logit_variances
from probes.training.projection import projected
from probes.training.scratch import Scratch
from probes.training.trainer import courses_at_once

Array = NDArray[Any]


class Material:
    """What the cells of one task read: features, labels, weights.

    Args:
        control: whether every seed's cell has one for the control task beside it.
        project: dimensions to project each span's vector to; None for no projection.

    Attributes:
        n_outputs: number of classes; 0 for regression.
        control: as asked, and false for a task that gives its examples no types.
        labels: of train and dev, by cell; numbers as `unit` has them, rounded to float32 only
            then. Each (K, n).
        unit: mean and standard deviation of the numbers of train, which a regression is fitted
            in: how fast Adam learns a number depends on its size.
        sets: for multi-label the labels of each set, see `probes.training.batches.Batches`.
        width: H, features of an example.
        width_read: of the blocks that are read for them, those before a projection among them.
        n_layers: of the model, the embedding layer included.
    """

    def __init__(
        self,
        examples: Examples,
        view: View,
        vectors: Vectors,
        device: torch.device,
        *,
        n_seeds: int,
        control: bool,
        project: int | None,
    ) -> None:
        self.examples, self.device = examples, device
        self.n_outputs = len(examples.classes)
        self.seeds = list(range(n_seeds))
        self.control = control and has_types(examples)
        self.sets = self._sets()
        self.unit = _unit(examples)
        self.labels = {split: self._labels(split) for split in ("train", "dev")}
        self.scorers = {split: Scorer(examples, split) for split in ("dev", "test")}
        self._vectors, self._project = vectors, project
        self.n_layers = vectors.n_layers
        self._order = _training_order(examples)
        self._rows = {split: examples.rows(split, view, vectors) for split in SPLITS}
        self._rows["train"] = [span[self._order] for span in self._rows["train"]]
        self._hidden = vectors.manifest["model"]["hidden_size"]
        self.width, self.width_read = _widths(examples, self._hidden, project)

    def group_layers(self, memory: int, spec: ProbeSpec) -> tuple[int, bool]:
        """See `probes.training.memory_plan.group_layers`."""
        n_cells = len(self.labels["train"])
        work = work_of(self.examples, self._hidden, self._project, spec, self.device, n_cells)
        return group_layers(memory, self.device, work)

    def features(self, layers: Sequence[int], hold: bool = False) -> dict[str, Features]:
        """Standardised features of some layers, by split; train in the order of training."""
        if hold:
            found = self._standardised(layers)
            return {split: held(features) for split, features in found.items()}
        key = hashlib.sha256(repr((list(layers), self._project, self.device)).encode())
        for spans in map(np.stack, self._rows.values()):
            key.update(repr(spans.shape).encode() + spans.tobytes())
        return self._vectors.derived(key.hexdigest(), lambda: self._streamed(layers))

    def _streamed(self, layers: Sequence[int]) -> dict[str, Features]:
        found = self._standardised(layers)
        if self.device.type != "cpu":
            return found
        folder = self._vectors.folder.parent
        return {**found, **{split: Scratch(found[split], folder) for split in ("train", "dev")}}

    def _standardised(self, layers: Sequence[int]) -> dict[str, Features]:
        mapped = each(self._vectors.layer, layers)
        tensors = [mapped_tensor(array) for array in mapped]
        resolution = float(np.finfo(mapped[0].dtype).eps) / 2
        scales = each(lambda layer: standard_scale(layer, self._rows["train"], resolution), tensors)
        mean, scale = (torch.stack(parts) for parts in zip(*scales, strict=True))
        found: dict[str, Features] = {
            split: Streamed(tensors, spans, mean, scale, self.device)
            for split, spans in self._rows.items()
        }
        if self._project is None:
            return found
        return projected(found, self._project, len(self._rows["train"]))

    def batches(self, split: str, features: Features) -> Batches:
        """Train or dev for every cell; an example whose label train lacks weighs nothing."""
        labels = self.labels[split]
        weights = np.where(labels < 0, 0, 1) if self.n_outputs else np.ones_like(labels)
        if self.examples.task.metric == "balanced_accuracy":
            weights = weights * _class_weights(self.examples)[labels]
        sentences = self.examples.splits[split].sentence
        if split == "train":
            labels, weights = labels[:, self._order], weights[:, self._order]
            sentences = sentences[self._order]
        if self.n_outputs:
            labels = labels.clip(0)
        numbers = torch.from_numpy(sentences)
        return Batches(
            features,
            torch.from_numpy(labels).to(self.device),
            torch.from_numpy(weights.astype(np.float32)).to(self.device),
            numbers.to(self.device),
            batch_bounds(numbers),
            self.sets,
        )

    def _sets(self) -> torch.Tensor | None:
        if self.examples.members is None:
            return None
        classes = self.examples.members[:, : self.n_outputs]
        return torch.from_numpy(classes.astype(np.float32)).to(self.device)

    def _labels(self, split: str) -> Array:
        """Labels of every cell: the real ones for each seed, then each seed's control labels."""
        targets = self.examples.targets(split)
        real = np.broadcast_to(targets, (len(self.seeds), len(targets)))
        if self.control:
            real = np.concatenate([real, control_labels(self.examples, split, self.seeds)])
        if self.n_outputs:
            return real
        mean, deviation = self.unit
        return ((real - mean) / deviation).astype(np.float32)

    def in_labels_unit(self, predicted: Array) -> Array:
        """What cells say, as the task's labels are: class indices as they are, numbers scaled.

        Numbers are float64 from here on: float32 may not tell large ones apart.
        """
        if self.n_outputs:
            return predicted
        mean, deviation = self.unit
        return predicted.astype(np.float64) * deviation + mean


def work_of(
    examples: Examples,
    hidden: int,
    project: int | None,
    spec: ProbeSpec,
    device: torch.device,
    n_cells: int,
) -> Work:
    """What a task is to be trained with; no vectors are needed to tell.

    Args:
        hidden: size of the model's vectors.
        project: see `Material`.
        n_cells: seeds × label sets.
    """
    n_together = courses_at_once(device)
    n_features, n_read = _widths(examples, hidden, project)
    return Work(
        spec,
        n_features=n_features,
        n_read=n_read,
        n_examples=sum(len(part.examples) for part in examples.splits.values()),
        n_outputs=len(examples.classes),
        # In a code prefixes × priors.
        n_cells=max(n_cells, n_together * len(logit_variances(spec))),
        n_batches=n_together,
    )


def _widths(examples: Examples, hidden: int, project: int | None) -> tuple[int, int]:
    """See `Material.width` and `Material.width_read`."""
    # Blocks are projected after they were read, and both lie in memory.
    read = hidden if project is None else project + hidden
    return (project or hidden) * examples.n_spans, read * examples.n_spans


def _unit(examples: Examples) -> tuple[float, float]:
    """See `Material.unit`; of classes, and where all numbers are the same, (…, 1)."""
    if examples.classes:
        return 0.0, 1.0
    numbers = examples.targets("train")
    if not np.ptp(numbers):
        # Their mean may be off by a rounding error, which would then be the deviation.
        return float(numbers[0]), 1.0
    return float(numbers.mean()), float(numbers.std())


def _training_order(examples: Examples) -> Array:
    """Training examples with their sentences shuffled, the same for every run and layer."""
    sentence = examples.splits["train"].sentence
    numbers, place = np.unique(sentence, return_inverse=True)
    shuffled = np.random.default_rng(0).permutation(len(numbers))
    return np.argsort(shuffled[place], kind="stable")


def _class_weights(examples: Examples) -> Array:
    """Inverse frequency of each class in train, with mean 1 over the training examples."""
    count = np.bincount(examples.targets("train"), minlength=len(examples.classes))
    weights: Array = count.sum() / (len(count) * count)
    return weights
