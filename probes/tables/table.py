"""The one type of table: filled by boards and measurements, written in five formats.

Lines of CSV files are made here too.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from probes.common.errors import printable, printable_lines
from probes.records.values import Interval

NOTHING = "–"
"""The text of a cell that has no value."""

BARS = "▁▂▃▄▅▆▇█"
"""Signs that make up curves in cells, from the least value to the greatest."""

MARKS = {
    "best": ("★", "best layer on dev"),
    "tied": ("☆", "not significantly worse than any other"),
    "beaten": ("†", "significantly worse than another"),
    "floored": ("▽", "not significantly above the floor"),
    "borderline": ("≈", "borderline: with other resamples, ☆ might change"),
}
"""Sign and meaning of each mark of a layer's score, by field of `Cell`."""


@dataclass(frozen=True)
class Cell:
    """One entry.

    Attributes:
        half: half the width of the value's 95 % interval, as text, or both ends in brackets; empty
            if it has none.
        note: what else there is to say about it.
        value: the number itself, without rounding or unit; None sorts last, and for text.
        interval: the 95 % interval of the value.
        best: whether it belongs to the best layer or model.
        tied: whether it does not, and is not significantly worse on test than any other.
        beaten: whether it belongs to the best layer on dev, and another is significantly better.
        floored: whether its score is not significantly above the floor.
        borderline: whether other resamples may have changed these marks.
        place: its place on the colour scale, from 0 to 1; None for no colour.
        verdict: whether the text is the verdict on a claim.
    """

    text: str = ""
    half: str = ""
    note: str = ""
    value: float | None = None
    interval: Interval = None
    best: bool = False
    tied: bool = False
    beaten: bool = False
    floored: bool = False
    borderline: bool = False
    place: float | None = None
    verdict: bool = False

    def __post_init__(self) -> None:
        _set_printable(self, text=printable(self.text), note=printable_lines(self.note))

    @property
    def spread(self) -> str:
        """Its interval: ``±0.4``, or ``[75.0, 100.0]``; empty if it has none."""
        return f"±{self.half}" if self.half and not self.half.startswith("[") else self.half

    @property
    def marks(self) -> str:
        """Its marks, as signs; see `MARKS`."""
        return "".join(sign for name, (sign, _) in MARKS.items() if getattr(self, name))


@dataclass(frozen=True)
class TableRow:
    """A row of a printed table, not a `Row` of a record.

    Attributes:
        model: label of the model that the row is about; empty if it is about none or several.
        task: name of the task that it is about; empty likewise.
        faint: whether it is set back, as baselines and models without a rank are.
        ends_section: whether a rule follows it.
    """

    cells: tuple[Cell, ...]
    model: str = ""
    faint: bool = False
    ends_section: bool = False
    task: str = ""

    @classmethod
    def of(cls, *cells: str | Cell, **fields: Any) -> TableRow:
        """A row of cells, some of them given by their text alone, with its other fields."""
        row_cells = tuple(Cell(cell) if isinstance(cell, str) else cell for cell in cells)
        return cls(row_cells, **fields)


