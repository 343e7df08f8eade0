"""The fit unit: one model, corpus, task and probe family, from stored vectors to a result."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from probes import __version__
from probes.alignment import Ints
from probes.cells import Batches, batch_bounds
from probes.config import ProbeSpec
from probes.controls import ControlScorer, control_labels, control_record, has_types
from probes.cumulative import localise
from probes.examples import Examples
from probes.features import Features, Held, Streamed, mapped_tensor, standard_scale
from probes.memory import available, block_bytes, group_layers
from probes.projection import projected
from probes.results import (
    SCHEMA_VERSION,
    Cell,
    ControlRecord,
    EncodingRecord,
    ExampleCounts,
    LayerResult,
    Localisation,
    Scores,
)
from probes.scoring import Scorer, baselines, count_examples, references
from probes.store import Vectors
from probes.training import fit, predict
from probes.uncertainty import with_uncertainty
from probes.views import View

Array = NDArray[Any]


@dataclass(frozen=True)
class Outcome:
    """What fitting yields; `results.Result` adds where it came from."""

    layers: tuple[LayerResult, ...]
    control: ControlRecord | None
    baselines: dict[str, Scores]
    references: dict[str, Scores]
    examples: ExampleCounts
    group_metric: str
    probe_parameters: int
    localisation: Localisation | None
    arrays: dict[str, Array]
    seconds: dict[str, float]


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

    Layers are taken in groups that fit in memory; no number depends on the grouping.

    Args:
        quick: leave out controls, description length and localisation.
        project: dimensions to project each span's vector to.
        memory: bytes to stay below; a share of what is free if not given.
        on_layers: told how many layers each finished group had.
    """
    seconds = {"gather": 0.0, "fit": 0.0, "score": 0.0}
    rows = {split: examples.rows(split, view, vectors) for split in ("train", "dev", "test")}
    n_outputs = len(examples.classes)
    order = _training_order(examples)
    seeds = list(range(n_seeds))
    control = not quick and has_types(examples)
    labels = {split: _labels(examples, split, seeds, control) for split in ("train", "dev")}
    scorers = {split: Scorer(examples, split) for split in ("dev", "test")}
    rows["train"] = [span[order] for span in rows["train"]]
    width = (project or vectors.manifest["model"]["hidden_size"]) * len(rows["train"])
    n_examples = sum(len(spans[0]) for spans in rows.values())
    memory = memory or available(device)
    sizes = (device, spec, width, n_examples, n_outputs, len(labels["train"]))
    group_size, hold = group_layers(memory, *sizes)

    done: list[LayerResult] = []
    predictions = []
    n_parameters = 0
    for first in range(0, len(layers), group_size):
        group = layers[first : first + group_size]
        clock = time.perf_counter()
        features = _features(vectors, group, rows, device, hold, project)
        train = _batches(examples, "train", features["train"], labels["train"], order)
        dev = _batches(examples, "dev", features["dev"], labels["dev"])
        seconds["gather"] += time.perf_counter() - clock

        clock = time.perf_counter()
        fitted = fit(train, dev, n_outputs, spec, seeds)
        n_parameters = sum(p[0, 0].numel() for p in fitted.parameters)
        seconds["fit"] += time.perf_counter() - clock

        clock = time.perf_counter()
        given = {
            split: predict(fitted, features[split], n_outputs, spec).cpu().numpy()
            for split in ("dev", "test")
        }
        real = {split: array[:, :n_seeds] for split, array in given.items()}
        done += _score(group, seeds, fitted, real, scorers)
        predictions.append(given["test"])
        seconds["score"] += time.perf_counter() - clock
        on_layers(len(group))
    test = scorers["test"]
    clock = time.perf_counter()
    predicted, of_controls = np.split(np.concatenate(predictions), [n_seeds], axis=1)
    layer_results = with_uncertainty(done, predicted[:, 0], test.gold, test.names)
    if control:
        scorer = ControlScorer(examples, test.gold, seeds)
        layer_results = scorer.with_selectivity(layer_results, predicted, of_controls)
    seconds["score"] += time.perf_counter() - clock
    arrays = {
        "predicted": _compact(predicted, n_outputs),
        "gold": _compact(test.gold.labels, n_outputs),
        "sentence": test.gold.sentence.astype(np.int32),
        "punctuation": test.gold.punctuation,
        "unseen": np.array(test.gold.unseen, dtype=np.str_),
        "layers": np.array(layers, dtype=np.int32),
    }
    localisation = None
    if not quick and list(layers) == list(range(vectors.n_layers)):
        clock = time.perf_counter()
        if len(group) < len(layers):
            features = _features(vectors, layers, rows, device, False, project)
        strengths = [layer.cells[0].strength for layer in layer_results]
        train, dev = (
            replace(batches.of_cells(slice(0, 1)), features=features[split])
            for split, batches in (("train", train), ("dev", dev))
        )
        localisation, by_mixes = localise(
            train,
            dev,
            features["test"],
            n_outputs,
            spec,
            n_seeds,
            strengths,
            scorers,
            group_layers(memory - block_bytes(len(layers), width), *sizes)[0],
        )
        arrays["predicted_cumulative"] = _compact(by_mixes, n_outputs)
        seconds["mix"] = time.perf_counter() - clock
    return Outcome(
        layers=layer_results,
        control=control_record(examples) if control else None,
        baselines=baselines(examples, examples.targets("train"), test),
        references=references(examples, test),
        examples=count_examples(examples, test),
        group_metric=test.group_metric,
        probe_parameters=n_parameters,
        localisation=localisation,
        arrays=arrays,
        seconds=seconds,
    )


