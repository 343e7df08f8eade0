"""`python -m probes report`: one HTML file of a folder of results, to look at and to share."""

from __future__ import annotations

import argparse

from probes.cli.arguments import place
from probes.cli.commands.leaderboard import load

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
        UserError: there is no such folder, or nothing in it.
    """
    found = load([options.folder])
    # Templates and the plotting library are imported once there is something to draw.
    from probes.rendering.page.page import write_page

    path = options.output or options.folder / "report.html"
    write_page(found, path, options.folder.resolve().name)
    print(path)
    return 0
