"""Tables in the terminal, drawn by rich."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from textwrap import fill

from rich import box
from rich import table as rich_table
from rich.cells import cell_len
from rich.console import Console, JustifyMethod
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
    for place, part in enumerate(_parts(filled, console.width) if table.rows else ()):
        if place:
            console.print()
        console.print(_rich(part, console.width))
    for note in (*filled.notes, *filled.legend):
        console.print(Text(note, style="dim italic"))
    console.print()


def _parts(table: Table, width: int) -> Iterator[Table]:
    """The table, or parts of it that fit into `width` characters."""
    first, least = range(table.repeated), _least(table)
    rest = list(range(table.repeated, len(table.heads)))
    if not rest:
        yield table
    while rest:
        n = len(rest)
        while n > 1 and _width([least[i] for i in (*first, *rest[:n])]) > width:
            n -= 1
        part = table.with_columns([*first, *rest[:n]])
        yield replace(part, left=len(first) + sum(i < table.left for i in rest[:n]))
        rest = rest[n:]


def _width(columns: list[int]) -> int:
    return sum(columns) + _BETWEEN * (len(columns) - 1)


def _least(table: Table) -> list[int]:
    """The least width of each column.

    Heads and lines of words may be broken at spaces; numbers and verdicts may not.
    """
    found = []
    for i, head in enumerate(table.heads):
        least = [_longest(head, at_spaces=True), 1]
        for row in table.rows:
            text = _text(row.cells[i], words=i < table.left).plain
            if i < table.left and not row.cells[i].verdict:
                few, many = _WORDS
                least.append(min(_longest(text, at_spaces=True), many))
                least.append(min(_longest(text), few))
            else:
                least.append(_longest(text))
        found.append(max(least))
    return found


def _longest(text: str, *, at_spaces: bool = False) -> int:
    """The width of its longest line or word."""
    return max(map(cell_len, text.split() if at_spaces else text.splitlines()), default=0)


def _widths(table: Table, width: int) -> list[int]:
    """The width of each column: its least, and a fair share of what is left."""
    found = _least(table)
    lines = [
        [head, *(_text(row.cells[i], words=i < table.left).plain for row in table.rows)]
        for i, head in enumerate(table.heads)
    ]
    lacking = [
        max(max(map(_longest, texts)) - least, 0) for texts, least in zip(lines, found, strict=True)
    ]
    spare = width - _width(found)
    order = sorted(range(len(found)), key=lacking.__getitem__)
    for place, i in enumerate(order):
        share = min(lacking[i], max(spare, 0) // (len(order) - place))
        found[i], spare = found[i] + share, spare - share
    while spare < 0 and max(found) > 1:  # The longest words are broken then.
        found[found.index(max(found))] -= 1
        spare += 1
    return found


def _rich(table: Table, width: int) -> rich_table.Table:
    """The table as rich draws it in `width` characters."""
    made = rich_table.Table(
        box=box.HORIZONTALS, show_edge=False, pad_edge=False, padding=(0, _BETWEEN - 1, 0, 0)
    )
    for i, (head, chars) in enumerate(zip(table.heads, _widths(table, width), strict=True)):
        justify: JustifyMethod = "left" if i < table.left else "right"
        made.add_column(Text(head), justify=justify, width=chars, overflow="fold")
    for row in table.rows:
        texts = (_text(cell, words=i < table.left) for i, cell in enumerate(row.cells))
        made.add_row(*texts, style="dim" * row.faint, end_section=row.ends_section)
    return made


def _text(cell: Cell, *, words: bool) -> Text:
    text = cell.text
    if cell.half:
        text += f"±{cell.half.removeprefix('0')}"
    text += cell.marks
    style = VERDICT_STYLES.get(cell.text, "") if cell.verdict else "bold" * cell.best
    if cell.floored:
        style += " dim"
    elif cell.place is not None:
        # The darkest shades cannot be read on a dark ground.
        red, green, blue = shade(0.15 + 0.85 * cell.place)
        style += f" rgb({red},{green},{blue})"
    found = Text(text, style=style.strip())
    note = cell.note if words else fill(cell.note, _NOTE, break_long_words=False)
    return found.append(f"\n{note}", style="dim") if note else found