def _features(
    vectors: Vectors,
    group: Sequence[int],
    rows: Mapping[str, list[Ints]],
    device: torch.device,
    hold: bool,
    project: int | None,
) -> dict[str, Features]:
    """Standardised features of the group's layers by split."""
    mapped = [vectors.layer(layer) for layer in group]
    layers = [mapped_tensor(array) for array in mapped]
    resolution = float(np.finfo(mapped[0].dtype).eps) / 2
    scales = [standard_scale(layer, rows["train"], resolution) for layer in layers]
    mean, scale = (torch.stack(parts) for parts in zip(*scales, strict=True))
    found: dict[str, Features] = {
        split: Streamed(layers, spans, mean, scale, device) for split, spans in rows.items()
    }
    if project is not None:
        found = projected(found, project, len(rows["train"]))
    if not hold:
        return found
    return {split: Held(features.block(slice(None))) for split, features in found.items()}


def _training_order(examples: Examples) -> Array:
    """Training examples with their sentences shuffled, the same for every run and layer."""
    sentence = examples.splits["train"].sentence
    numbers, place = np.unique(sentence, return_inverse=True)
    shuffled = np.random.default_rng(0).permutation(len(numbers))
    return np.argsort(shuffled[place], kind="stable")


def _labels(examples: Examples, split: str, seeds: Sequence[int], control: bool) -> Array:
    """Labels of every cell: the real ones for each seed, then each seed's control labels. (K, n)"""
    real = np.broadcast_to(targets := examples.targets(split), (len(seeds), len(targets)))
    return np.concatenate([real, control_labels(examples, split, seeds)]) if control else real


def _batches(
    examples: Examples, split: str, features: Features, labels: Array, order: Array | None = None
) -> Batches:
    """A split's examples in the given order; one whose label train lacks weighs nothing."""
    weights = np.where(labels < 0, 0, 1) if examples.classes else np.ones_like(labels)
    if examples.task.metric == "balanced_accuracy":
        weights = weights * _class_weights(examples)[labels]
    sentences = examples.splits[split].sentence
    if order is not None:
        labels, weights, sentences = labels[:, order], weights[:, order], sentences[order]
    if examples.classes:
        labels = labels.clip(0)
    number = torch.from_numpy(sentences)
    return Batches(
        features,
        torch.from_numpy(labels).to(features.device),
        torch.from_numpy(weights.astype(np.float32)).to(features.device),
        number.to(features.device),
        batch_bounds(number),
    )


def _class_weights(examples: Examples) -> Array:
    """Inverse frequency of each class in train, with mean 1 over the training examples."""
    count = np.bincount(examples.targets("train"), minlength=len(examples.classes))
    weights: Array = count.sum() / (len(count) * count)
    return weights


def _score(
    group: Sequence[int],
    seeds: Sequence[int],
    fitted: Any,
    given: Mapping[str, Array],
    scorers: Mapping[str, Scorer],
) -> list[LayerResult]:
    n_cells = len(group) * len(seeds)
    flat = {split: array.reshape(n_cells, -1) for split, array in given.items()}
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
                    stopped=float(fitted.stopped[i, j]),
                    dev_loss=float(fitted.dev_loss[i, j]),
                    dev=dev[cell],
                    test=test[cell],
                    groups=by_group[cell],
                )
            )
        labels = scorers["test"].label_scores(flat["test"][i * len(seeds)])
        results.append(LayerResult(layer=layer, cells=tuple(cells), labels=labels))
    return results


def _compact(array: Array, n_outputs: int) -> Array:
    return array.astype(np.int16 if n_outputs else np.float32)


def encoding_record(manifest: Mapping[str, Any]) -> EncodingRecord:
    """What a store's manifest says about how its vectors came about."""
    return EncodingRecord(**{name: manifest[name] for name in EncodingRecord.model_fields})


def provenance(command: str) -> dict[str, str]:
    """Versions, machine and command of this run."""
    packages = ("torch", "transformers", "tokenizers", "numpy", "scipy")
    return {
        "command": command,
        "python": platform.python_version(),
        "platform": platform.platform(terse=True),
        "threads": str(torch.get_num_threads()),
        "probes": __version__,
        "schema": str(SCHEMA_VERSION),
        **{package: version(package) for package in packages},
    }
