"""Tables of the records of a measurement, and the records that its charts are made from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from probes.frames.long_frame import RecordsByModel, long_frame
from probes.measurements.measurement import Measurement
from probes.measurements.pivots import tables_of_views
from probes.records.record import TREES, subject_title

if TYPE_CHECKING:
    from probes.tables.table import Table


def measurement_tables(measurement: Measurement, records: Sequence[Any]) -> Sequence[Table]:
    """Tables of the findings for one model and corpus.

    Args:
        records: one, or the results of one probe family, all of which have it.
    """
    findings = [x for x in map(measurement.own_record, records) if x is not None]
    notes: dict[str, list[str]] = defaultdict(list)
    for record in findings:
        notes[record.task.name if record.task else ""] += record.notes
    title = measurement.title
    if measurement.of != "task":
        (record,) = findings
        title = f"{subject_title(record)} · {title}"
        with_other_trees = record.corpus.other_trees and "heads" in measurement.needs
        title += f" · {TREES}" if with_other_trees else ""
        title += f" from {record.base.name}" if record.base else ""
    tables = tables_of_views(measurement.shows, long_frame(findings), title, notes)
    return [*tables, *(table for record in findings for table in measurement.more_tables(record))]


def findings_of(
    measurement: Measurement,
    records: Mapping[str, Any],
    paths: Mapping[str, Path] = MappingProxyType({}),
) -> RecordsByModel:
    """The records that charts of a measurement are made from.

    Args:
        records: by label, of evidence the results that it is shown with.
        paths: their files, beside which arrays are read.
    """
    findings, missing = {}, {}
    for label, record in records.items():
        if (finding := measurement.own_record(record)) is not None:
            findings[label] = finding
        else:
            missing[label] = measurement.reason_missing(record)
    return RecordsByModel(findings, paths, missing)


def require_drawable(measurement: Measurement, record: Any, path: Path | None = None) -> None:
    """Make every table and chart of a record; whatever does not fit together raises an exception.

    Args:
        record: of evidence, the result that it is shown with.
        path: of the record, if arrays may be beside it.
    """
    from probes.tables.charts import PAPER

    for table in measurement_tables(measurement, [record]):
        _ = table.texts
    model = record.model.name
    stored = {model: path} if path and path.with_suffix(".npz").exists() else {}
    findings = findings_of(measurement, {model: record}, stored)
    for view in measurement.charts:
        if model not in view.missing(findings):
            view.chart(findings, PAPER)
