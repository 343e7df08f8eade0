"""Validation of stored records: what a measurement cannot have found is refused, with the file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from probes.frames.header_columns import HEADER_KINDS, NUMBER, TEXT, TRUTH, WHOLE, values
from probes.measurements.measurement import get_measurement, measurements
from probes.records.record import Record
from probes.records.record_files import MISFITS, read_record, unreadable
from probes.records.result import SCORES, Result
from probes.statistics.metrics import bounds_of

_TYPES = {TEXT: str, WHOLE: int, NUMBER: float, TRUTH: bool}

# The frame has columns of 64-bit whole numbers.
_MOST = (1 << 63) - 1

_BOUNDS = {
    "": (0, _MOST),
    "behind": (-_MOST, _MOST),
    "facts": (-_MOST, _MOST),
    "settings": (-_MOST, _MOST),
    "corpus.limit": (1, _MOST),
    "project": (1, _MOST),
}
"""Least and greatest value of every number of a header: of those with this name, or in a part of
this name; of all others the first."""


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
        for name, number in _header_numbers(record.model_dump(exclude={"rows"})):
            low, high = _BOUNDS.get(name) or _BOUNDS.get(name.partition(".")[0]) or _BOUNDS[""]
            if not low <= number <= high:
                raise ValueError(f"{name} is {number}")
        for name, value in zip(HEADER_KINDS, values(record, HEADER_KINDS), strict=True):
            if not isinstance(value, _TYPES[HEADER_KINDS[name]] | None):
                raise ValueError(f"{name} is {value!r}")
        for name, column in (("layer", record.rows.layer), ("n", record.rows.n)):
            if beyond := [x for x in column if x is not None and abs(x) > _MOST]:
                raise ValueError(f"{name} is {beyond[0]}")
    except MISFITS as error:
        raise unreadable(path, error) from error
    return record


def read_validated(path: Path) -> Record:
    """The record at `path`, `validated`.

    Raises:
        UserError: it cannot be read, or cannot be one of its measurement.
    """
    return validated(read_record(path), path)


def _header_numbers(content: object, name: str = "") -> Iterator[tuple[str, float]]:
    """The numbers in a part of a header, by names such as `corpus.limit`."""
    if isinstance(content, Mapping):
        for part, child in content.items():
            yield from _header_numbers(child, f"{name}.{part}".lstrip("."))
    elif isinstance(content, Sequence) and not isinstance(content, str):
        for child in content:
            yield from _header_numbers(child, name)
    elif isinstance(content, int | float):
        yield name, content


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
        preposition = "without" if record.task is None else "with"
        raise ValueError(f"a record of {name} {preposition} a task")
    if measurements.origin(name) is not None:
        return
    if record.measurement_version == measurement.version:
        options, settings = measurement.options, record.settings
        # What is empty unless it is given is not written then: it may be newer than the record.
        usual = {name for name, x in options.model_fields.items() if x.default not in ("", ())}
        if missing := usual - settings.keys():
            raise ValueError(f"no option {min(missing)}")
        own_settings = {x: settings[x] for x in options.model_fields if x in settings}
        options.model_validate(own_settings)
    bounds = {metric: bounds_of(metric) for metric in set(rows.metric)}
    n_layers = max(model.n_layers for model in (record.model, record.base) if model)
    for metric, value, layer, low, high, n, p in zip(
        rows.metric, rows.value, rows.layer, rows.low, rows.high, rows.n, rows.p, strict=True
    ):
        of_layer = "" if layer is None else f" of layer {layer}"
        least, most = bounds[metric]
        if value is not None and not least <= value <= most:
            raise ValueError(f"{metric}{of_layer} is {value:.6g}")
        if low is not None and high is not None:
            # A percentile interval of a skewed number may just miss it.
            slack, at = (high - low) / 2 + 1e-6, low if value is None else value
            if low > high or not low - slack <= at <= high + slack:
                raise ValueError(f"{metric}{of_layer} is {value}, between {low:.6g} and {high:.6g}")
        if not 0 <= (layer or 0) <= n_layers or (n or 0) < 0 or not 0 <= (p or 0) <= 1:
            raise ValueError(f"{metric}{of_layer} has n {n}, p {p}, of {n_layers} layers")
    if beyond := [x for x in record.behind if not 0 <= x <= n_layers]:
        raise ValueError(f"behind has layer {beyond[0]} of {n_layers}")
    if isinstance(record, Result) and (fits := _fits_by_layer(record)) != record.extent:
        # A probe that is solved has one fit, however many seeds were asked for.
        n_seeds = max(record.extent.values(), default=0)
        if record.extent != dict.fromkeys(fits, n_seeds) or {*fits.values()} != {1}:
            raise ValueError(f"its rows have fits {fits}, its extent {record.extent}")


def _fits_by_layer(result: Result) -> dict[int | None, int]:
    """Number of fits by layer, of which there are scores on test."""
    rows, metric = result.rows, result.task.metric
    further_axes = [axis for name, axis in rows.axes.items() if name != "seed"]
    coordinates = zip(rows.metric, rows.split, rows.layer, *further_axes, strict=True)
    return Counter(
        layer
        for name, split, layer, *at in coordinates
        if (name, split) == (metric, "test") and layer is not None and set(at) <= {None}
    )
