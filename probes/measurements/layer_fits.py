"""Probes of one task and family, fitted for a measurement."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from probes.measurements.trained_probes import Trained
from probes.records.parameters import Parameters
from probes.records.probe_spec import ProbeSpec
from probes.records.record_files import Arrays
from probes.records.result import Result
from probes.tasks.validation import TaskError
from probes.training.dataset import ProbingData
from probes.training.families import family_of
from probes.training.family import FittedProbes
from probes.training.fit import FitSeed, fit, margins, predict
from probes.training.fitted import parameters_by_name

Array = NDArray[Any]

Labels = Mapping[str, Array]
"""Labels of train and dev, each (R, n), as class indices or numbers (`Examples.targets`)."""


@dataclass(frozen=True)
class Fits:
    """K fits at each of L layers.

    Attributes:
        predicted: predictions on dev and test, in the form that scorers take. Each (L, K, n, …).
        strength: L2 strength. Shape (L, K).
        stopped: share of the steps after which the dev loss was lowest. Shape (L, K).
        dev_loss: dev loss in the unit of the labels. Shape (L, K).
        n_parameters: number of parameters of one probe.
        parameters: parameters of the first fit of each layer; see `probes.records.parameters`.
        margins: test margins of the first fit of each layer, for two classes of texts; see
            `probes.training.fit.margins`. Shape (L, n), or None.
    """

    predicted: Mapping[str, Array]
    strength: Array
    stopped: Array
    dev_loss: Array
    n_parameters: int
    parameters: Parameters
    margins: Array | None = None


def concatenated_fits(parts: Iterable[Fits]) -> Fits:
    """Join the fits of several groups of layers."""
    fits = list(parts)
    all_margins = [part.margins for part in fits if part.margins is not None]
    return Fits(
        {
            split: np.concatenate([part.predicted[split] for part in fits])
            for split in ("dev", "test")
        },
        np.concatenate([part.strength for part in fits]),
        np.concatenate([part.stopped for part in fits]),
        np.concatenate([part.dev_loss for part in fits]),
        fits[0].n_parameters,
        {name: array for part in fits for name, array in part.parameters.items()},
        np.concatenate(all_margins) if all_margins else None,
    )


@dataclass(frozen=True)
class Probing:
    """A task with a probe family, and the scores that evidence supports.

    Attributes:
        data: features, labels and scorers of the task.
        spec: settings of probes.
        memory: bytes that fits may use.
        scores: the result that this evidence supports; None while scores are measured.
        arrays: predictions of that result.
        cache: folder in which the result's parameters may be stored.
        trained: probes of the same kind trained on the run's other corpora, by corpus.
    """

    data: ProbingData
    spec: ProbeSpec
    memory: int
    scores: Result | None = None
    arrays: Arrays | None = None
    cache: Path | None = None
    trained: Mapping[str, Trained] = field(default_factory=dict)

    @property
    def least_groups(self) -> bool:
        """Whether layers are already measured one by one, with no features held in memory."""
        return self.data.group_layers(self.memory, self.spec, 1) == (1, 0)

    def fits(
        self,
        layers: Sequence[int],
        room: int,
        draws: Sequence[FitSeed],
        labels: Labels | None,
        in_training: Array | None,
    ) -> Fits:
        """Fit layers that fit in memory together, which is freed on return; see `TaskContext.fits`.

        Args:
            room: bytes in which features may be held; see `ProbingData.features`.
        """
        data, spec = self.data, self.spec
        features = data.features(layers, room)
        other_labels = {split: data.standardised(array) for split, array in (labels or {}).items()}
        standardisation = data.standardisation(layers)
        train = data.batches("train", features["train"], other_labels, in_training)
        # Distances of `MeanDifference` are those of vectors before they are standardised.
        train = replace(train, scale=standardisation.last_scale)
        dev = data.batches("dev", features["dev"], other_labels)
        strengths = None
        if self.scores is not None:
            # Evidence concerns the scored probe, and so uses the same strength.
            rows = [self.scores.at("strength", layer, "train") for layer in layers]
            strengths = torch.tensor([row.value for row in rows if row], dtype=torch.float64)
        fitted = fit(train, dev, data.n_outputs, spec, draws, strengths)
        unit = None if data.n_outputs else data.unit
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
            family_of(spec).n_parameters([p[0, 0] for p in fitted.parameters]),
            parameters_by_name(layers, standardisation, fitted, unit),
            margins(fitted, features["test"], spec).cpu().numpy() if data.ordered else None,
        )

    def _require_finite(self, fitted: FittedProbes) -> None:
        if not fitted.dev_loss.isfinite().all():
            raise TaskError(
                f"Task {self.data.examples.task.name!r}, {self.spec.family} probes: the dev loss "
                "is not finite, probably because labels or vectors are too large; scale the "
                "labels, or leave the task out with --tasks."
            )
