"""What one record contributes to the CSV files: rows of scores, columns of evidence, long rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import Field

from probes.boards.comparable import probe_digest
from probes.examples.scoring import control_metric
from probes.measurements.frame import rows_of
from probes.measurements.measurement import EVIDENCE
from probes.measurements.plugin_keys import in_words
from probes.measurements.results import as_result, subject, typed
from probes.records.base import Frozen
from probes.records.record import AnyRecord, fullness
from probes.records.result import SCORES, Result
from probes.records.titles import limit_of, short_digest
from probes.records.unique import identity

BOUNDED = ("selectivity", "added_bits", "added_points", "compression", "expected_layer")
"""Numbers of evidence with two more columns for their interval."""

PLAIN = ("p_best", "codelength", "centre_of_gravity", "retraining_sd", "sampling_sd", "training_sd")
"""Numbers of evidence without."""

Line = dict[str, Any]
"""Values by column."""


class RecordLines(Frozen):
    """What one record contributes; plain values, which the index keeps as JSON."""

    measurement: str
    version: int
    """That of the measurement."""
    identity: tuple[str, ...]
    """Model, revision and key; equal for duplicates."""
    subject: tuple[str, ...]
    """Equal for scores and the evidence behind them."""
    fullness: tuple[int, int]
    """Layers, and fits or draws; of duplicates the largest counts."""
    scores: list[Line] = Field(default_factory=list)
    """Of scores: one row per layer, without evidence."""
    evidence: list[tuple[int | None, Line]] = Field(default_factory=list)
    """Of evidence: columns for one layer, or, with None, for all."""
    long: list[Line] = Field(default_factory=list)
    """Of what has no columns in `leaderboard.csv`: one row per number."""


def lines_of(record: AnyRecord, path: Path = Path()) -> RecordLines:
    """What a record contributes.

    Args:
        path: its file, for messages.

    Raises:
        UserError: its payload is not one of its measurement.
    """
    record = typed(record, path)
    name = record.measurement
    result = as_result(record, path) if name == SCORES else None
    return RecordLines(
        measurement=name,
        version=record.measurement_version,
        identity=identity(record),
        subject=subject(result or record),
        fullness=fullness(record.extent),
        scores=_score_lines(result) if result else [],
        evidence=_evidence_columns(record) if name in EVIDENCE else [],
        long=_long_lines(record),
    )


def _score_lines(result: Result) -> list[Line]:
    """One row per layer, without the columns of evidence."""
    best, shared = result.best_number, _of_result(result)
    metric = result.task.metric
    lines = []
    for layer in result.layers:
        low, high = layer.intervals.get(metric) or (None, None)
        lines.append(
            {
                **shared,
                "layer": layer.layer,
                "dev_score": result.score(layer, "dev"),
                "score": result.score(layer),
                "low": low,
                "high": high,
                "best": layer.layer == best,
                "seeds": len(layer.fits),
                "strength": layer.fits[0].l2,
            }
        )
    return lines


def _of_result(result: Result) -> Line:
    model, corpus, task = result.model, result.corpus, result.task
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
        "corpus_fingerprint": short_digest(corpus.fingerprint, 16),
        "task": task.name,
        "task_version": task.version,
        "plug_ins": in_words(result.plug_ins),
        "probe": result.probe.family,
        "probe_spec": short_digest(probe_digest(result.probe), 8),
        "probe_hidden": result.probe.hidden,
        "pooling": result.pooling,
        "dtype": result.dtype,
        "fit_dtype": result.fit_dtype,
        "project": result.project,
        "view": result.view,
        "metric": task.metric,
        "resampled": result.examples.resampled,
        "control_metric": control_metric(task.kind, task.metric) if result.examples.typed else None,
        "majority": _baseline(result, "majority"),
        "type_majority": _baseline(result, "type majority"),
        "n_train": result.examples.n["train"],
        "n_dev": result.examples.n["dev"],
        "n_test": result.examples.n["test"],
        "probe_parameters": result.payload.probe_parameters,
        "limited": corpus.limited,
        "silver": result.silver,
        "seconds": sum(result.seconds.values()),
        "key": short_digest(result.key, 8),
        "suite_version": result.suite_version,
    }


def _baseline(result: Result, name: str) -> float | None:
    """The score of a rule without vectors, whether it is a baseline of this task or a reference."""
    given = {**result.references, **result.baselines}
    return given.get(name, {}).get(result.task.metric)


def _evidence_columns(record: AnyRecord) -> list[tuple[int | None, Line]]:
    """The columns that a record of evidence adds: layer, None for all of them, and values."""
    columns: list[tuple[int | None, Line]] = []
    for number in rows_of(record):
        if number.axes:
            continue
        if number.metric in BOUNDED:
            bounds = {f"{number.metric}_low": number.low, f"{number.metric}_high": number.high}
            columns.append((number.layer, {number.metric: number.value, **bounds}))
        elif number.metric in PLAIN:
            columns.append((number.layer, {number.metric: number.value}))
    return columns


def _long_lines(record: AnyRecord) -> list[Line]:
    """One row per number of a measurement without columns in `leaderboard.csv`."""
    name = record.measurement
    if name in (SCORES, *EVIDENCE):
        return []
    return [
        {
            "model": record.model.name,
            "revision": record.model.revision,
            "corpus": record.corpus.name,
            "limit": limit_of(record),
            "task": record.task and record.task.name,
            "probe": record.probe and record.probe.family,
            "measurement": name,
            "layer": number.layer,
            "axes": " ".join(f"{axis}={place}" for axis, place in number.axes.items()),
            "metric": number.metric,
            "split": number.split,
            "value": number.value,
            "low": number.low,
            "high": number.high,
            "key": short_digest(record.key, 8),
        }
        for number in rows_of(record)
    ]
