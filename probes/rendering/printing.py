"""Prints the tables of a command, in the format that the user asks for with `--format`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain

from rich.text import Text

from probes.common.errors import printable_lines
from probes.common.terminal import output_console
from probes.records.table import Table
from probes.rendering.latex import latex
from probes.rendering.markdown import markdown
from probes.rendering.rows import DataRow, csv_text, data_rows, json_text
from probes.rendering.terminal_tables import print_table

DOCUMENTS = {"md": markdown, "latex": latex}
"""Formats for readers that do not read in the terminal; a function of a table."""

DATA = {"csv": csv_text, "json": json_text}
"""Formats for programs; a function of rows."""

FORMATS = ("table", "md", *DATA, "latex")
"""What `--format` takes; "table" is the terminal's."""


class Printer:
    """Prints tables: in the terminal at once, in other formats as one text at the end.

    Attributes:
        form: one of `FORMATS`.
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
        console.print(Text(printable_lines(text), style), soft_wrap=True)

    @contextmanager
    def printing(self, form: str) -> Iterator[None]:
        """Print in this format inside the block, also what is there when something stops it."""
        self.form = form
        try:
            yield
        finally:
            if self._shown and form in DATA:
                print(DATA[form](self._rows), end="")
            elif self._shown and form in DOCUMENTS:
                print("\n".join(map(DOCUMENTS[form], self._tables)), end="")
            self.form, self._shown, self._tables, self._rows = "table", False, [], []


printer = Printer()
"""The one that commands print to."""
