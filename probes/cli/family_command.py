"""Sub-commands of families: tables of the records of one measurement."""

from __future__ import annotations

import argparse
import importlib
from typing import NamedTuple

from probes.boards.shown_together import corpus_records_of
from probes.cli.arguments import add_folders, add_format
from probes.cli.results import records_below
from probes.common.errors import UserError
from probes.measurements.catalogue import Command
from probes.records.record_files import or_published
from probes.tables.printing import printer


class FamilyCommand(NamedTuple):
    """A registered command with the two functions of a module of `probes.cli.commands`."""

    command: Command

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add folders, the command's own arguments, and the format."""
        add_folders(parser)
        importlib.import_module(self.command.module).add_arguments(parser)
        add_format(parser)

    def run(self, options: argparse.Namespace) -> int:
        """Print the tables.

        Raises:
            UserError: there are no records of the measurement, or none with such tables.
        """
        where, name = ", ".join(map(str, options.folders)), self.command.measurement
        records = corpus_records_of(records_below(options.folders, measurements=[name]))
        if not records:
            raise UserError(
                f"{where}: no records of {name}; measure it with --measurements {name}"
                f"{or_published(*options.folders)}."
            )
        module = importlib.import_module(self.command.module)
        printer.show(module.tables(records, options, where))
        return 0
