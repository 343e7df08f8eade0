"""Validation of stored records: what a measurement cannot have found is refused, with the file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from probes.measurements.header_columns import HEADER_KINDS, WHOLE, values
from probes.measurements.measurement import get_measurement, measurements
from probes.records.record import Record
from probes.records.record_files import unreadable
from probes.records.result import SCORES, Result
from probes.statistics.metrics import bounds_of

_WHOLE = [name for name, kind in HEADER_KINDS.items() if kind == WHOLE]


def validated(record: Record, path: Path) -> Record:
    """A record that can be one of its measurement; one of scores as a `Result`, without evidence.

    It has a task or none, options as the measurement has them, and no impossible number of the
    suite's. What plug-ins find may have the name of another metric.

    Raises:
        UserError: it cannot.
    """
    try:
        if record.measurement == SCORES:
            fields = {name: getattr(record, name) for name in type(record).model_fields}
            record = Result.model_validate({**fields, "path": path})
        if record.measurement in measurements:
            _require_possible(record)
        numbers: dict[str, Iterable[int | None]] = {
            **{name: [x] for name, x in zip(_WHOLE, values(record, _WHOLE), strict=True)},
            "layer": record.rows.layer,
            "n": record.rows.n,
            "extent": record.extent.values(),
        }
        for name, given in numbers.items():
            if beyond := [x for x in given if x is not None and abs(x) >= 1 << 63]:
                raise ValueError(f"{name} is {beyond[0]}")
    except ValueError as error:
        raise unreadable(path, error) from error
    return record


def as_result(record: Record, path: Path) -> Result:
    """A record of scores as a result, without evidence.

    Raises:
        UserError: it is not one, or cannot be.
    """
    result = validated(record, path)
    if not isinstance(result, Result):
        raise unreadable(path, ValueError(f"a record of {record.measurement}, not of {SCORES}"))
    return result


def _require_possible(record: Record) -> None:
    """Raise ValueError unless a record can be one of its measurement."""
    name, rows = record.measurement, record.rows
    measurement = get_measurement(name)
    if (measurement.of == "task") != bool(record.task):
        what = "without" if record.task is None else "with"
        raise ValueError(f"a record of {name} {what} a task")
    if measurements.origin(name) is not None:
        return
    if record.measurement_version == measurement.version:
        options, settings = measurement.options, record.settings
        if missing := options.model_fields.keys() - settings.keys():
            raise ValueError(f"no option {min(missing)}")
        own = {option: settings[option] for option in options.model_fields}
        options.model_validate(own)
    bounds = {metric: bounds_of(metric) for metric in set(rows.metric)}
    for metric, value, layer in zip(rows.metric, rows.value, rows.layer, strict=True):
        low, high = bounds[metric]
        if value is not None and not low <= value <= high:
            of_layer = "" if layer is None else f" of layer {layer}"
            raise ValueError(f"{metric}{of_layer} is {value:.6g}")
