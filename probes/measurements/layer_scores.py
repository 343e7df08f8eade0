"""Fits the probes of single layers, and scores them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probes.measurements.selectivity import ControlScorer
from probes.measurements.uncertainty import with_uncertainty
from probes.records.payload import Cell, LayerResult
from probes.records.probe_spec import ProbeSpec
from probes.tasks.task import Kind, Task
from probes.tasks.validation import TaskError
from probes.training.dataset import ProbingData
from probes.training.fit import fit, predict
from probes.training.fitted import FittedProbes

Array = NDArray[Any]


class Stopwatch:
    """Seconds spent in named stages."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        """Add the time spent in the block to `stage`."""
        clock = time.perf_counter()
        yield
        spent = time.perf_counter() - clock
        self.seconds[stage] = self.seconds.get(stage, 0.0) + spent


def fit_layers(
    data: ProbingData,
    spec: ProbeSpec,
    layers: Sequence[int],
    memory: int,
    stopwatch: Stopwatch,
    on_layers: Callable[[int], None],
) -> tuple[tuple[LayerResult, ...], Array, int]:
    """Fit and score the probes of `layers`, in groups that fit in memory.

    Returns:
        the results, the test predictions of all cells (L, K, n), and the number of parameters of
        one probe.
    """
    group_size, hold = data.group_layers(memory, spec)
    done: list[LayerResult] = []
    predictions: list[Array] = []
    for first in range(0, len(layers), group_size):
        group = layers[first : first + group_size]
        scored, predicted_on_test, n_parameters = _fit_group(data, spec, group, hold, stopwatch)
        done += scored
        predictions.append(predicted_on_test)
        on_layers(len(group))
    with stopwatch("score"):
        predicted = np.concatenate(predictions)
        test = data.scorers["test"]
        found = with_uncertainty(done, predicted[:, 0], test.gold, test.names)
        if data.control:
            scorer = ControlScorer(data.examples, test.gold, data.seeds)
            halves = np.split(predicted, [len(data.seeds)], axis=1)
            found = scorer.with_selectivity(found, *halves)
    return found, predicted, n_parameters


def _fit_group(
    data: ProbingData, spec: ProbeSpec, group: Sequence[int], hold: bool, stopwatch: Stopwatch
) -> tuple[list[LayerResult], Array, int]:
    """`fit_layers` of one group; its features and parameters are freed on return."""
    n_outputs = data.n_outputs
    with stopwatch("gather"):
        features = data.features(group, hold)
        train, dev = (data.batches(split, features[split]) for split in ("train", "dev"))
    with stopwatch("fit"):
        fitted = fit(train, dev, n_outputs, spec, data.seeds)
        require_finite(fitted, data.examples.task, spec)
    with stopwatch("score"):
        given = {}
        for split in ("dev", "test"):
            outputs = predict(fitted, features[split], n_outputs, spec, data.sets)
            given[split] = data.in_labels_unit(outputs.cpu().numpy())
        scored = _score(group, fitted, given, data)
    return scored, given["test"], sum(p[0, 0].numel() for p in fitted.parameters)


def require_finite(fitted: FittedProbes, task: Task, spec: ProbeSpec) -> None:
    """Check that every probe has a dev loss; without one, its training had no effect.

    Raises:
        TaskError: a dev loss is not finite.
    """
    if not fitted.dev_loss.isfinite().all():
        raise TaskError(
            f"Task {task.name!r}, {spec.family} probes: the dev loss is not finite, probably "
            "because labels or vectors are too large; scale the labels, or leave the task out with "
            "--tasks."
        )


def _score(
    group: Sequence[int], fitted: FittedProbes, given: Mapping[str, Array], data: ProbingData
) -> list[LayerResult]:
    """Results of a group of layers, without those of the control tasks.

    Args:
        given: predictions of all cells, by split. Each (L, K, n, …).
    """
    seeds, scorers = data.seeds, data.scorers
    flat = {
        split: array[:, : len(seeds)].reshape(len(group) * len(seeds), *array.shape[2:])
        for split, array in given.items()
    }
    dev, test = (scorers[split].scores(flat[split]) for split in ("dev", "test"))
    by_group = scorers["test"].group_scores(flat["test"])
    results = []
    for i, layer in enumerate(group):
        cells = []
        for j, seed in enumerate(seeds):
            cell = i * len(seeds) + j
            cells.append(
                Cell(
                    seed=seed,
                    l2=float(fitted.strength[i, j]),
                    stopped=float(fitted.stopped[i, j]),
                    dev_loss=float(fitted.dev_loss[i, j]) * data.unit[1] ** 2,
                    dev=dev[cell],
                    test=test[cell],
                    groups=by_group[cell],
                )
            )
        labels = scorers["test"].label_scores(flat["test"][i * len(seeds)])
        results.append(LayerResult(layer=layer, cells=tuple(cells), labels=labels))
    return results


def stored_types(kind: Kind, n_classes: int) -> tuple[type[np.generic], type[np.generic]]:
    """The types in which gold labels and predictions are stored."""
    if kind == "regression":
        return np.float64, np.float64
    if kind == "multi-label":
        return np.int32, np.uint8
    index = np.int16 if n_classes <= 2**15 else np.int32
    return index, index
