"""The fit unit: one model, corpus, task and probe family, from stored vectors to a result."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from probes import __version__
from probes.alignment import Ints
from probes.cells import Batches, batch_bounds
from probes.config import ProbeSpec
from probes.description_length import block_ends, code_record, online_code, with_codelengths
from probes.examples import Examples
from probes.features import Features, Held, Streamed, mapped_tensor, standard_scale
from probes.memory import available, group_layers
from probes.results import (
    SCHEMA_VERSION,
    Cell,
    CodeRecord,
    EncodingRecord,
    ExampleCounts,
    LayerResult,
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
    baselines: dict[str, Scores]
    references: dict[str, Scores]
    code: CodeRecord | None
    examples: ExampleCounts
    group_metric: str
    probe_parameters: int
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
    on_layers: Callable[[int], None] = lambda n: None,
    quick: bool = False,
) -> Outcome:
    """Fit and score one task with one probe family at `layers`.

    Layers are taken in groups that fit in memory; no number depends on the grouping.

    Args:
        memory: bytes to stay below; a share of what is free if not given.
        on_layers: told how many layers each finished group had.
        quick: leave the description length out.
    """
    seconds = {"gather": 0.0, "fit": 0.0, "score": 0.0}
    coded = bool(examples.classes) and not quick
    if coded:
        seconds["code"] = 0.0
    rows = {split: examples.rows(split, view, vectors) for split in ("train", "dev", "test")}
    n_outputs = len(examples.classes)
    order = _training_order(examples)
    train_labels = examples.targets("train")
    weights = _class_weights(examples, train_labels)
    scorers = {split: Scorer(examples, split) for split in ("dev", "test")}
    rows["train"] = [span[order] for span in rows["train"]]
    width = vectors.manifest["model"]["hidden_size"] * len(rows["train"])
    n_examples = sum(len(spans[0]) for spans in rows.values())
    group_size, hold = group_layers(
        memory or available(device), device, spec, width, n_examples, n_outputs, n_seeds
    )
    seeds = list(range(n_seeds))

    done: list[LayerResult] = []
    predictions = []
    n_parameters = 0
    for first in range(0, len(layers), group_size):
        group = layers[first : first + group_size]
        clock = time.perf_counter()
        features = _features(vectors, group, rows, device, hold)
        train = Batches(
            features["train"],
            torch.from_numpy(train_labels[order]).expand(n_seeds, -1),
            torch.from_numpy(weights[order]).expand(n_seeds, -1),
            sentences := torch.from_numpy(examples.splits["train"].sentence[order]),
            batch_bounds(sentences),
        )
        dev = _dev_batches(examples, features["dev"], train_labels, n_seeds)
        seconds["gather"] += time.perf_counter() - clock

        clock = time.perf_counter()
        train, dev = (_to(batches, device) for batches in (train, dev))
        fitted = fit(train, dev, n_outputs, spec, seeds)
        n_parameters = sum(p[0, 0].numel() for p in fitted.parameters)
        seconds["fit"] += time.perf_counter() - clock

        clock = time.perf_counter()
        given = {
            split: predict(fitted, features[split], n_outputs, spec).cpu().numpy()
            for split in ("dev", "test")
        }
        scored = _score(group, seeds, fitted, given, scorers)
        predictions.append(given["test"])
        seconds["score"] += time.perf_counter() - clock

        if coded:
            clock = time.perf_counter()
            scored = with_codelengths(scored, online_code(train, n_outputs, spec))
            seconds["code"] += time.perf_counter() - clock
        done += scored
        on_layers(len(group))
    test = scorers["test"]
    clock = time.perf_counter()
    all_predicted = np.concatenate(predictions)
    layer_results = with_uncertainty(done, all_predicted[:, 0], test.gold, test.names)
    seconds["score"] += time.perf_counter() - clock
    return Outcome(
        layers=layer_results,
        baselines=baselines(examples, train_labels, test),
        references=references(examples, test),
        code=code_record(train.labels[0].cpu(), block_ends(train.sentences), n_outputs)
        if coded
        else None,
        examples=count_examples(examples, test),
        group_metric=test.group_metric,
        probe_parameters=n_parameters,
        arrays={
            "predicted": _compact(all_predicted, n_outputs),
            "gold": _compact(test.gold.labels, n_outputs),
            "sentence": test.gold.sentence.astype(np.int32),
            "layers": np.array(layers, dtype=np.int32),
        },
        seconds=seconds,
    )


def _features(
    vectors: Vectors,
    group: Sequence[int],
    rows: Mapping[str, list[Ints]],
    device: torch.device,
    hold: bool,
) -> dict[str, Features]:
    """Standardised features of the group's layers by split."""
    mapped = [vectors.layer(layer) for layer in group]
    layers = [mapped_tensor(array) for array in mapped]
    resolution = float(np.finfo(mapped[0].dtype).eps) / 2
    scales = [standard_scale(layer, rows["train"], resolution) for layer in layers]
    mean, scale = (torch.stack(parts) for parts in zip(*scales, strict=True))
    streamed = {
        split: Streamed(layers, spans, mean, scale, device) for split, spans in rows.items()
    }
    if not hold:
        return dict(streamed)
    return {split: Held(features.block(slice(None))) for split, features in streamed.items()}


def _training_order(examples: Examples) -> Array:
    """Training examples with their sentences shuffled, the same for every run and layer."""
    sentence = examples.splits["train"].sentence
    numbers, place = np.unique(sentence, return_inverse=True)
    shuffled = np.random.default_rng(0).permutation(len(numbers))
    return np.argsort(shuffled[place], kind="stable")


def _class_weights(examples: Examples, labels: Array) -> Array:
    """Inverse class frequency, mean 1, for tasks scored by balanced accuracy; else ones."""
    if examples.task.metric != "balanced_accuracy":
        return np.ones(len(labels), dtype=np.float32)
    count = np.bincount(labels, minlength=len(examples.classes))
    return (len(labels) / (len(count) * count[labels])).astype(np.float32)


def _dev_batches(
    examples: Examples, features: Features, train_labels: Array, n_cells: int
) -> Batches:
    """The dev split; an example whose label train lacks weighs nothing in the dev loss."""
    labels = examples.targets("dev")
    weights = np.ones(len(labels), dtype=np.float32)
    if examples.classes:
        of_class = np.zeros(len(examples.classes), dtype=np.float32)
        of_class[train_labels] = _class_weights(examples, train_labels)
        weights = np.where(labels >= 0, of_class[labels], 0).astype(np.float32)
        labels = labels.clip(0)
    return Batches(
        features,
        torch.from_numpy(labels).expand(n_cells, -1),
        torch.from_numpy(weights).expand(n_cells, -1),
        torch.from_numpy(examples.splits["dev"].sentence),
        [],
    )


def _to(batches: Batches, device: torch.device) -> Batches:
    return Batches(
        batches.features,
        batches.labels.to(device),
        batches.weights.to(device),
        batches.sentences.to(device),
        batches.bounds,
    )


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
        results.append(LayerResult(layer=layer, cells=tuple(cells)))
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
