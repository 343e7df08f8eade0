"""The long frame: the rows of any number of records, with what their headers say.

Columns of headers are declared in `probes.measurements.columns`, those of rows here; further axes
are named by measurements.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import repeat
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from probes.common.errors import UserError
from probes.common.terminal import progress
from probes.measurements.columns import (
    HEADER_KINDS,
    NUMBER,
    TEXT,
    WHOLE,
    columns_of,
    values,
)
from probes.records.files import Arrays, read_arrays
from probes.records.record import Record
from probes.records.row import HEADER, Place, Row

ROW_KINDS = {
    "metric": TEXT,
    "value": NUMBER,
    "layer": WHOLE,
    "low": NUMBER,
    "high": NUMBER,
    "split": TEXT,
    "n": WHOLE,
    "p": NUMBER,
    "why": TEXT,
    # Further axes as JSON, such as {"head": 3}; empty if there are none.
    "axes": TEXT,
    # How often the layer was measured.
    "fits": WHOLE,
}

FILE_KINDS = {"path": TEXT, "changed": WHOLE, "size": WHOLE}
"""Columns on a record's file. Rows have its path, which says whose they are."""

File = tuple[str, int | None, int | None]
"""Path, time of change and size."""


class Frame(NamedTuple):
    """Any number of records as two tables, which together are one long frame.

    Attributes:
        headers: a line per record, with the columns `FILE_KINDS` and `HEADER_KINDS`.
        rows: a line per number, with `path` and the columns `ROW_KINDS`.
    """

    headers: pd.DataFrame
    rows: pd.DataFrame

    def only(self, chosen: Any) -> Frame:
        """The chosen records with their rows."""
        headers = self.headers[chosen].reset_index(drop=True)
        return Frame(headers, self.rows[self.rows["path"].isin(headers["path"])])

    def long(self, chosen: Any, columns: Iterable[str]) -> pd.DataFrame:
        """The rows of the chosen records, in the order of headers, with columns of headers."""
        headers: pd.DataFrame = self.headers.loc[chosen, ["path", *columns]]
        return headers.merge(self.rows, on="path")


def header_table(records: Iterable[Record], columns: Collection[str]) -> pd.DataFrame:
    """Headers of records with some of their columns, a line per record."""
    lines = [values(record, columns) for record in records]
    by_column = [*zip(*lines, strict=True)] or [()] * len(columns)
    return _typed(dict(zip(columns, map(list, by_column), strict=True)))


def numbered(records: Iterable[Record]) -> dict[File, Record]:
    """Records without files, by their numbers."""
    return {(str(i), None, None): record for i, record in enumerate(records)}


def frame_of(
    records: Mapping[File, Record],
    header: Collection[str] = HEADER_KINDS.keys(),
) -> Frame:
    """The frame of records that were `validated`.

    Args:
        records: by their files.
        header: columns of headers, if not all.
    """
    headers: dict[str, list[Any]] = {name: [] for name in (*FILE_KINDS, *header)}
    columns: dict[str, list[Any]] = {name: [] for name in ("path", *ROW_KINDS)}
    for file, record in records.items():
        for name, known in zip(FILE_KINDS, file, strict=True):
            headers[name].append(known)
        known_columns = columns_of(record)
        for name in header:
            column = known_columns.get(name)
            headers[name].append(column and column.of(record))
        rows = record.rows
        for name in Row._fields[:-1]:
            columns[name] += getattr(rows, name)
        columns["path"] += repeat(file[0], len(rows))
        columns["axes"] += _axes_as_json(record)
        columns["fits"] += [x if x is None else record.extent.get(x) for x in rows.layer]
    return Frame(_typed(headers), _typed(columns))


def _typed(columns: Mapping[str, list[Any]]) -> pd.DataFrame:
    kinds = FILE_KINDS | HEADER_KINDS | ROW_KINDS
    text = pd.Series(["text"]).dtype  # whatever this version of pandas infers
    return pd.DataFrame(
        {
            name: pd.Series(x, dtype=text if kinds[name] == TEXT else kinds[name])
            for name, x in columns.items()
        }
    )


def _axes_as_json(record: Record) -> Iterator[str]:
    """The places of each row on further axes."""
    names, known = record.rows.axes, dict[tuple[object, ...], str]()
    for places in zip(*names.values(), strict=True) if names else repeat((), len(record.rows)):
        # 1 and 1.0 are equal, and different places.
        key = (*places, *map(type, places))
        if key not in known:
            given = {name: x for name, x in zip(names, places, strict=True) if x is not None}
            known[key] = json.dumps(given) if given else ""
        yield known[key]


def axes_of(rows: pd.DataFrame) -> dict[str, dict[str, Place]]:
    """The places that every distinct text in the column `axes` stands for."""
    return {text: json.loads(text) if text else {} for text in rows["axes"].unique()}


@dataclass(frozen=True, eq=False)
class Findings:
    """What charts are made from: records of several models, by label.

    Attributes:
        paths: their files, by label, which have arrays beside them.
        lacking: why others have no record, by label.
    """

    records: Mapping[str, Record]
    paths: Mapping[str, Path] = field(default_factory=dict)
    lacking: Mapping[str, str] = field(default_factory=dict)

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
    """The long frame of records by label, which names the model; "" keeps its own name."""
    labelled = [*(records.items() if isinstance(records, Mapping) else records)]
    headers, rows = frame_of(numbered(record for _, record in labelled), HEADER)
    names = [label or record.model.name for label, record in labelled]
    frame = headers.assign(model=pd.Series(names, dtype=headers["model"].dtype))[
        ["path", *HEADER]
    ].merge(rows)
    places = axes_of(frame)
    number = pd.Index([*places]).get_indexer(pd.Index(frame["axes"]))
    axes = {
        name: _column([given.get(name) for given in places.values()])
        .take(number)
        .set_axis(frame.index)
        for name in dict.fromkeys(name for given in places.values() for name in given)
    }
    return frame.drop(columns=["path", "axes", "fits"]).assign(**axes)


def _column(places: list[Any]) -> pd.Series:
    """An axis: whole numbers stay so where a row has no place on it."""
    whole = all(x is None or (isinstance(x, int) and not isinstance(x, bool)) for x in places)
    return pd.Series(places, dtype="Int64" if whole else object)
