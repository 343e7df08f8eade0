"""`python -m probes report`: writes one HTML page of results."""

from __future__ import annotations

import argparse

from probes.boards.shown_together import corpus_records_of
from probes.cli.arguments import add_folders, path_argument
from probes.cli.results import no_results, records_below
from probes.common.errors import UserError
from probes.common.files import require_parent
from probes.frames.joined_results import results_with_evidence


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add_folders(parser)
    parser.add_argument(
        "-o",
        "--output",
        type=path_argument,
        metavar="FILE",
        help="default: RESULTS/report.html; required for several folders",
    )


def run(options: argparse.Namespace) -> int:
    """Write the page and print its path.

    Raises:
        UserError: several folders come without `--output`, or there are no results.
    """
    folders = options.folders
    if options.output:
        require_parent(options.output)
    elif len(folders) > 1:
        raise UserError(f"{len(folders)} folders need an output file, such as -o report.html.")
    path = options.output or folders[0] / "report.html"
    records = records_below(folders)
    results, corpus_records = results_with_evidence(records), corpus_records_of(records)
    if not results and not corpus_records:
        raise no_results(folders)
    # Import templates and the plotting library only if there is something to draw.
    from probes.pages.page import write_page
    from probes.tables.figures import no_room

    if reason := no_room():
        raise UserError(f"{path}: not written, since {reason}; lift the limit.")
    title = " · ".join(dict.fromkeys(folder.resolve().name for folder in folders))
    write_page(results, path, title, corpus_records)
    print(path)
    return 0
