"""Tables of `python -m probes heads`."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

from probes.boards.groups import model_order
from probes.common.errors import UserError
from probes.common.terminal import progress
from probes.families.attention.tables import FEWEST_LISTED, head_tables
from probes.records.record import Record, model_title
from probes.tables.table import Table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument(
        "--by",
        choices=("entropy", "pattern", "relation"),
        default="relation",
        help="entropy or pattern of all heads, or the best heads by relation (the default), role "
        "and tree",
    )
    parser.add_argument(
        "--all",
        action="store_true",
        help=f"also relations with fewer than {FEWEST_LISTED} words in test",
    )


def tables(records: Mapping[Path, Record], options: argparse.Namespace, where: str) -> list[Table]:
    """The tables of all models; twins come after their models.

    Raises:
        UserError: no record has the requested table.
    """
    found = []
    for path, record in sorted(records.items(), key=lambda x: model_order(model_title(x[1]))):
        made = head_tables(record, options.by, every=options.all)
        if not made:
            progress.say(f"left out {path}: it has no relations, roles or trees")
        found += made
    if not found:
        raise UserError(
            f"{where}: no heads were chosen by {options.by}; this needs a corpus with heads or "
            "frames, and --attention-segments one."
        )
    return found
