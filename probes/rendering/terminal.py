"""Tables in the terminal, by rich."""

from __future__ import annotations

from collections.abc import Iterator

from rich import table as rich_table
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from probes.records.table import Cell, Table
from probes.rendering.palette import shade

VERDICT_STYLES = {
    "supported": "green",
    "contradicted": "red",
    "undecided": "yellow",
    "not tested": "dim",
}

_LEGEND = "★ best layer on dev · ☆ not separable from it (.05) · ± half a 95 % interval"


def print_table(table: Table, console: Console) -> None:
    """Print a table; one that may be split is printed in as many parts as it takes."""
    for part in _parts(table, console.width):
        console.print(_rich(part))


def _parts(table: Table, width: int) -> Iterator[Table]:
    """The table, or parts of it that are no wider than `width` columns of text."""
    first = table.repeated
    rest = list(range(first, len(table.heads))) if first else []
    if not rest:
        yield table
    while rest:
        n = len(rest)
        while n > 1 and _width(table.with_columns([*range(first), *rest[:n]])) > width:
            n -= 1
        yield table.with_columns([*range(first), *rest[:n]])
        rest = rest[n:]


def _width(table: Table) -> int:
    """Width of a table in which heads are broken between words, with padding and rules."""
    return sum(_longest(table, column) + 3 for column in range(len(table.heads))) - 1


def _longest(table: Table, column: int) -> int:
    """Width of a column's longest cell or word of its head."""
    texts = [text.plain for text in _texts(table, column)]
    return max(map(cell_len, (*table.heads[column].split(), *texts)))


def _rich(table: Table) -> rich_table.Table:
    """The table as rich prints it."""
    coloured = any(cell.place is not None for row in table.rows for cell in row.cells)
    notes = (*table.notes, _LEGEND) if coloured else table.notes
    made = rich_table.Table(
        title=Text(table.title, style="bold"),
        title_justify="left",
        caption=Text("\n".join(notes)) if notes else None,
        caption_justify="left",
        pad_edge=False,  # so that five tasks fit into 80 columns
    )
    columns = [_texts(table, column) for column in range(len(table.heads))]
    for column, head in enumerate(table.heads):
        if column < table.left:
            verdicts = any(row.cells[column].verdict for row in table.rows)
            made.add_column(Text(head), overflow="fold", no_wrap=verdicts)
        else:
            fixed = _longest(table, column) if table.repeated else None
            made.add_column(Text(head), justify="right", width=fixed)
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
    text += "★" * cell.best + "☆" * cell.tied
    style = VERDICT_STYLES.get(cell.text, "") if cell.verdict else "bold" * cell.best
    if cell.place is not None:
        # The darkest shades cannot be read on a dark ground.
        red, green, blue = shade(0.15 + 0.85 * cell.place)
        style += f" rgb({red},{green},{blue})"
    found = Text(text, style=style.strip())
    return found.append(f"\n{cell.note}", style="dim") if cell.note else found
