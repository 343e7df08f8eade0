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


def measurement_tables(given: Measurement, records: Sequence[Any]) -> Sequence[Table]:
    """Tables of the findings for one model and corpus.

    Args:
        records: one, or the results of one probe family, all of which have it.
    """
    own = [each for each in map(given.own, records) if each is not None]
    notes = list(dict.fromkeys(note for record in own for note in record.notes))
    title = given.title
    if given.of != "task":
        (record,) = own
        title = f"{subject_title(record)} · {title}"
        title += f" · {TREES}" * (record.corpus.other_trees and "heads" in given.needs)
        title += f" from {record.base.name}" if record.base else ""
    found = tables_of_views(given.shows, long_frame(own), title, notes)
    return [*found, *(table for record in own for table in given.more_tables(record))]


def findings_of(
    given: Measurement, records: Mapping[str, Any], paths: Mapping[str, Path] = MappingProxyType({})
) -> RecordsByModel:
    """The records that charts of a measurement are made from.

    Args:
        records: by label, of evidence the results that it is shown with.
        paths: their files, beside which arrays are read.
    """
    every = {label: given.own(record) for label, record in records.items()}
    own = {label: record for label, record in every.items() if record is not None}
    without = {label: given.missing_of(x) for label, x in records.items() if label not in own}
    return RecordsByModel(own, paths, without)


def require_drawable(given: Measurement, record: Any, path: Path | None = None) -> None:
    """Make every table and chart of a record; whatever does not fit together raises an exception.

    Args:
        record: of evidence, the result that it is shown with.
        path: of the record, if arrays may be beside it.
    """
    from probes.tables.charts import PAPER

    for table in measurement_tables(given, [record]):
        _ = table.texts
    model = record.model.name
    stored = {model: path} if path and path.with_suffix(".npz").exists() else {}
    found = findings_of(given, {model: record}, stored)
    for view in given.charts:
        if model not in view.missing(found):
            view.chart(found, PAPER)
