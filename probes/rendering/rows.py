"""Tables as rows of numbers, for programs: CSV and JSON."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from probes.records.csv_text import csv_line
from probes.records.table import MARKS, NOTHING, Cell, Table

DataRow = Mapping[str, Any]
"""Numbers and texts by name of the column; None for no value."""


def data_rows(table: Table) -> Iterator[DataRow]:
    """The rows of a table: its title in `table`, and a field for each head.

    Numbers are neither rounded nor in per cent. Columns that have intervals are followed by
    ``NAME low`` and ``NAME high``, those with marks by ``NAME marks``, which has the names in
    `MARKS`, those with notes by ``NAME note``. Where several rows are about one thing, each has its
    name, which is empty in the table.
    """
    names = _distinct(table.names)
    columns = [[row.cells[i] for row in table.rows] for i in range(len(names))]
    about = dict.fromkeys(names[: table.repeated])
    for row in table.rows:
        found: dict[str, Any] = {"table": table.title}
        for name, cell, column in zip(names, row.cells, columns, strict=True):
            found[name] = _value(cell)
            if name in about:
                about[name] = found[name] = found[name] if cell.text else about[name]
            if any(other.interval for other in column):
                found[f"{name} low"], found[f"{name} high"] = cell.interval or (None, None)
            if any(other.marks for other in column):
                marks = " ".join(mark for mark in MARKS if getattr(cell, mark))
                found[f"{name} marks"] = marks or None
            if any(other.note for other in column):
                found[f"{name} note"] = cell.note or None
        yield found


def _distinct(names: Iterable[str]) -> list[str]:
    """The names, those that recur with a number: p, p 2."""
    found: list[str] = []
    for name in names:
        n = sum(re.sub(r" \d+$", "", other) == name for other in found)
        found.append(f"{name} {n + 1}" if n else name)
    return found


def _value(cell: Cell) -> Any:
    """The number of a cell, or its text."""
    if cell.value is not None:
        return cell.value if math.isfinite(cell.value) else None
    if re.fullmatch(r"\d+(,\d{3})*", cell.text):
        return int(cell.text.replace(",", ""))
    return None if cell.text in ("", NOTHING) else cell.text


def csv_text(rows: Iterable[DataRow]) -> str:
    """Lines of CSV below one line of heads, with a column for every name of any row."""
    every = list(rows)
    heads = list(dict.fromkeys(name for row in every for name in row))
    lines = [[_flat(row.get(name)) for name in heads] for row in every]
    return "".join(map(csv_line, [heads, *lines] if every else []))


def _flat(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (dict, list)) else value


def json_text(rows: Iterable[DataRow]) -> str:
    """A list of objects, one on each line."""
    lines = [json.dumps(row, ensure_ascii=False, allow_nan=False) for row in rows]
    lines = ["".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in x) for x in lines]
    return "[\n" + ",\n".join(lines) + "\n]\n" if lines else "[]\n"
