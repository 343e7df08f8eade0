"""`python -m probes show`: breakdowns of the scores, and the evidence behind them, by layer."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from probes.boards.breakdown_tables import MOST_LABELS, group_table, label_table
from probes.boards.evidence import tables_of
from probes.cli.arguments import place
from probes.cli.load_results import results_below
from probes.common.errors import UserError
from probes.common.registry import did_you_mean
from probes.common.terminal import output_console
from probes.measurements.joined_results import read_result
from probes.measurements.measurement import EVIDENCE, ON_REQUEST, probe_measurements
from probes.records.result import Result
from probes.rendering.terminal_tables import print_table

if TYPE_CHECKING:
    from rich.console import Console

SUMMARY = "Show breakdowns of scores, and the evidence behind them, by layer."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add = parser.add_argument
    add(
        "paths",
        nargs="+",
        type=place,
        metavar="RESULTS",
        help="results (.json), or folders of them",
    )
    add(
        "--by",
        metavar="WHAT",
        default="group",
        help=f"group (the default), label, or evidence: {', '.join((*EVIDENCE, *ON_REQUEST))}",
    )
    add("--all", action="store_true", help=f"all labels, not only the {MOST_LABELS} most frequent")


def run(options: argparse.Namespace) -> int:
    """Print the tables.

    Raises:
        UserError: a path does not exist, or there are no results.
    """
    if options.by not in (known := ("group", "label", *(x.name for x in probe_measurements()))):
        raise UserError(
            f"--by {options.by}: nothing of that name. {did_you_mean(options.by, known)}"
        )
    for path in options.paths:
        if not path.exists():
            raise UserError(f"{path}: there is no such file or folder.")
    folders = [path for path in options.paths if path.is_dir()]
    found = results_below(folders) if folders else {}
    found |= {path: read_result(path) for path in options.paths if path not in folders}
    console = output_console()
    results = list(found.values())
    if options.by in ("group", "label"):
        for result in results:
            _show_breakdown(console, result, options.by, options.all)
    else:
        for title, tables in tables_of(results, options.by):
            if not tables:
                console.print(f"{title}: no {options.by}.", highlight=False)
            for table in tables:
                print_table(table, console)
    return 0


def _show_breakdown(console: Console, result: Result, by: str, all_labels: bool) -> None:
    most = None if all_labels else MOST_LABELS
    table = group_table(result) if by == "group" else label_table(result, most)
    if table is None:
        task = f"{result.task.name}, {result.probe.family} probe"
        console.print(f"{task}: no breakdown by {by}.", highlight=False)
    else:
        print_table(table, console)
