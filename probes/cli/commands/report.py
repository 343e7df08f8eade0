"""`python -m probes report`: one HTML page of a folder of results."""

from __future__ import annotations

import argparse

from probes.boards.corpus_groups import of_corpora
from probes.cli.arguments import place
from probes.cli.load_results import load_records, no_results
from probes.common.files import require_parent
from probes.measurements.results import joined

SUMMARY = "Write one self-contained HTML page of all results in a folder."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add = parser.add_argument
    add(
        "folder",
        type=place,
        metavar="RESULTS",
        help="a folder of results, or of one model or corpus in it",
    )
    add("-o", "--output", type=place, metavar="FILE", help="default: RESULTS/report.html")


def run(options: argparse.Namespace) -> int:
    """Write the page and print its path.

    Raises:
        UserError: there is no such folder, it has no results, or the page's folder does not exist.
    """
    path = options.output or options.folder / "report.html"
    if options.output:
        require_parent(path)
    records = load_records([options.folder])
    found, others = joined(records), of_corpora(records)
    if not found and not others:
        raise no_results([options.folder])
    # Templates and the plotting library are imported once there is something to draw.
    from probes.rendering.page.page import write_page

    write_page(found, path, options.folder.resolve().name, others)
    print(path)
    return 0
