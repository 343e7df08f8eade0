"""Rows of a long frame in words: what their metrics, units and places are called."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from probes.records.row import HEADER, Row
from probes.records.values import Interval
from probes.statistics.metrics import is_percent, label_of, quantity

if TYPE_CHECKING:
    import pandas as pd


def axes_of(frame: pd.DataFrame) -> list[str]:
    """The axes of its rows."""
    return [str(name) for name in frame if name not in (*HEADER, *Row._fields)]


def rows_in(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a frame by column, None for what is missing."""
    each = frame.astype(object).where(frame.notna(), None)
    names = list(map(str, each))
    return [dict(zip(names, row, strict=True)) for row in each.to_numpy().tolist()]


def interval_of(row: Mapping[str, Any]) -> Interval:
    """The interval of a row; None without one."""
    return None if row["low"] is None or row["high"] is None else (row["low"], row["high"])


def unit_of(row: Mapping[str, Any]) -> str:
    """The metric as which a number is printed: its own, or that of its task."""
    metric: str = row["unit"] if quantity(row["metric"]).of_task else row["metric"]
    return metric


def named(metric: str) -> str:
    """A metric in heads and titles of tables."""
    return label_of(metric) + ", %" * is_percent(metric)


def place_of(row: Mapping[str, Any], apart_from: Sequence[str] = ()) -> str:
    """A row's places on its axes, in words: ``labels alone``."""
    known = (*HEADER, *Row._fields, *apart_from)
    return ", ".join(str(x) for name, x in row.items() if name not in known and x is not None)


def worded(text: str, shown: pd.DataFrame) -> str:
    """A title or note; columns in braces stand for the places of the rows that are shown."""

    def places(found: re.Match[str]) -> str:
        if found[1] not in shown:
            return found[0]
        return " or ".join(map(str, sorted(shown[found[1]].dropna().unique())))

    return re.sub(r"\{(\w+)\}", places, text)
