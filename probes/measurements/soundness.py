"""Whether a stored record can be used: what it says, and the arrays beside it."""

from __future__ import annotations

from pathlib import Path

from probes.measurements.joined_results import as_result, require_possible
from probes.measurements.measurement import get_measurement, measurements
from probes.measurements.scores import SUMS, read_predictions
from probes.records.charts import Curves
from probes.records.files import has_arrays, read_arrays, unreadable
from probes.records.record import Record
from probes.records.result import SCORES

MISFITS = ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RuntimeError
"""What showing rows may raise that do not fit together."""


def require_sound(record: Record, path: Path) -> None:
    """Check what a record and the arrays beside it hold. Nothing is known of unloaded plug-ins.

    Raises:
        UserError: its rows do not fit the measurement, a number is impossible, or the arrays cannot
            be read.
    """
    if record.measurement == SCORES:
        as_result(record, path)
    else:
        require_possible(record, path)
    if path.with_suffix(".npz").exists():
        if record.measurement == SCORES and not has_arrays(path, SUMS):
            read_predictions(path)
        else:
            read_arrays(path, record.arrays)
    _require_shown(record, path)


def _require_shown(record: Record, path: Path) -> None:
    """Raise UserError unless tables and charts of a typed record of the suite's can be made."""
    if record.measurement not in measurements or measurements.origin(record.measurement):
        return
    its = get_measurement(record.measurement)
    if its.of_tasks:
        return
    try:
        for table in its.tables([record]):
            _ = table.texts
        named = {record.model.name: record}
        stored = {record.model.name: path} if path.with_suffix(".npz").exists() else {}
        for chart in its.charts(named, stored):
            if not isinstance(chart, Curves) and chart.fault:
                raise ValueError(f"the chart {chart.name!r} has {chart.fault}")
    except MISFITS as error:
        raise unreadable(path, error) from error
