"""`python -m probes leaderboard`: ranks models task by task, with significant differences."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from pathlib import Path

from probes.boards.ranking_tables import csv_rows, ranking_frame, ranking_tables
from probes.boards.rankings import make_rankings, named_candidates
from probes.cli.arguments import add_format, names, path_argument
from probes.cli.results import no_results, only, records_below
from probes.common.errors import UserError
from probes.frames.joined_results import results_with_evidence
from probes.measurements.catalogue import family_modules
from probes.records.record import Record
from probes.records.result import Result
from probes.tables.printing import printer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add = parser.add_argument
    add(
        "results",
        nargs="*",
        type=path_argument,
        default=[Path("results")],
        help="folders of results",
    )
    add("--corpus", type=names, default=(), metavar="C,…", help="only these corpora")
    add("--probe", type=names, default=(), metavar="P,…", help="only these probe families")
    add("--task", type=names, default=(), metavar="T,…", help="only these tasks")
    add(
        "--max-parameters",
        type=n_parameters,
        metavar="N",
        help="only models up to this size: 110M, 1.5B",
    )
    add("--together", action="store_true", help="rank causal and bidirectional encoders together")
    add_format(parser)


def n_parameters(text: str) -> float:
    """A number such as 5000, 110M or 1.5B.

    Raises:
        UserError: the text is not such a number.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([kKmMbBgG]?)", text.strip())
    if not match:
        raise UserError(f"--max-parameters {text}: give a number such as 5000, 110M or 1.5B.")
    units = {"": 1.0, "k": 1e3, "m": 1e6, "b": 1e9, "g": 1e9}
    return float(match[1]) * units[match[2].lower()]


def run(options: argparse.Namespace) -> int:
    """Print the tables.

    Raises:
        UserError: there are no results that pass the filters.
    """
    records = records_below(options.results)
    comparisons = list(family_modules("comparison"))
    ranked_records: dict[Path, Record] = dict(results_with_evidence(records))
    for module in comparisons:
        ranked_records |= module.compared(records)
    if not ranked_records:
        raise no_results(options.results)
    matches = filtered_records(ranked_records, options)
    results = {path: x for path, x in matches.items() if isinstance(x, Result)}
    for ranking in make_rankings(named_candidates(results), together=options.together):
        frame = ranking_frame(ranking)
        printer.show(ranking_tables(ranking, frame), csv_rows(ranking, frame))
    for module in comparisons:
        printer.show(module.ranked_tables(module.compared(matches)))
    return 0


def filtered_records(
    records: Mapping[Path, Record], options: argparse.Namespace
) -> dict[Path, Record]:
    """The records that pass the filters.

    Raises:
        UserError: no result has the name in a filter, or no result passes all filters.
    """
    # `only` lets records without a task or probe pass, such as answers to items.
    named_records = only(records, corpus=options.corpus, task=options.task, probe=options.probe)
    matches = {
        path: r
        for path, r in named_records.items()
        if (r.task or not options.task)
        and (r.probe or not options.probe)
        and (options.max_parameters is None or r.model.parameters <= options.max_parameters)
    }
    if not matches:
        raise UserError("No result passes all of these filters; drop one.")
    return matches
