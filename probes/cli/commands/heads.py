"""`python -m probes heads`: shows tables of attention heads."""

from __future__ import annotations

import argparse

from probes.boards.groups import model_order, of_corpora
from probes.cli.arguments import add_folders, add_format
from probes.cli.results import records_below
from probes.common.errors import UserError
from probes.common.terminal import progress
from probes.families.attention.tables import FEWEST_LISTED, head_tables
from probes.records.files import or_published
from probes.records.record import model_title
from probes.tables.printing import printer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add_folders(parser)
    add = parser.add_argument
    add(
        "--by",
        choices=("entropy", "pattern", "relation"),
        default="relation",
        help="entropy or pattern of all heads, or the best heads by relation (the default), role "
        "and tree",
    )
    add(
        "--all",
        action="store_true",
        help=f"also relations with fewer than {FEWEST_LISTED} words in test",
    )
    add_format(parser)


def run(options: argparse.Namespace) -> int:
    """Print the tables; twins come after their models.

    Raises:
        UserError: there are no records of attention, or none with the requested table.
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
            f"{where}: no heads were chosen by {options.by}; this needs a corpus with heads or "
            "frames, and --attention-segments one."
        )
    printer.show(tables)
    return 0
