"""Tables as GitHub's Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable

from probes.records.table import Cell, Table


def markdown(table: Table, level: int = 3) -> str:
    """A table with its title as a heading of this level, and its notes."""
    table = table.filled
    lines = [f"{'#' * level} {escaped(table.title)}", "", *markdown_lines(table), ""]
    notes = (*table.notes, *table.legend)
    return "\n".join(lines + [f"{escaped(note)}\n" for note in notes])


def markdown_lines(table: Table) -> list[str]:
    """The lines of a table without its title and notes."""
    rules = ["---" if i < table.left else "---:" for i in range(len(table.heads))]
    lines = [_line(map(_head, table.heads)), _line(rules)]
    return lines + [_line(map(_cell, row.cells)) for row in table.rows]


def escaped(text: str) -> str:
    """Text that Markdown shows as it is."""
    # An ampersand that begins no entity and a bracket that belongs to no link need no escape.
    text = re.sub(r"&(?=#?\w+;)", "&amp;", text).replace("<", "&lt;")
    return re.sub(r"[\\`*_|]|\](?=[(\[:])", r"\\\g<0>", text)


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _head(head: str) -> str:
    name, _, qualified = head.partition("\n")
    return escaped(f"{name} ({qualified})" if qualified else name)


def _cell(cell: Cell) -> str:
    text = escaped(cell.text)
    if cell.best or cell.verdict:
        text = f"**{text}**"
    text += f" ± {cell.half}" * bool(cell.half) + cell.marks
    return text + f" · {escaped(cell.note)}" * bool(cell.note)
