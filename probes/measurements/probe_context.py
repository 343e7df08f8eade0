"""What a measurement of probes is given: data, probes, and the scores that it stands behind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from probes.common.terminal import progress
from probes.examples.examples import Examples
from probes.examples.scoring import Scorer
from probes.records.files import Arrays
from probes.records.parameters import Parameters, of_layer, read_parameters
from probes.records.probe_spec import ProbeSpec
from probes.records.record import Extent
from probes.records.result import Result
from probes.tasks.task import Task
from probes.tasks.validation import TaskError
from probes.training.batches import Batches
from probes.training.dataset import ProbingData
from probes.training.fit import Draw, fit, predict
from probes.training.fitted import FittedProbes
from probes.training.steps import fit_steps

Array = NDArray[Any]

Labels = Mapping[str, Array]
"""Labels of train and dev, each (R, n): class indices or numbers, as of `Examples.targets`."""


@dataclass(frozen=True)
class Fits:
    """K fits at each of L layers.

    Attributes:
        predicted: on dev and test, in the form that scorers score. Each (L, K, n, …).
        strength: L2 strength. Shape (L, K).
        stopped: share of the steps after which the dev loss was lowest. Shape (L, K).
        dev_loss: of the task's labels in their own unit. Shape (L, K).
        n_parameters: parameters of one probe.
        parameters: those of the first fit of each layer; see `probes.records.parameters`.
    """

    predicted: Mapping[str, Array]
    strength: Array
    stopped: Array
    dev_loss: Array
    n_parameters: int
    parameters: Parameters


@dataclass(frozen=True)
class ProbeContext:
    """One task with one probe family, for `ProbeMeasurement.compute`.

    Attributes:
        data: features, labels and scorers of the task.
        spec: how probes are fitted.
        extent: how often which layers are to be measured.
        memory: bytes that fits may take.
        title: what progress bars call it.
        options: the measurement's options.
        scores: the result that stands at issue; None while scores are measured.
        arrays: the predictions of that result.
        cache: the folder in which its parameters may be stored.
    """

    data: ProbingData
    spec: ProbeSpec
    extent: Extent
    memory: int
    title: str
    options: Any
    scores: Result | None = None
    arrays: Arrays | None = None
    cache: Path | None = None

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
    def layers(self) -> tuple[int, ...]:
        """The layers of `extent`."""
        return tuple(self.extent)

    @property
    def result(self) -> Result:
        """The scores at issue."""
        assert self.scores is not None
        return self.scores

    def predicted(self, layers: Sequence[int]) -> Array:
        """What the first fit of each layer, whose scores are reported, predicts on test (L, n)."""
        assert self.arrays is not None
        places = [self.arrays["layers"].tolist().index(layer) for layer in layers]
        found: Array = self.arrays["predicted"][places, 0]
        return found

    def parameters(self, layers: Sequence[int]) -> Parameters:
        """Of the probes whose scores are reported; see `probes.records.parameters`.

        Layers that the cache does not have, or no longer, are fitted again.

        Raises:
            UserError: the file in the cache is damaged.
        """
        stored = read_parameters(self.cache, self.result.key) if self.cache else None
        found = dict(stored or {})
        if missing := [layer for layer in layers if of_layer(layer, "weight") not in found]:
            found.update(self.fits(missing, [Draw()]).parameters)
        return found

    @property
    def least_groups(self) -> bool:
        """Whether layers are measured one by one already, with no features held in memory."""
        return self.data.group_layers(self.memory, self.spec, 1) == (1, False)

    def bar(self, n_steps: int) -> AbstractContextManager[Any]:
        """A progress bar, which every step of training advances."""
        return progress.bar(self.title, total=n_steps, unit="step")

    def groups(
        self, layers: Sequence[int], n_cells: int, n_concatenated: int = 1
    ) -> Iterator[tuple[list[int], bool]]:
        """The layers in groups that fit in memory, and whether to hold their features there.

        Args:
            n_cells, n_concatenated: see `probes.training.dataset.work_of`.
        """
        size, hold = self.data.group_layers(self.memory, self.spec, n_cells, n_concatenated)
        for first in range(0, len(layers), size):
            yield list(layers[first : first + size]), hold

    def training_batches(self, layers: Sequence[int], hold: bool = False) -> Batches:
        """The training split with the task's labels."""
        return self.data.batches("train", self.data.features(layers, hold)["train"])

    def fits(
        self,
        layers: Sequence[int],
        draws: Sequence[Draw],
        labels: Labels | None = None,
        kept: Array | None = None,
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
        groups = list(self.groups(layers, len(draws)))
        data = self.data
        steps = fit_steps(self.spec, data.sentences("train"), data.n_outputs, draws, kept)
        with self.bar(len(groups) * steps):
            parts = [self._fits(group, hold, draws, labels, kept) for group, hold in groups]

        def joined(arrays: Iterable[Array]) -> Array:
            return np.concatenate(list(arrays))

        return Fits(
            {split: joined(part.predicted[split] for part in parts) for split in ("dev", "test")},
            joined(part.strength for part in parts),
            joined(part.stopped for part in parts),
            joined(part.dev_loss for part in parts),
            parts[0].n_parameters,
            {name: array for part in parts for name, array in part.parameters.items()},
        )

    def _fits(
        self,
        layers: Sequence[int],
        hold: bool,
        draws: Sequence[Draw],
        labels: Labels | None,
        kept: Array | None,
    ) -> Fits:
        """`fits` of one group; its features and parameters are freed on return."""
        data, spec = self.data, self.spec
        features = data.features(layers, hold)
        other = {split: data.standardised(each) for split, each in (labels or {}).items()}
        train = data.batches("train", features["train"], other, kept)
        dev = data.batches("dev", features["dev"], other)
        strengths = None
        if self.scores is not None:
            # Evidence is about the probe that was scored, and that has its strength.
            rows = [self.scores.at("strength", layer, "train") for layer in layers]
            strengths = torch.tensor([row.value for row in rows if row], dtype=torch.float64)
        fitted = fit(train, dev, data.n_outputs, spec, draws, strengths)
        self._require_finite(fitted)
        predicted = {}
        for split in ("dev", "test"):
            outputs = predict(fitted, features[split], data.n_outputs, spec, data.sets)
            predicted[split] = data.in_labels_unit(outputs.cpu().numpy())
        return Fits(
            predicted,
            fitted.strength.cpu().numpy(),
            fitted.stopped.cpu().numpy(),
            fitted.dev_loss.cpu().double().numpy() * data.unit[1] ** 2,
            sum(p[0, 0].numel() for p in fitted.parameters),
            self._named(layers, fitted),
        )

    def _named(self, layers: Sequence[int], fitted: FittedProbes) -> dict[str, Array]:
        """The parameters of the first fit of each layer, with what features are computed by."""
        how = self.data.standardisation(layers)
        given = {"mean": how.mean, "scale": how.scale}
        for number, tensor in enumerate(fitted.parameters):
            suffix = f"-{number // 2 + 1}" if number > 1 else ""
            given[("weight", "bias")[number % 2] + suffix] = tensor[:, 0]
        if how.projected_scale is not None:
            given["projected-scale"] = how.projected_scale
        # Copies: a view would keep the tensors of all fits in memory.
        found = {
            of_layer(layer, name): tensor[place].float().cpu().numpy().copy()
            for name, tensor in given.items()
            for place, layer in enumerate(layers)
        }
        if how.projection is not None:
            found["projection"] = how.projection.cpu().numpy()
        if not self.data.n_outputs:
            found["label-unit"] = np.array(self.data.unit)
        return found

    def _require_finite(self, fitted: FittedProbes) -> None:
        if not fitted.dev_loss.isfinite().all():
            raise TaskError(
                f"Task {self.task.name!r}, {self.spec.family} probes: the dev loss is not finite, "
                "probably because labels or vectors are too large; scale the labels, or leave the "
                "task out with --tasks."
            )
