"""Rows of records: one number each, with its metric, layer, split and further axes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from pydantic import (
    Field,
    FiniteFloat,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
    model_validator,
)

from probes.records.values import Estimate, Frozen, Interval

HEADER = (
    "model",
    "revision",
    "dtype",
    "corpus",
    "limit",
    "task",
    "probe",
    "measurement",
    "key",
    "unit",
    "marks",
)
"""Columns that the header of a record adds to each of its rows in a long frame."""

AxisValue = int | float | str | None
"""A value on an axis of a row."""


class Row(NamedTuple):
    """One number of a record; not a row of a printed table (`TableRow`).

    Attributes:
        metric: name of the metric. `quantities` has its label and format.
        value: None if it is undefined; NaN is stored as None.
        layer: None for a number of the whole model.
        low, high: ends of the 95 % interval; None without one.
        split: part of the corpus that was measured.
        n: number of words, sentences or other items behind the value.
        p: p-value.
        why: reason for a missing value or interval, shown below the table.
        axes: further coordinates by name, such as ``{"head": 3}``.
    """

    metric: str
    value: float | None
    layer: int | None = None
    low: float | None = None
    high: float | None = None
    split: str = "test"
    n: int | None = None
    p: float | None = None
    why: str = ""
    axes: Mapping[str, AxisValue] = {}

    @classmethod
    def estimated(
        cls, metric: str, estimate: Estimate, layer: int | None = None, **fields: Any
    ) -> Row:
        """A row of an estimate, such as `ModelContext.mean` gives; `fields` are further ones."""
        low, high = estimate.interval or (None, None)
        return cls(metric, estimate.value, layer, low, high, why=estimate.missing or "", **fields)

    @property
    def interval(self) -> Interval:
        """Both ends of its interval; None without one."""
        return None if self.low is None or self.high is None else (self.low, self.high)


_NUMBERS = "value", "low", "high", "p"
_COUNTS = "layer", "n"


_DEFAULTS = {"value": None, **Row._field_defaults}


class Rows(Frozen):
    """The rows of a record, column by column: all have the same length.

    A file lacks columns that hold defaults only. A column of few texts that recur is stored as
    ``{"distinct": ["entropy", "first"], "at": [0, 0, 1]}``, with the index of each row's text.
    """

    metric: tuple[str, ...] = ()
    value: tuple[FiniteFloat | None, ...] = ()
    layer: tuple[int | None, ...] = ()
    low: tuple[FiniteFloat | None, ...] = ()
    high: tuple[FiniteFloat | None, ...] = ()
    split: tuple[str, ...] = ()
    n: tuple[int | None, ...] = ()
    p: tuple[FiniteFloat | None, ...] = ()
    why: tuple[str, ...] = ()
    axes: dict[str, tuple[AxisValue, ...]] = Field(default_factory=dict)
    """Values by axis; None where a row has no such axis."""

    @classmethod
    def of(cls, rows: Iterable[Row]) -> Rows:
        """The rows as columns; numbers of numpy become plain ones.

        Raises:
            TypeError: something is no `Row`, or has a value that is no number.
            ValueError: a number is infinite, or an axis has the name of another column.
        """
        row_list = list(rows)
        for row in row_list:
            if not isinstance(row, Row):
                raise TypeError(f"a measurement yielded {row!r}, not a Row")
        names = dict.fromkeys(name for row in row_list for name in row.axes)
        columns: dict[str, list[Any]] = {
            name: [getattr(row, name) for row in row_list] for name in Row._fields[:-1]
        }
        for name in _NUMBERS:
            columns[name] = [_float_or_none(x) for x in columns[name]]
        for name in _COUNTS:
            columns[name] = [None if x is None else int(x) for x in columns[name]]
        axes = {name: tuple(_axis_value(row.axes.get(name)) for row in row_list) for name in names}
        return cls.model_validate({**columns, "axes": axes})

    @model_validator(mode="before")
    @classmethod
    def _with_all_columns(cls, content: Any) -> Any:
        """Add the columns that a file leaves out, and write out those that it numbers."""
        if not isinstance(content, Mapping) or not content:
            return content
        if "metric" not in content:
            raise ValueError("rows without a metric")
        columns = {name: _written_out(x) for name, x in content.items() if name != "axes"}
        axes = {name: _written_out(x) for name, x in content.get("axes", {}).items()}
        n = len(columns["metric"])
        defaults = {name: (x,) * n for name, x in _DEFAULTS.items()}
        return {**defaults, **columns, "axes": axes}

    @model_serializer(mode="wrap")
    def _without_defaults(self, serialise: SerializerFunctionWrapHandler) -> dict[str, Any]:
        columns: dict[str, Any] = serialise(self)
        axes = {name: _numbered(column) for name, column in columns.pop("axes").items()}
        stored_columns = {
            name: _numbered(column)
            for name, column in columns.items()
            if set(column) - {_DEFAULTS.get(name)}
        }
        return {**stored_columns, "axes": axes} if axes else stored_columns

    @field_validator("axes")
    @classmethod
    def _named(cls, axes: dict[str, tuple[AxisValue, ...]]) -> dict[str, tuple[AxisValue, ...]]:
        if reserved_names := axes.keys() & {*HEADER, *Row._fields}:
            raise ValueError(f"an axis cannot be called {min(reserved_names)!r}; rename it")
        return axes

    @model_validator(mode="after")
    def _equal_lengths(self) -> Rows:
        columns = [*(getattr(self, name) for name in Row._fields[:-1]), *self.axes.values()]
        if len(set(map(len, columns))) > 1:
            raise ValueError("its rows have columns of different lengths")
        return self

    def at(
        self, metric: str, layer: int | None = None, split: str = "test", **axes: AxisValue
    ) -> Row | None:
        """The row of a metric at a layer, split and axes; None if there is none.

        Args:
            axes: all values that it has on axes.
        """
        axis_values: tuple[AxisValue, ...] = (None,) * len(self.axes)
        if axes:
            axis_values = tuple(axes.pop(name, None) for name in self.axes)
        number = self._row_numbers.get((metric, layer, split, axis_values))
        return None if number is None or axes else self._row(number)

    def along(self, axis: str) -> list[Row]:
        """The rows that have a value on an axis."""
        column = self.axes.get(axis, ())
        return [self._row(i) for i, axis_value in enumerate(column) if axis_value is not None]

    def with_metric(self, metric: str) -> list[Row]:
        """The rows of a metric."""
        return [self._row(i) for i in self._numbers_by_metric.get(metric, ())]

    def matching(self, metric: str, **axes: Any) -> list[Row]:
        """The rows of a metric that have these values on axes, and none on others.

        Args:
            axes: a value, a tuple of several, or `...` for any.
        """
        numbers = self._numbers_by_metric.get(metric, [])
        for name in {**self.axes, **axes}:
            column, x = self.axes.get(name, (None,) * len(self)), axes.get(name)
            values = x if isinstance(x, tuple) else (x,)
            numbers = [i for i in numbers if (column[i] is None) == (name not in axes)]
            if name in axes and x is not ...:
                numbers = [i for i in numbers if column[i] in values]
        return [self._row(i) for i in numbers]

    @cached_property
    def _numbers_by_metric(self) -> dict[str, list[int]]:
        """Indices of the rows of each metric."""
        numbers: dict[str, list[int]] = {}
        for number, metric in enumerate(self.metric):
            numbers.setdefault(metric, []).append(number)
        return numbers

    @cached_property
    def _row_numbers(self) -> dict[tuple[Any, ...], int]:
        """Index of each row by metric, layer, split and axis values; of equal ones the first."""
        keys = zip(self.metric, self.layer, self.split, self._axis_values, strict=True)
        row_numbers: dict[tuple[Any, ...], int] = {}
        for number, key in enumerate(keys):
            row_numbers.setdefault(key, number)
        return row_numbers

    @property
    def _axis_values(self) -> list[tuple[AxisValue, ...]]:
        """The values of each row on all axes."""
        return list(zip(*self.axes.values(), strict=True)) or [()] * len(self)

    def _row(self, number: int) -> Row:
        fields = [getattr(self, name)[number] for name in Row._fields[:-1]]
        axes = {name: x for name, column in self.axes.items() if (x := column[number]) is not None}
        return Row._make([*fields, axes])

    def extended(self, rows: Iterable[Row]) -> Rows:
        """These rows, followed by others."""
        more = Rows.of(rows)
        columns: dict[str, Any] = {
            name: getattr(self, name) + getattr(more, name) for name in Row._fields[:-1]
        }
        axes = {
            name: self.axes.get(name, (None,) * len(self))
            + more.axes.get(name, (None,) * len(more))
            for name in {**self.axes, **more.axes}
        }
        return Rows.model_construct(**columns, axes=axes)

    def __len__(self) -> int:
        return len(self.metric)

    def __iter__(self) -> Iterator[Row]:  # type: ignore[override]
        columns = [getattr(self, name) for name in Row._fields[:-1]]
        for *fields, values in zip(*columns, self._axis_values, strict=True):
            axes = {name: x for name, x in zip(self.axes, values, strict=True) if x is not None}
            yield Row._make([*fields, axes])


def _float_or_none(value: Any) -> float | None:
    if value is None:
        return None
    number = float(value)
    return None if math.isnan(number) else number


def _numbered(column: Sequence[Any]) -> Any:
    """A column as a file has it; see `Rows`."""
    distinct = dict.fromkeys(column)
    # As keys, 1 and 1.0 are the same: only texts and whole numbers are numbered.
    texts = str in (types := set(map(type, column))) and types <= {str, int, type(None)}
    if not texts or 10 * len(distinct) > len(column):
        return column
    index = {text: i for i, text in enumerate(distinct)}
    return {"distinct": list(distinct), "at": [index[text] for text in column]}


def _written_out(column: Any) -> Any:
    """A column that a file has numbered, or another as it is."""
    if not isinstance(column, Mapping):
        return column
    distinct = dict(enumerate(column["distinct"]))
    return tuple(map(distinct.__getitem__, column["at"]))


def _axis_value(value: Any) -> AxisValue:
    plain_value: AxisValue = value.item() if hasattr(value, "item") else value
    return plain_value
