"""Whether a record and the arrays beside it can be used: read, of its measurement, and shown."""

from __future__ import annotations

from pathlib import Path

from probes.frames.measurement_tables import require_drawable
from probes.frames.record_validation import validated
from probes.measurements.measurement import get_measurement, measurements
from probes.probing.scores import SUMS, read_predictions
from probes.records.record import Record
from probes.records.record_files import MISFITS, has_arrays, read_arrays, unreadable
from probes.records.result import SCORES


def require_sound(record: Record, path: Path) -> None:
    """Check what a record and the arrays beside it hold. Unloaded plug-ins are not checked.

    Raises:
        UserError: its rows do not fit the measurement, a number is impossible, or the arrays cannot
            be read.
    """
    validated(record, path)
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
    measurement = get_measurement(record.measurement)
    if measurement.of == "task":
        return
    try:
        require_drawable(measurement, record, path)
    except MISFITS as error:
        raise unreadable(path, error) from error
