"""`python -m probes heads`: what each attention head of a model does."""

from __future__ import annotations

import argparse

from probes.boards.groups import model_order, of_corpora
from probes.cli.arguments import add_folders, add_format
from probes.cli.results import records_below
from probes.common.errors import UserError
from probes.common.terminal import progress
from probes.measurements.attention.tables import FEWEST_LISTED, head_tables
from probes.records.files import or_published
from probes.records.record import model_title
from probes.tables.printing import printer

SUMMARY = "Show what attention heads do: entropy, patterns, and relations beside fixed offsets."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add_folders(parser)
    add = parser.add_argument
    add(
        "--by",
        choices=("entropy", "pattern", "relation"),
        default="relation",
        help="of all heads entropy or pattern, or the best heads by relation (the default), with "
        "roles and trees",
    )
    add(
        "--all",
        action="store_true",
        help=f"also relations that are rarer than {FEWEST_LISTED} in test",
    )
    add_format(parser)


def run(options: argparse.Namespace) -> int:
    """Print the tables, of twins after those of their models.

    Raises:
        UserError: there are no records of attention, or none with what is asked for.
    """
    where = ", ".join(map(str, options.folders))
    records = records_below(options.folders, measurements=["attention"])
    if not records:
        raise UserError(
            f"{where}: no records of attention; measure it with --measurements attention"
            f"{or_published(*options.folders)}."
        )
    tables = []
    ordered = sorted(of_corpora(records).items(), key=lambda x: model_order(model_title(x[1])))
    for path, record in ordered:
        made = head_tables(record, options.by, every=options.all)
        if not made:
            progress.say(f"left out {path}: it has no relations, roles or trees")
        tables += made
    if not tables:
        raise UserError(
            f"{where}: no heads were chosen by {options.by}; that takes a corpus with heads or "
            "frames, read one sentence at a time."
        )
    printer.show(tables)
    return 0
