"""`python -m probes report`: one HTML file of a folder of results, to look at and to share."""

from __future__ import annotations

import argparse

from common.errors import UserError
from probes.arguments import place
from probes.results import find_results

SUMMARY = "Write one self-contained HTML page of all results in a folder."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add = parser.add_argument
    add(
        "folder",
        type=place,
        metavar="RESULTS",
        help="results, or those of one model or corpus",
    )
    add("-o", "--output", type=place, metavar="FILE", help="default: RESULTS/report.html")


def run(options: argparse.Namespace) -> int:
    """Write the page and say where it is.

    Raises:
        UserError: there are no results.
    """
    if not options.folder.is_dir():
        raise UserError(f"{options.folder}: there is no such folder.")
    found = find_results(options.folder)
    if not found:
        raise UserError(f"{options.folder}: no results in this folder; run some first.")
    # Templates and the plotting library are imported once there is something to draw.
    from probes.report.page import write_page

    path = options.output or options.folder / "report.html"
    write_page(found, path, options.folder.resolve().name)
    print(path)
    return 0
