"""What one record contributes to the CSV files: columns of `leaderboard.csv`, or long rows."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

from pydantic import Field

from probes.boards.behaviour_tables import HEADLINES
from probes.boards.comparable import probe_digest
from probes.examples.scoring import control_metric
from probes.measurements.definitions import definitions
from probes.measurements.joined_results import as_result, require_possible, subject
from probes.measurements.measurement import EVIDENCE
from probes.measurements.plugin_keys import in_words
from probes.records.files import identity
from probes.records.record import Record, fullness, limit_of, short_digest
from probes.records.result import SCORES, Result
from probes.records.row import Row
from probes.records.values import Frozen

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
    "resampled",
    "best",
    "p_best",
    "majority",
    "type_majority",
    "control_metric",
    "selectivity",
    "selectivity_low",
    "selectivity_high",
    "added_bits",
    "added_bits_low",
    "added_bits_high",
    "added_points",
    "added_points_low",
    "added_points_high",
    "codelength",
    "compression",
    "compression_low",
    "compression_high",
    "expected_layer",
    "expected_layer_low",
    "expected_layer_high",
    "centre_of_gravity",
    "retraining_sd",
    "sampling_sd",
    "training_sd",
    "seeds",
    "evidence",
    "n_train",
    "n_dev",
    "n_test",
    "strength",
    "probe_parameters",
    "limited",
    "silver",
    "seconds",
    "key",
    "suite_version",
)
"""Columns of `leaderboard.csv`; docs/leaderboard.md says what each is."""

ORDER = ("corpus", "task", "probe", "view", "model", "revision", "key", "layer")

LONG_COLUMNS = (
    "model",
    "revision",
    "corpus",
    "limit",
    "task",
    "probe",
    "measurement",
    "layer",
    "axes",
    "metric",
    "split",
    "value",
    "low",
    "high",
    "key",
)
"""Columns of `measurements.csv`, which has the numbers that have no column in `leaderboard.csv`."""

BEHAVIOUR_COLUMNS = (
    "model",
    "revision",
    "random",
    "corpus",
    "limit",
    "measurement",
    "metric",
    "phenomenon",
    "scoring",
    "per",
    "likeliest",
    "threshold",
    "rival",
    "value",
    "low",
    "high",
    "n",
    "key",
)
"""Columns of `behaviour.csv`: answers to items, overall and by phenomenon."""


Line = dict[str, Any]
"""Values by column."""


class RecordLines(Frozen):
    """What one record contributes; plain values, which the index keeps as JSON."""

    measurement: str
    identity: tuple[str, ...]
    """Model, revision and key; equal for duplicates."""
    subject: tuple[str, ...]
    """Equal for scores and the evidence behind them."""
    definitions: tuple[tuple[str, int, str], ...]
    """See `probes.measurements.definitions`."""
    fullness: tuple[int, int]
    """Layers, and fits or draws; of duplicates the largest counts."""
    header: Line = Field(default_factory=dict)
    """Of scores: the columns of `leaderboard.csv` that are the same for all layers."""
    layers: list[tuple[int | None, Line]] = Field(default_factory=list)
    """Of scores and evidence: further columns for a layer, or, with None, for all."""
    long: list[Line] = Field(default_factory=list)
    """Of what has no columns in `leaderboard.csv`: one row per number."""
    behaviour: list[Line] = Field(default_factory=list)
    """Of answers to items: one row per number, overall and by phenomenon."""


def lines_of(record: Record, path: Path = Path()) -> RecordLines:
    """What a record contributes.

    Args:
        path: its file, for messages.

    Raises:
        UserError: it is no record of its measurement.
    """
    name = record.measurement
    header: Line = {}
    layers: list[tuple[int | None, Line]] = []
    if name == SCORES:
        record = result = as_result(record, path)
        header, layers = _of_result(result), _of_layers(result)
    else:
        require_possible(record, path)
        if name in EVIDENCE:
            layers = _of_evidence(record)
    return RecordLines(
        measurement=name,
        identity=identity(record),
        subject=subject(record),
        definitions=definitions(record),
        fullness=fullness(record.extent),
        header=header,
        layers=layers,
        long=_long_lines(record),
        behaviour=_behaviour_lines(record) if name in HEADLINES else [],
    )


def _of_layers(result: Result) -> list[tuple[int | None, Line]]:
    """The columns of each layer."""
    best = result.best_number
    lines: list[tuple[int | None, Line]] = []
    for layer, n_fits in result.extent.items():
        low, high = result.interval(layer) or (None, None)
        strength = result.at("strength", layer, "train")
        lines.append(
            (
                layer,
                {
                    "dev_score": result.score(layer, "dev"),
                    "score": result.score(layer),
                    "low": low,
                    "high": high,
                    "best": layer == best,
                    "seeds": n_fits,
                    "strength": strength.value if strength else None,
                },
            )
        )
    return lines


def _of_evidence(record: Record) -> list[tuple[int | None, Line]]:
    """The numbers that have a column of their name, with those of their intervals if there are."""
    found: dict[int | None, Line] = defaultdict(dict)
    for row in record.rows:
        if row.metric in COLUMNS and not row.axes:
            given = {"": row.value, "_low": row.low, "_high": row.high}
            columns = {f"{row.metric}{end}": value for end, value in given.items()}
            found[row.layer] |= {name: x for name, x in columns.items() if name in COLUMNS}
    return list(found.items())


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
        "probe_parameters": result.facts["probe_parameters"],
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


def _long_lines(record: Record) -> list[Line]:
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
        for number in record.rows
    ]


def _behaviour_lines(record: Record) -> list[Line]:
    """The numbers overall and by phenomenon, of texts as they are."""
    header = {
        "model": record.model.name,
        "revision": record.model.revision,
        "random": record.model.random_seed is not None,
        "corpus": record.corpus.name,
        "limit": limit_of(record),
        "measurement": record.measurement,
        "key": short_digest(record.key, 8),
    }
    lines = ({**header, **row._asdict(), **row.axes} for row in record.rows)
    known = {*BEHAVIOUR_COLUMNS, *Row._fields}
    return [{x: line.get(x) for x in BEHAVIOUR_COLUMNS} for line in lines if line.keys() <= known]
