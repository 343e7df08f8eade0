"""Prints tables in the format that a user asks for."""

from __future__ import annotations

from collections.abc import Iterable

from probes.common.terminal import output_console
from probes.records.table import Table
from probes.rendering.latex import latex
from probes.rendering.markdown import markdown
from probes.rendering.terminal_tables import print_table

WRITERS = {"md": markdown, "latex": latex}
"""Formats but for that of the terminal."""


def print_tables(tables: Iterable[Table], form: str) -> None:
    """Print tables one after the other.

    Args:
        form: "terminal", or one of `WRITERS`.
    """
    console = output_console()
    for table in tables:
        if form == "terminal":
            print_table(table, console)
        else:
            print(WRITERS[form](table))
