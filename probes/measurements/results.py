"""Results from stored records: scores joined with the evidence behind them."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from probes.common.errors import UserError
from probes.common.terminal import progress
from probes.measurements.current import is_current
from probes.measurements.measurement import as_payload, get_measurement, measurements
from probes.records.files import find_records, read_record, unreadable
from probes.records.record import AnyRecord, fullness
from probes.records.result import SCORES, Result
from probes.records.unique import unique_records
from probes.statistics.metrics import in_bounds

MISFITS = ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RuntimeError
"""What describing a payload may raise whose parts have the right types and do not fit together."""


def as_result(record: AnyRecord, path: Path) -> Result:
    """A record of scores as a result, without evidence.

    Raises:
        UserError: it is not one, or has a score that its metric cannot have.
    """
    try:
        fields = {name: getattr(record, name) for name in type(record).model_fields}
        result = Result.model_validate(fields)
        for layer in result.layers:
            for fit in layer.fits:
                scored = (*fit.dev.items(), *fit.test.items())
                of_groups = ((result.payload.group_metric, x) for x in fit.groups.values())
                for metric, value in (*scored, *of_groups):
                    _require_possible(metric, layer.layer, value)
            for metric, interval in layer.intervals.items():
                _require_possible(metric, layer.layer, None, *(interval or ()))
        return result
    except ValueError as error:
        raise unreadable(path, error) from error


def _require_possible(
    metric: str, layer: int | None, value: float | None, *bounds: float | None
) -> None:
    """Raise ValueError if a metric cannot have this value, or a bound of its interval is infinite.

    Intervals of some kinds exceed what the metric itself can reach.
    """
    of_layer = "" if layer is None else f" of layer {layer}"
    if value is not None and not in_bounds(metric, value):
        raise ValueError(f"{metric}{of_layer} is {value:.6g}")
    if not all(bound is None or math.isfinite(bound) for bound in bounds):
        raise ValueError(f"{metric}{of_layer} has no finite interval")


def joined(records: Mapping[Path, AnyRecord]) -> dict[Path, Result]:
    """The results among records by their paths, each with the evidence that belongs to it.

    Evidence behind other scores is left out, and so is, with a message, what cannot be read.
    """
    evidence: dict[tuple[str, ...], list[AnyRecord]] = defaultdict(list)
    results: dict[Path, Result] = {}
    for path, record in records.items():
        try:
            if record.measurement == SCORES:
                results[path] = as_result(record, path)
            elif record.probe is not None:
                evidence[subject(record)].append(typed(record, path))
        except UserError as error:
            progress.say(f"left out {error}")
    return {
        path: result.with_evidence(*_ranked(evidence.get(subject(result), ())))
        for path, result in results.items()
    }


def _ranked(records: Sequence[AnyRecord]) -> list[AnyRecord]:
    """Of several records of a measurement, that which counts comes last.

    It is one that this version, with the plug-ins it has, would compute; then one with default
    options, of the highest version, and the most complete.
    """
    counts = Counter(record.measurement for record in records)

    def rank(record: AnyRecord) -> tuple[object, ...]:
        if counts[record.measurement] == 1:
            return ()
        default = record.measurement not in measurements or record.settings == get_measurement(
            record.measurement
        ).options().model_dump(mode="json")
        version = record.measurement_version
        return is_current(record), default, version, fullness(record.extent)

    return sorted(records, key=rank)


def subject(record: AnyRecord) -> tuple[str, ...]:
    """Model, inputs and scores that a record is about; equal for scores and their evidence."""
    scores = record.headline if isinstance(record, Result) else record.behind
    return record.model.name, record.model.revision, record.inputs, repr(sorted(scores.items()))


def typed(record: AnyRecord, path: Path) -> AnyRecord:
    """A record with its payload in the measurement's own type, if that is known.

    Raises:
        UserError: the payload is not one of this measurement, its parts do not fit together, or one
            of its numbers is impossible.
    """
    name = record.measurement
    if name not in measurements:
        return record
    try:
        record = as_payload(record)
        # A plug-in that has changed since may not understand what it wrote then; that is its fault.
        if measurements.origin(name) is None:
            for number in get_measurement(name).numbers(record):
                ends = number.low, number.high
                _require_possible(number.metric, number.layer, number.value, *ends)
        return record
    except MISFITS as error:
        raise unreadable(path, error) from error


def find_results(folder: Path) -> dict[Path, Result]:
    """All results below `folder` by their paths; see `probes.records.files.find_records`."""
    return joined(find_records(folder))


def unique_results(*folders: Path) -> dict[Path, Result]:
    """All results below the folders; see `probes.records.unique.unique_records`."""
    return joined(unique_records(*folders))


def read_result(path: Path) -> Result:
    """The result at `path`, with the evidence beside it.

    Raises:
        UserError: it cannot be read, or is not a record of scores.
    """
    record = read_record(path)
    if record.measurement != SCORES:
        raise UserError(f"{path}: a record of {record.measurement}; name that of the scores.")
    as_result(record, path)
    return joined({**find_records(path.parent), path: record})[path]
