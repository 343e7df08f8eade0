"""The long frame: the rows of any number of records, with what their headers say."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import repeat
from pathlib import Path
from typing import Any

import pandas as pd

from probes.common.errors import UserError
from probes.common.terminal import progress
from probes.records.files import Arrays, read_arrays
from probes.records.record import Record, limit_of, short_digest, task_marks
from probes.records.row import HEADER, Row

_INTEGERS = "limit", "layer", "n"


@dataclass(frozen=True, eq=False)
class Findings:
    """What charts are made from: records of several models, by label.

    Attributes:
        paths: their files, by label, which have arrays beside them.
    """

    records: Mapping[str, Record]
    paths: Mapping[str, Path] = field(default_factory=dict)

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The rows of all."""
        return labelled_frame(self.records)

    @cached_property
    def arrays(self) -> Mapping[str, Arrays]:
        """Arrays by label; those that cannot be read are named in messages."""
        found = {}
        for label, path in self.paths.items():
            if self.records[label].arrays:
                try:
                    found[label] = read_arrays(path)
                except UserError as error:
                    progress.say(f"not drawn: {error}")
        return found


def long_frame(records: Iterable[Record]) -> pd.DataFrame:
    """One row per number, with the columns `HEADER`, those of `Row`, and one for each axis."""
    return labelled_frame(("", record) for record in records)


def labelled_frame(
    records: Mapping[str, Record] | Iterable[tuple[str, Record]],
) -> pd.DataFrame:
    """The same of records whose models are called as labels say; "" keeps a model's own name."""
    columns: dict[str, list[Any]] = {name: [] for name in (*HEADER, *Row._fields[:-1])}
    axes: dict[str, list[Any]] = defaultdict(list)
    total = 0
    for label, record in records.items() if isinstance(records, Mapping) else records:
        rows = record.rows
        for name, value in _header(record, label).items():
            columns[name] += repeat(value, len(rows))
        for name in Row._fields[:-1]:
            columns[name] += getattr(rows, name)
        for name, places in rows.axes.items():
            axes[name] += [*repeat(None, total - len(axes[name])), *places]
        total += len(rows)
    for column in axes.values():
        column += repeat(None, total - len(column))
    frame = pd.DataFrame({**columns, **{name: _column(places) for name, places in axes.items()}})
    numbers = dict.fromkeys(("value", "low", "high", "p"), "float64")
    return frame.astype({**numbers, **dict.fromkeys(_INTEGERS, "Int64")})


def _header(record: Record, label: str) -> dict[str, Any]:
    return {
        "model": label or record.model.name,
        "revision": record.model.revision,
        "dtype": record.dtype,
        "corpus": record.corpus.name,
        "limit": limit_of(record),
        "task": record.task.name if record.task else None,
        "probe": record.probe.family if record.probe else None,
        "measurement": record.measurement,
        "key": short_digest(record.key),
        # The metric in whose unit differences of scores are; see `Quantity.of_task`.
        "unit": record.facts.get("unit") or (record.task.metric if record.task else ""),
        "marks": ", ".join(task_marks(record)),
    }


def _column(places: list[Any]) -> pd.Series:
    """An axis: whole numbers stay so where a row has no place on it."""
    whole = all(x is None or (isinstance(x, int) and not isinstance(x, bool)) for x in places)
    return pd.Series(places, dtype="Int64" if whole else object)
