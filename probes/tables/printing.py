"""Prints the tables of a command, in the format that the user asks for with `--format`.

Markdown, and CSV and JSON for programs, are made here.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain
from textwrap import fill
from typing import Any

from rich import box
from rich import table as rich_table
from rich.cells import cell_len
from rich.console import Console, JustifyMethod
from rich.text import Text

from probes.common.errors import UserError, printable_lines
from probes.common.terminal import output_console, wrapped
from probes.tables.colours import shade
from probes.tables.latex import latex
from probes.tables.table import MARKS, NOTHING, Cell, Table, cell_text, csv_line

VERDICT_STYLES = {
    "supported": "green",
    "not specific to training": "yellow",
    "contradicted": "red",
    "undecided": "yellow",
    "not tested": "dim",
}

TIE = "\N{NO-BREAK SPACE}"
"""Between a number and its interval in Markdown, so that they are not torn apart."""

_BETWEEN = 2
"""Spaces between two columns."""

_NOTE = 8
"""Width of the notes of numbers: about that of a score."""

_WORDS = 12, 32
"""Columns of words are at least as wide as the first, if they have lines as long; words that are
longer than the second may be broken."""


def print_table(table: Table, console: Console) -> None:
    """Print a table, in as many parts as it takes, each with the first columns; then its notes."""
    filled = table.filled
    console.print(Text(table.title, style="bold"))
    for i, part in enumerate(_parts_in_width(filled, console.width) if table.rows else ()):
        if i:
            console.print()
        console.print(_rich(part, console.width))
    for note in (*filled.notes, *filled.legend):
        console.print(Text(note, style="dim italic"))
    console.print()


def _parts_in_width(table: Table, width: int) -> Iterator[Table]:
    """The table, or parts of it that fit into `width` characters."""
    first, least = range(table.repeated), _least_widths(table)
    columns = list(range(table.repeated, len(table.heads)))
    if not columns:
        yield table
    while columns:
        n = len(columns)
        while n > 1 and _width([least[i] for i in (*first, *columns[:n])]) > width:
            n -= 1
        part = table.with_columns([*first, *columns[:n]])
        yield replace(part, left=len(first) + sum(i < table.left for i in columns[:n]))
        columns = columns[n:]


def _width(columns: list[int]) -> int:
    return sum(columns) + _BETWEEN * (len(columns) - 1)


def _least_widths(table: Table) -> list[int]:
    """The least width of each column.

    Heads and lines of words may be broken at spaces; numbers and verdicts may not.
    """
    widths = []
    for i, head in enumerate(table.heads):
        least = [_longest(head, at_spaces=True), 1]
        for row in table.rows:
            text = _styled_text(row.cells[i], words=i < table.left).plain
            if i < table.left and not row.cells[i].verdict:
                few, many = _WORDS
                least.append(min(_longest(text, at_spaces=True), many))
                least.append(min(_longest(text), few))
            else:
                least.append(_longest(text))
        widths.append(max(least))
    return widths


def _longest(text: str, *, at_spaces: bool = False) -> int:
    """The width of its longest line or word."""
    return max(map(cell_len, text.split() if at_spaces else text.splitlines()), default=0)


def _widths(table: Table, width: int) -> list[int]:
    """The width of each column: its least, and a fair share of what is left."""
    widths = _least_widths(table)
    lines = [
        [head, *(_styled_text(row.cells[i], words=i < table.left).plain for row in table.rows)]
        for i, head in enumerate(table.heads)
    ]
    shortfall = [
        max(max(map(_longest, texts)) - least, 0)
        for texts, least in zip(lines, widths, strict=True)
    ]
    spare = width - _width(widths)
    order = sorted(range(len(widths)), key=shortfall.__getitem__)
    for n_served, i in enumerate(order):
        share = min(shortfall[i], max(spare, 0) // (len(order) - n_served))
        widths[i], spare = widths[i] + share, spare - share
    while spare < 0 and max(widths) > 1:  # The longest words are broken then.
        widths[widths.index(max(widths))] -= 1
        spare += 1
    return widths


def _rich(table: Table, width: int) -> rich_table.Table:
    """The table as rich draws it in `width` characters."""
    grid = rich_table.Table(
        box=box.HORIZONTALS, show_edge=False, pad_edge=False, padding=(0, _BETWEEN - 1, 0, 0)
    )
    for i, (head, chars) in enumerate(zip(table.heads, _widths(table, width), strict=True)):
        justify: JustifyMethod = "left" if i < table.left else "right"
        grid.add_column(Text(head), justify=justify, width=chars, overflow="fold")
    for row in table.rows:
        texts = (_styled_text(cell, words=i < table.left) for i, cell in enumerate(row.cells))
        grid.add_row(*texts, style="dim" if row.faint else "", end_section=row.ends_section)
    return grid


def _styled_text(cell: Cell, *, words: bool) -> Text:
    between = " " if cell.spread.startswith("[") else ""
    text = cell.text + between + cell.spread.replace("±0.", "±.") + cell.marks
    style = "bold" if cell.best else ""
    if cell.verdict:
        style = VERDICT_STYLES.get(cell.text, "")
    if cell.floored:
        style += " dim"
    elif cell.place is not None:
        # The darkest shades cannot be read on a dark ground.
        red, green, blue = shade(0.15 + 0.85 * cell.place)
        style += f" rgb({red},{green},{blue})"
    styled_text = Text(text, style=style.strip())
    note = cell.note if words else fill(cell.note, _NOTE, break_long_words=False)
    return styled_text.append(f"\n{note}", style="dim") if note else styled_text


DataRow = Mapping[str, Any]
"""Numbers and texts by name of the column; None for no value."""


def data_rows(table: Table) -> Iterator[DataRow]:
    """The rows of a table: its title in `table`, and a field for each head.

    Numbers are neither rounded nor in per cent. Columns that have intervals are followed by
    ``NAME low`` and ``NAME high``, those with marks by ``NAME marks``, which has the names in
    `MARKS`, those with notes by ``NAME note``. Where several rows are about one thing, each has its
    name, which is empty in the table.
    """
    names = _numbered_names(table.names)
    columns = [[row.cells[i] for row in table.rows] for i in range(len(names))]
    about = dict.fromkeys(names[: table.repeated])
    for row in table.rows:
        data_row: dict[str, Any] = {"table": table.title}
        for name, cell, column in zip(names, row.cells, columns, strict=True):
            data_row[name] = _cell_value(cell)
            if name in about:
                about[name] = data_row[name] = data_row[name] if cell.text else about[name]
            if any(other.interval for other in column):
                data_row[f"{name} low"], data_row[f"{name} high"] = cell.interval or (None, None)
            if any(other.marks for other in column):
                marks = " ".join(mark for mark in MARKS if getattr(cell, mark))
                data_row[f"{name} marks"] = marks or None
            if any(other.note for other in column):
                data_row[f"{name} note"] = cell.note or None
        yield data_row


def _numbered_names(names: Iterable[str]) -> list[str]:
    """The names, those that recur with a number: p, p 2."""
    new_names: list[str] = []
    for name in names:
        n = sum(re.sub(r" \d+$", "", other) == name for other in new_names)
        new_names.append(f"{name} {n + 1}" if n else name)
    return new_names


def _cell_value(cell: Cell) -> Any:
    """The number of a cell, or its text."""
    if cell.value is not None:
        return cell.value if math.isfinite(cell.value) else None
    if re.fullmatch(r"\d+(,\d{3})*", cell.text):
        return int(cell.text.replace(",", ""))
    return None if cell.text in ("", NOTHING) else cell.text


def csv_text(rows: Iterable[DataRow]) -> str:
    """Lines of CSV below one line of heads, with a column for every name of any row."""
    all_rows = list(rows)
    heads = list(dict.fromkeys(name for row in all_rows for name in row))
    lines = [[_flat(row.get(name)) for name in heads] for row in all_rows]
    return "".join(map(csv_line, [heads, *lines] if all_rows else []))


def _flat(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (dict, list)) else value


def json_text(rows: Iterable[DataRow]) -> str:
    """A list of objects, one on each line."""
    lines = [json.dumps(row, ensure_ascii=False, allow_nan=False) for row in rows]
    lines = ["".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in x) for x in lines]
    return "[\n" + ",\n".join(lines) + "\n]\n" if lines else "[]\n"


def markdown(table: Table, level: int = 3) -> str:
    """A table with its title as a heading of this level, and its notes."""
    table = table.filled
    lines = [f"{'#' * level} {escaped_markdown(table.title)}", "", *markdown_lines(table), ""]
    notes = (*table.notes, *table.legend)
    return "\n".join(lines + [f"{escaped_markdown(note)}\n" for note in notes])


def markdown_lines(table: Table) -> list[str]:
    """The lines of a table without its title and notes."""
    rules = ["---" if i < table.left else "---:" for i in range(len(table.heads))]
    lines = [_markdown_line(map(escaped_markdown, table.names)), _markdown_line(rules)]
    return lines + [_markdown_line(map(_markdown_cell, row.cells)) for row in table.rows]


def escaped_markdown(text: str) -> str:
    """Text that Markdown shows as it is."""
    # An ampersand that begins no entity and a bracket that belongs to no link need no escape.
    text = re.sub(r"&(?=#?\w+;)", "&amp;", text).replace("<", "&lt;")
    return re.sub(r"[\\`*_|]|\](?=[(\[:])", r"\\\g<0>", text)


def _markdown_line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _markdown_cell(cell: Cell) -> str:
    text = escaped_markdown(cell.text)
    if cell.best or cell.verdict:
        text = f"**{text}**"
    text += cell_text(replace(cell, text="")).replace(" ", TIE) + cell.marks
    return f"{text} · {escaped_markdown(cell.note)}" if cell.note else text


DOCUMENTS: dict[str, Callable[[Table], str]] = {"md": markdown, "latex": latex}
"""Formats for readers that do not read in the terminal; a function of a table."""

DATA = {"csv": csv_text, "json": json_text}
"""Formats for programs; a function of rows."""


class Printer:
    """Prints tables: in the terminal at once, in other formats as one text at the end.

    Attributes:
        form: what `--format` takes; "table" is the terminal's.
    """

    def __init__(self) -> None:
        self.form = "table"
        self._shown = False
        self._tables: list[Table] = []
        self._rows: list[DataRow] = []

    @property
    def immediate(self) -> bool:
        """Whether tables are seen before the command ends."""
        return self.form == "table"

    def show(
        self, tables: Iterable[Table], rows: Iterable[DataRow] = (), *, quiet: bool = False
    ) -> None:
        """Print tables one after the other.

        Args:
            rows: what programs are given instead of the tables, where they can do with more.
            quiet: print nothing in the terminal.
        """
        self._shown = True
        if self.immediate:
            for table in tables:
                print_table(table, output_console(quiet))
            return
        # With --transfer a run has the tables of each corpus twice.
        new = [table for table in tables if table not in self._tables]
        self._tables += new
        if self.form in DATA:
            self._rows += list(rows) or chain.from_iterable(map(data_rows, new))

    def say(self, text: str, style: str = "", *, quiet: bool = False) -> None:
        """Print a line beside the tables, which stay alone on standard output in other formats."""
        console = output_console(quiet, stderr=not self.immediate)
        width = console.width if console.is_terminal else sys.maxsize
        console.print(Text(wrapped(printable_lines(text), width, 2), style), soft_wrap=True)

    @contextmanager
    def printing(self, form: str, *, wide: bool = False) -> Iterator[None]:
        """Print in this format inside the block, also what is there when something stops it.

        Raises:
            UserError: `wide` is for another format than latex.
        """
        if wide and form != "latex":
            raise UserError("--wide: is for LaTeX; add --format latex, or drop it.")
        self.form = form
        try:
            yield
        finally:
            if self._shown and form in DATA:
                print(DATA[form](self._rows), end="")
            elif self._shown and form in DOCUMENTS:
                make = partial(latex, wide=wide) if wide else DOCUMENTS[form]
                print("\n".join(map(make, self._tables)), end="")
            self.form, self._shown, self._tables, self._rows = "table", False, [], []


printer = Printer()
"""The printer of all commands."""