@dataclass(frozen=True)
class Table:
    """A printed table, in any of the formats.

    Attributes:
        heads: of the columns. A second line qualifies the first; formats that have no lines put
            it in brackets.
        left: number of columns, from the first on, that hold words rather than numbers.
        notes: paragraphs below the table.
        repeated: number of columns, from the first on, that are repeated in every part of a table
            that is too wide for the terminal.
    """

    title: str
    heads: tuple[str, ...]
    rows: tuple[TableRow, ...]
    left: int = 1
    notes: tuple[str, ...] = ()
    repeated: int = 1

    def __post_init__(self) -> None:
        heads, notes = (tuple(map(printable_lines, x)) for x in (self.heads, self.notes))
        _set_printable(self, title=printable_lines(self.title), heads=heads, notes=notes)

    @property
    def texts(self) -> list[tuple[str, ...]]:
        """The texts of the cells by row, with intervals: ``94.7 ± 0.4``."""
        return [tuple(map(cell_text, row.cells)) for row in self.rows]

    @property
    def names(self) -> tuple[str, ...]:
        """The heads in one line: ``pos (accuracy, masked)``."""
        parts = (head.split("\n") for head in self.heads)
        return tuple(f"{x} ({', '.join(more)})" if more else x for x, *more in parts)

    @property
    def legend(self) -> list[str]:
        """Meaning of the marks of a table of scores: a line, or none."""
        return marks_legend([self])

    @property
    def filled(self) -> Table:
        """The table without columns, and faint rows, of nothing but dashes; a note names them."""
        places = range(len(self.heads))
        columns = {i for i in places if _is_empty([row.cells[i] for row in self.rows])}
        if columns.issuperset(places[self.left :]):  # There would be nothing left to show.
            columns = set()
        rows = [row for row in self.rows if row.faint and _is_empty(row.cells[self.left :])]
        if not (columns or rows):
            return self
        left_out = [self.heads[i].replace("\n", ", ") for i in sorted(columns)]
        left_out += [" ".join(cell.text for cell in row.cells[: self.left]) for row in rows]
        indices = [i for i in places if i not in columns]
        subject = "Columns and rows" if columns and rows else "Columns" if columns else "Rows"
        return replace(
            replace(self, rows=tuple(r for r in self.rows if r not in rows)).with_columns(indices),
            left=sum(i < self.left for i in indices),
            repeated=sum(i < self.repeated for i in indices),
            notes=(*self.notes, f"{subject} without a value are not shown: {'; '.join(left_out)}."),
        )

    @property
    def turned(self) -> Table:
        """The table with rows and columns exchanged."""
        corner, *heads = (head.replace("\n", ", ") for head in self.heads)
        columns = [[row.cells[i] for row in self.rows] for i in range(len(self.heads))]
        first, *other_columns = columns
        rows = (TableRow.of(head, *cells) for head, cells in zip(heads, other_columns, strict=True))
        return replace(
            self, heads=(f"by {corner}", *(cell.text for cell in first)), rows=tuple(rows)
        )

    def with_columns(self, columns: Iterable[int]) -> Table:
        """A copy with some of the columns."""
        indices = list(columns)
        return replace(
            self,
            heads=tuple(self.heads[i] for i in indices),
            rows=tuple(
                replace(row, cells=tuple(row.cells[i] for i in indices)) for row in self.rows
            ),
        )


def marks_legend(tables: Iterable[Table]) -> list[str]:
    """Meaning of the marks in tables of scores: a line, or none if the notes say it all."""
    all_tables = list(tables)
    cells = [cell for table in all_tables for row in table.rows for cell in row.cells]
    explained = {note[:1] for table in all_tables for note in table.notes}
    legend = "" if all(cell.place is None for cell in cells) else marks_meaning(cells, explained)
    return [legend] if legend else []


def marks_meaning(cells: Iterable[Cell], explained: Collection[str] = ()) -> str:
    """Meaning of the marks of cells but those that are `explained`; empty without any."""
    used = {sign for cell in cells for sign in cell.marks}.difference(explained)
    return " · ".join(f"{sign} {meaning}" for sign, meaning in MARKS.values() if sign in used)


def _set_printable(of: Cell | Table, **texts: str | tuple[str, ...]) -> None:
    """Give a table or a cell its texts with control characters escaped, for all formats alike."""
    for name, text in texts.items():
        object.__setattr__(of, name, text)


def cell_text(cell: Cell) -> str:
    """A cell's text with its interval: ``94.7 ± 0.4`` or ``100.0 [75.0, 100.0]``."""
    return f"{cell.text} {cell.spread.replace('±', '± ')}".rstrip(" ")


def _is_empty(cells: Sequence[Cell]) -> bool:
    """Whether there are dashes among the cells, and no value."""
    dashes = {cell.text for cell in cells} - {""} == {NOTHING}
    return dashes and not any(cell.note for cell in cells)


ESCAPE = "'"
"""Precedes a text that a spreadsheet would run as a formula, as OWASP advises ("CSV Injection",
owasp.org/www-community/attacks/CSV_Injection). A text that begins with an apostrophe gets another,
so that removing one always restores the text."""

_FORMULA = "=+-@＝＋－＠\t\r\n"


def escaped_cell(text: str) -> str:
    """A text as it is written to the file."""
    return ESCAPE + text if text.startswith((*_FORMULA, ESCAPE)) else text


def csv_line(values: Iterable[object]) -> str:
    """One line: texts are quoted, numbers are not, a missing value and an empty text are empty.

    A quoted text stays in its cell even in a spreadsheet that separates cells by semicolons.
    """
    return ",".join(map(csv_cell, values)) + "\n"


@lru_cache(maxsize=1 << 16)
def _quoted(text: str) -> str:
    return '"' + escaped_cell(printable(text)).replace('"', '""') + '"'


def csv_cell(value: object) -> str:
    """One cell of a CSV file; see `csv_line`."""
    match value:
        case None | "":
            return ""
        case bool():
            # As R writes it; pandas and spreadsheets read it as well.
            return str(value).upper()
        case int():
            return str(value)
        case float():
            return "" if math.isnan(value) else f"{value:.6g}"
        case _:
            return _quoted(str(value))
