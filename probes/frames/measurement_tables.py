"""How records of a measurement are shown: its tables, and what its charts are made from."""

from __future__ import annotations

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
    notes = list(dict.fromkeys(note for record in findings for note in record.notes))
    title = measurement.title
    if measurement.of != "task":
        (record,) = findings
        title = f"{subject_title(record)} · {title}"
        title += f" · {TREES}" * (record.corpus.other_trees and "heads" in measurement.needs)
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
    own_or_none = {label: measurement.own_record(record) for label, record in records.items()}
    findings = {label: record for label, record in own_or_none.items() if record is not None}
    without = {
        label: measurement.missing_of(x) for label, x in records.items() if label not in findings
    }
    return RecordsByModel(findings, paths, without)


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
