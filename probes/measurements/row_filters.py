"""Chooses rows of a long frame by metric and values on axes, and puts these values into words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from probes.measurements.table_cells import layer_marks
from probes.records.best_layer import best_layer_rows
from probes.records.row import HEADER, Row
from probes.records.values import Interval
from probes.statistics.metrics import heading_with_unit, label_of, quantity

if TYPE_CHECKING:
    import pandas as pd


RECORD = ["model", "key"]
"""The columns that say which record of a frame a row is of."""

Where = Mapping[str, Any]
"""Values that rows must have, by column: one, several, `PlacesOf` or `BestOnDev`; None for no value
on an axis, `...` for any value. `split` is "test" unless given."""

Marks = Mapping[tuple[str, str, int], Mapping[str, bool]]
"""Marks by record, metric and layer, as fields of `probes.tables.table.Cell`."""


@dataclass(frozen=True)
class PlacesOf:
    """In `where`: the values at which another metric of the same record has rows.

    Attributes:
        or_none: whether rows without a value on the axis are chosen, too.
    """

    metric: str
    or_none: bool = False

    def rows(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The rows whose values are selected."""
        return frame[frame["metric"] == self.metric]


@dataclass(frozen=True)
class BestOnDev:
    """In `where`: the layer at which a metric of the same record is best on dev.

    Attributes:
        where: further conditions on the rows of dev.
    """

    metric: str
    where: Where = field(default_factory=dict)

    def rows(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The row of each record's best layer on dev; see `best_layer_rows`."""
        dev = rows_where(frame, [self.metric], {**self.where, "split": "dev"})
        return best_layer_rows(dev, RECORD)


def rows_where(frame: pd.DataFrame, metrics: Sequence[str], where: Where) -> pd.DataFrame:
    """The rows of some metrics, or of all, that fulfil the conditions."""
    # Each condition reads one column of the rows that are left; all columns are taken once.
    left = np.flatnonzero(frame["metric"].isin(metrics)) if metrics else np.arange(len(frame))
    for column, condition in {"split": "test", **where}.items():
        values = list(condition) if isinstance(condition, (list, tuple, set)) else [condition]
        if column not in frame:
            left = left if None in values else left[:0]
        elif isinstance(condition, (PlacesOf, BestOnDev)):
            keys = [*RECORD, column]
            rows = frame[keys].take(left)
            same = _tuples(rows).isin(_tuples(condition.rows(frame)[keys]))
            or_none = isinstance(condition, PlacesOf) and condition.or_none
            left = left[(same | rows[column].isna()) if or_none else same]
        else:
            cells = frame[column].take(left)
            absent = cells.isna()
            present_values = [x for x in values if x is not None]
            is_allowed = ~absent if ... in values else cells.isin(present_values)
            left = left[(is_allowed | absent) if None in values else is_allowed]
    return frame.take(left)


def _tuples(frame: pd.DataFrame) -> pd.MultiIndex:
    import pandas as pd

    return pd.MultiIndex.from_frame(frame)


def marks_of(frame: pd.DataFrame, metrics: Sequence[str], where: Where) -> Marks:
    """The marks of layers: the best on dev, and those not significantly worse on test.

    Of metrics with rows ``<metric>_p_best``, the p-values of the test behind the confidence set of
    layers; they have no value where nothing could be tested.
    """
    marks = {}
    for metric in metrics:
        best = BestOnDev(metric, where).rows(frame)
        best_layers = set(zip(best["key"], best["layer"], strict=True))
        tests = rows_where(frame, [f"{metric}_p_best"], where)
        for row in rows_in(tests[["key", "layer", "value"]]):
            key, layer, p = row.values()
            marks[key, metric, layer] = layer_marks(p, best=(key, layer) in best_layers)
    return marks


def axis_names(frame: pd.DataFrame) -> list[str]:
    """The axes of its rows."""
    return [str(name) for name in frame if name not in (*HEADER, *Row._fields)]


def rows_in(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a frame by column, None for what is missing."""
    cells, names = frame.to_numpy(dtype=object, copy=True), list(map(str, frame))
    cells[frame.isna().to_numpy()] = None
    return [dict(zip(names, row, strict=True)) for row in cells.tolist()]


def interval_of_row(row: Mapping[str, Any]) -> Interval:
    """The interval of a row; None without one."""
    return None if row["low"] is None or row["high"] is None else (row["low"], row["high"])


def printed_unit(row: Mapping[str, Any]) -> str:
    """The metric as which a number is printed: its own, or that of its task."""
    metric: str = row["unit"] if quantity(row["metric"]).of_task else row["metric"]
    return metric


def metric_heading(metric: str) -> str:
    """A metric in heads and titles of tables."""
    return heading_with_unit(label_of(metric), metric)


def axis_words(row: Mapping[str, Any], apart_from: Sequence[str] = ()) -> str:
    """A row's values on its axes, in words: ``labels alone``."""
    columns = (*HEADER, *Row._fields, *apart_from)
    return ", ".join(str(x) for name, x in row.items() if name not in columns and x is not None)


def worded(text: str, shown_rows: pd.DataFrame) -> str:
    """A title or note, with columns in braces replaced by the values of the rows shown."""

    def values(match: re.Match[str]) -> str:
        if match[1] not in shown_rows:
            return match[0]
        return " or ".join(map(str, sorted(shown_rows[match[1]].dropna().unique())))

    return re.sub(r"\{(\w+)\}", values, text)
