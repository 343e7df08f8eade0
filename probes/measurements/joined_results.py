"""Results from stored records: scores joined with the evidence behind them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from probes.common.errors import UserError
from probes.common.terminal import progress
from probes.measurements.definitions import marked, newest
from probes.measurements.measurement import get_measurement, measurements
from probes.measurements.scores import SUMS, read_predictions
from probes.records.charts import Curves
from probes.records.files import (
    find_records,
    has_arrays,
    read_arrays,
    read_record,
    unreadable,
)
from probes.records.record import Record, fullness
from probes.records.result import SCORES, Result
from probes.statistics.metrics import bounds_of


def as_result(record: Record, path: Path) -> Result:
    """A record of scores as a result, without evidence.

    Raises:
        UserError: it is not one, or has a score that its metric cannot have.
    """
    require_possible(record, path)
    try:
        fields = {name: getattr(record, name) for name in type(record).model_fields}
        return Result.model_validate({**fields, "path": path})
    except ValueError as error:
        raise unreadable(path, error) from error


def require_possible(record: Record, path: Path) -> None:
    """Check that a record can be one of its measurement.

    It has a task or none, options as the measurement has them, and no impossible number of the
    suite's. What plug-ins find may have the name of another metric.

    Raises:
        UserError: it cannot.
    """
    name, rows = record.measurement, record.rows
    if name not in measurements:
        return
    its = get_measurement(name)
    if (its.of == "task") != bool(record.task):
        what = "without" if record.task is None else "with"
        raise unreadable(path, ValueError(f"a record of {name} {what} a task"))
    if measurements.origin(name) is not None:
        return
    if record.measurement_version == its.version:
        options, settings = its.options, record.settings
        if missing := options.model_fields.keys() - settings.keys():
            raise unreadable(path, ValueError(f"no option {min(missing)}"))
        try:
            options.model_validate({option: settings[option] for option in options.model_fields})
        except ValueError as error:
            raise unreadable(path, error) from error
    bounds = {metric: bounds_of(metric) for metric in set(rows.metric)}
    for metric, value, layer in zip(rows.metric, rows.value, rows.layer, strict=True):
        low, high = bounds[metric]
        if value is not None and not low <= value <= high:
            of_layer = "" if layer is None else f" of layer {layer}"
            raise unreadable(path, ValueError(f"{metric}{of_layer} is {value:.6g}"))


def joined(records: Mapping[Path, Record]) -> dict[Path, Result]:
    """The results among records by their paths, each with the evidence that belongs to it.

    What is of older definitions, or evidence behind other scores, is left out, and so is, with a
    message, what cannot be read.
    """
    evidence: dict[tuple[str, ...], list[Record]] = defaultdict(list)
    results: dict[Path, Result] = {}
    for path, record in newest(records).items():
        try:
            if record.measurement == SCORES:
                results[path] = as_result(record, path)
            elif record.probe is not None:
                require_possible(record, path)
                evidence[subject(record)].append(record)
        except UserError as error:
            progress.say(f"left out {error}")
    return {
        path: result.with_evidence(*_ranked(evidence.get(subject(result), ())))
        for path, result in results.items()
    }


def _ranked(records: Sequence[Record]) -> list[Record]:
    """Of several records of a measurement, that which counts comes last.

    It is one with default options, then the most complete.
    """
    counts = Counter(record.measurement for record in records)

    def rank(record: Record) -> tuple[object, ...]:
        if counts[record.measurement] == 1:
            return ()
        default = record.measurement not in measurements or record.settings == get_measurement(
            record.measurement
        ).options().model_dump(mode="json")
        return default, fullness(record.extent)

    return sorted(records, key=rank)


def subject(record: Record) -> tuple[str, ...]:
    """Model, inputs and scores that a record is about; equal for scores and their evidence."""
    scores = record.headline if isinstance(record, Result) else record.behind
    return record.model.name, record.model.revision, record.inputs, repr(sorted(scores.items()))


def find_results(folder: Path) -> dict[Path, Result]:
    """All results below `folder` by their paths; see `probes.records.files.find_records`."""
    return joined(find_records(folder))


def read_result(path: Path) -> Result:
    """The result at `path`, with the evidence beside it; it may be of an older definition.

    Raises:
        UserError: it cannot be read, or is not a record of scores.
    """
    record = read_record(path)
    if record.measurement != SCORES:
        raise UserError(f"{path}: a record of {record.measurement}; name that of the scores.")
    as_result(record, path)
    return joined(marked({**find_records(path.parent), path: record}))[path]


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
    if its.of == "task":
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
