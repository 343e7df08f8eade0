"""`python -m probes board`: checks results, and writes them as a static site."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from probes.boards.submissions import (
    Submission,
    read_submission,
    require_follows,
    require_unchanged,
)
from probes.cli.arguments import path_argument
from probes.cli.results import no_results
from probes.common.errors import counted
from probes.common.terminal import progress
from probes.records.result import Result


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add = parser.add_argument
    add("results", nargs="+", type=path_argument, metavar="RESULTS", help="folders of results")
    add("--site", type=path_argument, metavar="DIR", help="write the site; without it, only check")
    add(
        "--against",
        nargs="+",
        type=path_argument,
        default=[],
        metavar="RESULTS",
        help="results on the board: they are not checked again, and scores must not change",
    )


def run(options: argparse.Namespace) -> int:
    """Check everything, and write the site if `--site` is given.

    Raises:
        UserError: there are no results.
    """
    if options.site:
        # Import templates and the plotting library only if there is something to draw.
        from probes.pages.board_site import require_free, write_site

        require_free(options.site)
    board = read_submission(options.against)
    submission = read_submission(options.results)
    new_results = require_follows(submission, board)
    require_unchanged(submission, board)
    _report_submission(submission, new_results)
    if not submission.results:
        raise no_results(options.results)
    if options.site:
        print(write_site(submission, options.site))
    return 0


def _report_submission(submission: Submission, new_results: Mapping[Path, Result]) -> None:
    if n_known := len(submission.results) - len(new_results):
        progress.say(f"on the board already: {counted(n_known, 'result')}")
    if new_results:
        models = {result.model.name for result in new_results.values()}
        progress.say(
            f"recomputed {counted(len(new_results), 'result')} of {counted(len(models), 'model')}: "
            "scores, intervals and tests follow from the sums"
        )
    reasons = Counter((x.record.measurement, x.reason) for x in submission.left_off)
    for (measurement, reason), n in sorted(reasons.items()):
        progress.say(f"left off {counted(n, 'record')} of {measurement}: {reason}")
