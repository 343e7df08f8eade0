"""Tables in the terminal, by rich."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from textwrap import fill

from rich import table as rich_table
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from probes.records.table import Cell, Table
from probes.rendering.palette import shade

VERDICT_STYLES = {
    "supported": "green",
    "not specific to training": "yellow",
    "contradicted": "red",
    "undecided": "yellow",
    "not tested": "dim",
}


_NOTE = 8
"""Width of the lines of notes in tables that are split to fit: about that of a score."""


def print_table(table: Table, console: Console) -> None:
    """Print a table; one that may be split is printed in as many parts as it takes."""
    for part in _parts(table.filled, console.width):
        console.print(_rich(part, console.width))


def _parts(table: Table, width: int) -> Iterator[Table]:
    """The table, or parts of it that fit into `width` characters, the last with its notes."""
    first = table.repeated
    rest = list(range(first, len(table.heads))) if first else []
    if not rest:
        yield table
    while rest:
        n = len(rest)
        while n > 1 and _width(table.with_columns([*range(first), *rest[:n]])) > width:
            n -= 1
        part, rest = table.with_columns([*range(first), *rest[:n]]), rest[n:]
        yield replace(part, notes=()) if rest else part


def _width(table: Table, *, broken: bool = True) -> int:
    """Least width of a table in which no word and no number is broken between lines.

    Args:
        broken: whether heads may be broken at spaces.
    """
    least = sum(_least(table, column, broken=broken) + 3 for column in range(len(table.heads)))
    return least - 1 if table.repeated else least + 1


def _least(table: Table, column: int, *, broken: bool = True) -> int:
    """Least width of a column.

    Heads and words may be broken at spaces; numbers may not, nor may the names of the rows of a
    table that can be split instead.
    """
    texts = [line for text in _texts(table, column) for line in text.plain.splitlines()]
    if column < table.left and not table.repeated:
        texts = [word for text in texts for word in text.split()]
    head = table.heads[column]
    parts = head.split() if broken else head.splitlines()
    return max(map(cell_len, (*parts, *texts)), default=0)


def _rich(table: Table, width: int) -> rich_table.Table:
    """The table as rich prints it in `width` characters."""
    notes = (*table.notes, *table.legend)
    made = rich_table.Table(
        title=Text(table.title, style="bold"),
        title_justify="left",
        caption=Text("\n".join(notes)) if notes else None,
        caption_justify="left",
        pad_edge=not table.repeated,  # so that five tasks fit into 80 columns
    )
    fits = _width(table) <= width
    # Left alone, rich breaks the longest heads too often, and cuts the last column off.
    tight = fits and _width(table, broken=False) > width
    for column, head in enumerate(table.heads):
        if column < table.left:
            verdicts = any(row.cells[column].verdict for row in table.rows)
            made.add_column(Text(head), overflow="fold", no_wrap=verdicts)
        else:
            least = _least(table, column) if fits else None
            exact = least if tight else None
            made.add_column(Text(head), justify="right", min_width=least, width=exact)
    columns = [_texts(table, column) for column in range(len(table.heads))]
    for place, row in enumerate(table.rows):
        texts = (column[place] for column in columns)
        made.add_row(*texts, style="dim" * row.faint, end_section=row.ends_section)
    return made


def _texts(table: Table, column: int) -> list[Text]:
    """The cells of a column; those of a table that is split to fit are written without spaces."""
    return [_text(row.cells[column], compact=bool(table.repeated)) for row in table.rows]


def _text(cell: Cell, *, compact: bool) -> Text:
    text = cell.text
    if cell.half:
        text += f"±{cell.half.removeprefix('0')}" if compact else f" ± {cell.half}"
    text += cell.marks
    style = VERDICT_STYLES.get(cell.text, "") if cell.verdict else "bold" * cell.best
    if cell.floored:
        style += " dim"
    elif cell.place is not None:
        # The darkest shades cannot be read on a dark ground.
        red, green, blue = shade(0.15 + 0.85 * cell.place)
        style += f" rgb({red},{green},{blue})"
    found = Text(text, style=style.strip())
    note = fill(cell.note, _NOTE, break_long_words=False) if compact else cell.note
    return found.append(f"\n{note}", style="dim") if note else found
