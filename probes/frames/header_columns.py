"""Columns of the headers of records: the one table that says what a record may be grouped by.

Without pandas, which is slow to import.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, NamedTuple

from probes.data.splits import DROPPED
from probes.examples.scoring import control_metric
from probes.measurements.plugin_keys import key_follows, plug_ins_text
from probes.records.record import Record, completeness, limit_of, short_digest, task_marks
from probes.records.result import Result

TEXT, WHOLE, NUMBER, TRUTH = "text", "Int64", "float64", "boolean"
"""Types of columns. Whole numbers and truth values may be missing."""


def _sources_as_json(record: Record) -> str:
    """Kind, name and SHA-256 of every plug-in; empty if there is none."""
    sources = [(plug_in.kind, plug_in.name, plug_in.sha256) for plug_in in record.plug_ins]
    return json.dumps(sources) if sources else ""


class HeaderColumn(NamedTuple):
    """A column of headers: its type, and its value for a record."""

    kind: Any
    of: Callable[[Any], Any]


OF_ALL = {
    "measurement": HeaderColumn(TEXT, lambda x: x.measurement),
    "measurement_version": HeaderColumn(WHOLE, lambda x: x.measurement_version),
    "options": HeaderColumn(TEXT, lambda x: json.dumps(x.settings, sort_keys=True)),
    "model": HeaderColumn(TEXT, lambda x: x.model.name),
    "revision": HeaderColumn(TEXT, lambda x: x.model.revision),
    "model_digest": HeaderColumn(TEXT, lambda x: x.model.digest),
    "base": HeaderColumn(TEXT, lambda x: x.base.name if x.base else ""),
    "random": HeaderColumn(TRUTH, lambda x: x.model.random_seed is not None),
    "random_seed": HeaderColumn(WHOLE, lambda x: x.model.random_seed),
    "causal": HeaderColumn(TRUTH, lambda x: x.model.causal),
    "parameters": HeaderColumn(WHOLE, lambda x: x.model.parameters),
    "layers": HeaderColumn(WHOLE, lambda x: x.model.n_layers),
    "hidden_size": HeaderColumn(WHOLE, lambda x: x.model.hidden_size),
    "corpus": HeaderColumn(TEXT, lambda x: x.corpus.name),
    "corpus_version": HeaderColumn(TEXT, lambda x: x.corpus.version),
    "corpus_digest": HeaderColumn(TEXT, lambda x: x.corpus.digest),
    "text": HeaderColumn(TEXT, lambda x: x.corpus.fingerprint),
    "corpus_fingerprint": HeaderColumn(TEXT, lambda x: short_digest(x.corpus.fingerprint, 16)),
    "limit": HeaderColumn(WHOLE, limit_of),
    "limited": HeaderColumn(TRUTH, lambda x: x.corpus.limited),
    # Whether sentences that cannot be used were left out of it.
    "dropped": HeaderColumn(TRUTH, lambda x: DROPPED in x.corpus.notes),
    "plug_ins": HeaderColumn(TEXT, lambda x: plug_ins_text(x.plug_ins)),
    "pooling": HeaderColumn(TEXT, lambda x: x.pooling),
    "dtype": HeaderColumn(TEXT, lambda x: x.dtype),
    "project": HeaderColumn(WHOLE, lambda x: x.project),
    "view": HeaderColumn(TEXT, lambda x: x.view),
    "silver": HeaderColumn(TRUTH, lambda x: x.silver),
    "seconds": HeaderColumn(NUMBER, lambda x: float(sum(x.seconds.values()))),
    "suite_version": HeaderColumn(TEXT, lambda x: x.suite_version),
    "full_key": HeaderColumn(TEXT, lambda x: x.key),
    "key": HeaderColumn(TEXT, lambda x: short_digest(x.key)),
    # The metric in whose unit differences of scores are; see `Quantity.of_task`.
    "unit": HeaderColumn(TEXT, lambda x: x.facts.get("unit") or (x.task.metric if x.task else "")),
    "marks": HeaderColumn(TEXT, lambda x: ", ".join(task_marks(x))),
    "n_measured": HeaderColumn(WHOLE, lambda x: completeness(x.extent)[0]),
    "n_fits": HeaderColumn(WHOLE, lambda x: completeness(x.extent)[1]),
    # Equal for scores and the evidence behind them.
    "subject": HeaderColumn(TEXT, lambda x: json.dumps(evidence_key(x))),
    # See `probes.frames.record_status`.
    "key_follows": HeaderColumn(TRUTH, key_follows),
    "sources": HeaderColumn(TEXT, _sources_as_json),
    "written": HeaderColumn(TEXT, lambda x: x.provenance.get("written", "")),
}
"""Columns of every header."""

OF_TASKS = {
    "task": HeaderColumn(TEXT, lambda x: x.task.name),
    "task_version": HeaderColumn(WHOLE, lambda x: x.task.version),
    "task_metric": HeaderColumn(TEXT, lambda x: x.task.metric),
    "task_fpr": HeaderColumn(NUMBER, lambda x: x.task.fpr),
    "probe": HeaderColumn(TEXT, lambda x: x.probe.family),
    "probe_spec": HeaderColumn(TEXT, lambda x: short_digest(x.probe.digest)),
    "probe_digest": HeaderColumn(TEXT, lambda x: x.probe.digest),
    "probe_hidden": HeaderColumn(WHOLE, lambda x: x.probe.hidden),
}
"""Further columns, missing where there is no task."""

OF_SCORES = {
    "resampled": HeaderColumn(TEXT, lambda x: x.examples.resampled),
    "control_metric": HeaderColumn(
        TEXT, lambda x: control_metric(x.task.kind, x.task.metric) if x.examples.typed else None
    ),
    "n_train": HeaderColumn(WHOLE, lambda x: x.examples.n["train"]),
    "n_dev": HeaderColumn(WHOLE, lambda x: x.examples.n["dev"]),
    "n_test": HeaderColumn(WHOLE, lambda x: x.examples.n["test"]),
    "probe_parameters": HeaderColumn(WHOLE, lambda x: int(x.facts["probe_parameters"])),
}
"""Further columns of scores."""

HEADER_KINDS = {name: x.kind for name, x in (OF_ALL | OF_TASKS | OF_SCORES).items()}


def evidence_key(record: Record) -> tuple[str, ...]:
    """Model, inputs and scores that a record is about; equal for scores and their evidence."""
    scores = record.headline if isinstance(record, Result) else record.behind
    return record.model.name, record.model.revision, record.inputs, repr(sorted(scores.items()))


def values(record: Record, columns: Iterable[str]) -> tuple[Any, ...]:
    """Values of a record in columns of headers; None where it has no such column."""
    by_name = _columns_of_kind(record.task is not None, isinstance(record, Result))
    return tuple(by_name[name].of(record) if name in by_name else None for name in columns)


@cache
def _columns_of_kind(of_task: bool, of_scores: bool) -> dict[str, HeaderColumn]:
    """Columns of records with a task or without, of scores or of something else."""
    of_task_and_scores = (OF_TASKS if of_task else {}) | (OF_SCORES if of_scores else {})
    return OF_ALL | of_task_and_scores
