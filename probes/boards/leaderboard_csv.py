"""`leaderboard.csv`: tidy rows, one per model, corpus, task, probe and layer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from probes.boards.comparable import probe_digest
from probes.common.files import published
from probes.common.garbage_collection import infrequent_garbage_collection
from probes.common.locks import SUFFIX, locked
from probes.measurements.plugin_keys import in_words
from probes.records.csv_text import csv_line
from probes.records.payload import Estimate, Interval, LayerResult
from probes.records.result import Result
from probes.records.unique import unique_results

INTEGERS = ("random_seed", "project")
"""Columns of whole numbers that may be missing."""

COLUMNS = (
    "model",
    "revision",
    "random",
    "random_seed",
    "causal",
    "parameters",
    "layers",
    "hidden_size",
    "corpus",
    "corpus_version",
    "corpus_fingerprint",
    "task",
    "task_version",
    "plug_ins",
    "probe",
    "probe_spec",
    "probe_hidden",
    "layer",
    "pooling",
    "dtype",
    "project",
    "view",
    "metric",
    "dev_score",
    "score",
    "low",
    "high",
    "best",
    "p_best",
    "majority",
    "type_majority",
    "control_metric",
    "selectivity",
    "selectivity_low",
    "selectivity_high",
    "codelength",
    "compression",
    "compression_low",
    "compression_high",
    "expected_layer",
    "expected_layer_low",
    "expected_layer_high",
    "centre_of_gravity",
    "seed_sd",
    "seeds",
    "n_train",
    "n_dev",
    "n_test",
    "strength",
    "probe_parameters",
    "limited",
    "quick",
    "silver",
    "seconds",
    "key",
    "suite_version",
)
"""Columns of `leaderboard.csv`; docs/leaderboard.md says what each is."""

ORDER = ("corpus", "task", "probe", "view", "model", "revision", "key", "layer")


def tidy(results: Iterable[Result]) -> pd.DataFrame:
    """One row per result and layer, with the columns `COLUMNS`."""
    rows = [row for result in results for row in _rows(result)]
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(dict.fromkeys(INTEGERS, "Int64"))


def _short(digest: str, length: int) -> str:
    # With its kind before it, no digest reads as a number, as 12345e67 would.
    return f"sha256:{digest[:length]}"


def _rows(result: Result) -> Iterator[dict[str, Any]]:
    best, shared = result.best_number, _of_result(result)
    return ({**shared, **_of_layer(result, layer, best)} for layer in result.layers)


def _of_result(result: Result) -> dict[str, Any]:
    model, corpus, task, found = result.model, result.corpus, result.task, result.localisation
    return {
        "model": model.name,
        "revision": model.revision,
        "random": model.random_seed is not None,
        "random_seed": model.random_seed,
        "causal": model.causal,
        "parameters": model.parameters,
        "layers": model.n_layers,
        "hidden_size": model.hidden_size,
        "corpus": corpus.name,
        "corpus_version": corpus.version,
        "corpus_fingerprint": _short(corpus.fingerprint, 16),
        "task": task.name,
        "task_version": task.version,
        "plug_ins": in_words(result.plug_ins),
        "probe": result.probe.family,
        "probe_spec": _short(probe_digest(result.probe), 8),
        "probe_hidden": result.probe.hidden,
        "pooling": result.pooling,
        "dtype": result.dtype,
        "project": result.project,
        "view": result.view,
        "metric": task.metric,
        "majority": result.baselines["majority"][task.metric],
        "type_majority": result.baselines["type majority"][task.metric],
        "control_metric": result.control and result.control.metric,
        **_estimate("expected_layer", found.expected_layer if found else None),
        "centre_of_gravity": found and found.centre_of_gravity.value,
        "n_train": result.examples.n["train"],
        "n_dev": result.examples.n["dev"],
        "n_test": result.examples.n["test"],
        "probe_parameters": result.probe_parameters,
        "limited": corpus.limited,
        "quick": result.quick,
        "silver": result.silver,
        "seconds": sum(result.seconds.values()),
        "key": _short(result.key, 8),
        "suite_version": result.suite_version,
    }


def _of_layer(result: Result, layer: LayerResult, best: int | None) -> dict[str, Any]:
    first = layer.cells[0]
    return {
        "layer": layer.layer,
        "dev_score": result.score(layer, "dev"),
        "score": result.score(layer),
        **_bounds("", layer.intervals.get(result.task.metric)),
        "best": layer.layer == best,
        "p_best": layer.p_best,
        "selectivity": first.selectivity and first.selectivity.value,
        **_bounds("selectivity_", layer.selectivity),
        "codelength": layer.codelength,
        "compression": result.compression(layer),
        **_bounds("compression_", result.compression_interval(layer)),
        "seed_sd": result.seed_spread(layer),
        "seeds": len(layer.cells),
        "strength": first.l2,
    }


def _estimate(name: str, estimate: Estimate | None) -> dict[str, float | None]:
    if estimate is None:
        return dict.fromkeys((name, f"{name}_low", f"{name}_high"))
    return {name: estimate.value, **_bounds(f"{name}_", estimate.interval)}


def _bounds(prefix: str, interval: Interval) -> dict[str, float | None]:
    low, high = interval or (None, None)
    return {f"{prefix}low": low, f"{prefix}high": high}


def write_leaderboard(output: Path) -> Path:
    """Rebuild `<output>/leaderboard.csv` from all results below `output`."""
    path = output / "leaderboard.csv"
    # Without the lock, of two runs that end together the one that read first may write last.
    with locked(path.with_suffix(SUFFIX)):
        with infrequent_garbage_collection():
            rows = [row for result in unique_results(output).values() for row in _rows(result)]
        rows.sort(key=lambda row: tuple(row[name] for name in ORDER))
        with published(path) as temporary:
            lines = [csv_line(COLUMNS), *(csv_line(row[name] for name in COLUMNS) for row in rows)]
            temporary.write_text("".join(lines), encoding="utf-8", newline="")
    return path
