"""The fit unit: one model, corpus, task and probe family, from stored vectors to a result."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from probes.common.errors import out_of_memory
from probes.common.terminal import progress
from probes.compute.memory import default_budget, explain_out_of_memory
from probes.compute.precision import exact_products
from probes.examples.examples import Examples
from probes.examples.scoring import baselines, count_examples, references
from probes.extraction.store import Vectors
from probes.extraction.views import View
from probes.measurements.cumulative import localise
from probes.measurements.online_code import block_ends, code_record, online_code, with_codelengths
from probes.measurements.selectivity import ControlScorer, control_record
from probes.measurements.uncertainty import with_uncertainty
from probes.records.header import EncodingRecord, ExampleCounts
from probes.records.payload import (
    Cell,
    CodeRecord,
    ControlRecord,
    LayerResult,
    Localisation,
    Scores,
)
from probes.records.probe_spec import ProbeSpec
from probes.tasks.checked import TaskError
from probes.tasks.task import Kind, Task
from probes.training.dataset import ProbingData
from probes.training.fit import fit, predict
from probes.training.fitted import FittedProbes
from probes.training.memory_plan import block_bytes

Array = NDArray[Any]


@dataclass(frozen=True)
class Outcome:
    """What fitting yields; `results.Result` adds where it came from."""

    layers: tuple[LayerResult, ...]
    control: ControlRecord | None
    baselines: dict[str, Scores]
    references: dict[str, Scores]
    code: CodeRecord | None
    examples: ExampleCounts
    group_metric: str
    probe_parameters: int
    localisation: Localisation | None
    arrays: dict[str, Array]
    seconds: dict[str, float]


@exact_products()
def probe(
    examples: Examples,
    view: View,
    vectors: Vectors,
    spec: ProbeSpec,
    layers: Sequence[int],
    n_seeds: int,
    device: torch.device,
    memory: int | None = None,
    quick: bool = False,
    project: int | None = None,
    on_layers: Callable[[int], None] = lambda n: None,
) -> Outcome:
    """Fit and score one task with one probe family at `layers`.

    Layers are taken in groups that fit in memory; beyond rounding no number depends on them.

    Args:
        memory: bytes to stay below; a share of what is free if not given.
        quick: leave out controls, description length and localisation.
        project: dimensions to project each span's vector to.
        on_layers: told how many layers each finished group had.

    Raises:
        UserError: there is not enough memory for a single layer.
    """
    what = f"fitting {examples.task.name} with {spec.family} probes"
    with explain_out_of_memory(what, "use --limit, --project or --seeds 1, or free some memory."):
        material = ProbingData(
            examples, view, vectors, device, n_seeds=n_seeds, control=not quick, project=project
        )
        memory = memory or default_budget(device)
        while True:
            try:
                return _outcome(material, spec, layers, memory, quick, on_layers)
            except (MemoryError, RuntimeError) as error:
                if not out_of_memory(error) or material.group_layers(memory, spec) == (1, False):
                    raise
            # Outside the handler, where the error no longer holds on to tensors.
            memory //= 2
            progress.say(
                f"not enough memory; {what} goes on within {memory / 1e6:,.0f} MB",
                "fewer layers at once",
                memory=memory,
            )


def _outcome(
    material: ProbingData,
    spec: ProbeSpec,
    layers: Sequence[int],
    memory: int,
    quick: bool,
    on_layers: Callable[[int], None],
) -> Outcome:
    examples, n_seeds = material.examples, len(material.seeds)
    stopwatch = Stopwatch()
    found, predicted, n_parameters = _fit_layers(
        material, spec, layers, memory, stopwatch, on_layers
    )
    test = material.scorers["test"]
    n_outputs = material.n_outputs
    gold_type, predicted_type = stored_types(examples.task.kind, n_outputs)
    arrays = {
        "predicted": predicted[:, :n_seeds].astype(predicted_type),
        "gold": test.gold.labels.astype(gold_type),
        "sentence": test.gold.sentence.astype(np.int32),
        "punctuation": test.gold.punctuation,
        "unseen": np.array(test.gold.unseen, dtype=np.str_),
        "layers": np.array(layers, dtype=np.int32),
    }
    if test.gold.sets is not None:
        arrays["sets"] = test.gold.sets
    code, localisation = None, None
    if n_outputs and not quick:
        with stopwatch("code"):
            found, code = _code(material, spec, found, memory)
    if not quick and list(layers) == list(range(material.n_layers)):
        with stopwatch("mix"):
            localisation, by_mixes = _localise(material, spec, found, memory)
            arrays["predicted_cumulative"] = by_mixes.astype(predicted_type)
    return Outcome(
        layers=found,
        control=control_record(examples) if material.control else None,
        baselines=baselines(examples, examples.targets("train"), test),
        references=references(examples, test),
        code=code,
        examples=count_examples(examples, test),
        group_metric=test.group_metric,
        probe_parameters=n_parameters,
        localisation=localisation,
        arrays=arrays,
        seconds=stopwatch.seconds,
    )


def stored_types(kind: Kind, n_classes: int) -> tuple[type[np.generic], type[np.generic]]:
    """How gold labels and predictions are stored."""
    if kind == "regression":
        return np.float64, np.float64
    if kind == "multi-label":
        return np.int32, np.uint8
    index = np.int16 if n_classes <= 2**15 else np.int32
    return index, index


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


def _fit_layers(
    material: ProbingData,
    spec: ProbeSpec,
    layers: Sequence[int],
    memory: int,
    stopwatch: Stopwatch,
    on_layers: Callable[[int], None],
) -> tuple[tuple[LayerResult, ...], Array, int]:
    """All cells of `layers`: results, test predictions (L, K, n), parameters of one cell."""
    group_size, hold = material.group_layers(memory, spec)
    done: list[LayerResult] = []
    predictions = []
    for first in range(0, len(layers), group_size):
        group = layers[first : first + group_size]
        scored, said, n_parameters = _fit_group(material, spec, group, hold, stopwatch)
        done += scored
        predictions.append(said)
        on_layers(len(group))
    with stopwatch("score"):
        predicted = np.concatenate(predictions)
        test = material.scorers["test"]
        found = with_uncertainty(done, predicted[:, 0], test.gold, test.names)
        if material.control:
            scorer = ControlScorer(material.examples, test.gold, material.seeds)
            halves = np.split(predicted, [len(material.seeds)], axis=1)
            found = scorer.with_selectivity(found, *halves)
    return found, predicted, n_parameters


def _fit_group(
    material: ProbingData, spec: ProbeSpec, group: Sequence[int], hold: bool, stopwatch: Stopwatch
) -> tuple[list[LayerResult], Array, int]:
    """The same of some layers; neither features nor parameters outlive it."""
    n_outputs = material.n_outputs
    with stopwatch("gather"):
        features = material.features(group, hold)
        train, dev = (material.batches(split, features[split]) for split in ("train", "dev"))
    with stopwatch("fit"):
        fitted = fit(train, dev, n_outputs, spec, material.seeds)
        require_finite(fitted, material.examples.task, spec)
    with stopwatch("score"):
        given = {}
        for split in ("dev", "test"):
            said = predict(fitted, features[split], n_outputs, spec, material.sets)
            given[split] = material.in_labels_unit(said.cpu().numpy())
        scored = _score(group, fitted, given, material)
    return scored, given["test"], sum(p[0, 0].numel() for p in fitted.parameters)


def require_finite(fitted: FittedProbes, task: Task, spec: ProbeSpec) -> None:
    """Refuse cells that no dev loss could choose: they are as untrained as they began.

    Raises:
        TaskError: a dev loss is not finite.
    """
    if not fitted.dev_loss.isfinite().all():
        raise TaskError(
            f"Task {task.name!r}, {spec.family} probes: the dev loss is not finite, probably since "
            "labels or vectors are too large; scale the labels, or leave the task out with --tasks."
        )


def _code(
    material: ProbingData, spec: ProbeSpec, found: Sequence[LayerResult], memory: int
) -> tuple[tuple[LayerResult, ...], CodeRecord]:
    """The layers with the lengths of the online code, and what these are held against."""
    group_size, hold = material.group_layers(memory, spec)
    coded: list[LayerResult] = []
    for first in range(0, len(found), group_size):
        group = found[first : first + group_size]
        layers, record = _code_group(material, spec, group, hold)
        coded += layers
    return tuple(coded), record


def _code_group(
    material: ProbingData, spec: ProbeSpec, group: Sequence[LayerResult], hold: bool
) -> tuple[list[LayerResult], CodeRecord]:
    """The same of some layers; no features outlive it."""
    features = material.features([layer.layer for layer in group], hold)
    train = material.batches("train", features["train"]).of_cells(slice(0, 1))
    code = online_code(train, material.n_outputs, spec, _steps(group, spec))
    coded = with_codelengths(group, code)
    labels, sets = train.labels[0].cpu(), None if train.sets is None else train.sets.cpu()
    return coded, code_record(labels, block_ends(train.sentences), material.n_outputs, sets)


def _localise(
    material: ProbingData, spec: ProbeSpec, found: Sequence[LayerResult], memory: int
) -> tuple[Localisation, Array]:
    """Measures of the mixes of all layers, and the test predictions of every mix."""
    left = memory - block_bytes(len(found), material.width_read)
    group_size, hold = material.group_layers(left, spec)
    features = material.features(
        [layer.layer for layer in found], hold and group_size >= len(found)
    )
    train, dev = (
        material.batches(split, features[split]).of_cells(slice(0, 1)) for split in ("train", "dev")
    )
    return localise(
        train,
        dev,
        features["test"],
        material.n_outputs,
        spec,
        len(material.seeds),
        [layer.cells[0].strength for layer in found],
        _steps(found, spec),
        material.scorers,
        material.in_labels_unit,
        group_size,
    )


def _steps(found: Sequence[LayerResult], spec: ProbeSpec) -> list[float]:
    """What seed 0's probes took; the spec's of a closed form."""
    return [layer.cells[0].step or spec.step for layer in found]


def _score(
    group: Sequence[int], fitted: FittedProbes, given: Mapping[str, Array], material: ProbingData
) -> list[LayerResult]:
    """Results of the real cells of a group of layers; `given` has predictions (L, K, n, …)."""
    seeds, scorers = material.seeds, material.scorers
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
                    strength=float(fitted.strength[i, j]),
                    step=float(fitted.step[i, j]) or None,
                    stopped=float(fitted.stopped[i, j]),
                    dev_loss=float(fitted.dev_loss[i, j]) * material.unit[1] ** 2,
                    dev=dev[cell],
                    test=test[cell],
                    groups=by_group[cell],
                )
            )
        labels = scorers["test"].label_scores(flat["test"][i * len(seeds)])
        results.append(LayerResult(layer=layer, cells=tuple(cells), labels=labels))
    return results


def encoding_record(manifest: Mapping[str, Any]) -> EncodingRecord:
    """What a store's manifest says about how its vectors came about."""
    return EncodingRecord(**{name: manifest[name] for name in EncodingRecord.model_fields})
