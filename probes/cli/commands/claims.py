"""`python -m probes claims`: which claims of the literature the results support."""

from __future__ import annotations

import argparse
import json
from typing import Any

from probes.boards.claims.claim import CAVEAT
from probes.boards.claims.claim_reports import Report, claims_table, make_reports
from probes.boards.claims.literature import CLAIMS
from probes.boards.corpus_groups import of_corpora
from probes.cli.arguments import add_folders
from probes.cli.load_results import records_below
from probes.common.errors import UserError
from probes.common.terminal import output_console
from probes.measurements.joined_results import joined
from probes.records.files import or_published
from probes.rendering.markdown import markdown
from probes.rendering.terminal_tables import print_table

SUMMARY = "Test claims of the literature about layers and heads on results."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add_folders(parser)
    add = parser.add_argument
    add("--probe", default="linear", metavar="P", help="probe family (default: linear)")
    add("--format", choices=("table", "md", "json"), default="table", help="default: table")


def run(options: argparse.Namespace) -> int:
    """Print the verdicts for every model and corpus below the folders.

    Raises:
        UserError: there are no results of this probe family.
    """
    records = records_below(options.folders)
    reports = make_reports(joined(records), options.probe, of_corpora(records))
    if not reports:
        where = ", ".join(map(str, options.folders))
        there = or_published(*options.folders)
        raise UserError(f"{where}: no results of {options.probe} probes; run them first{there}.")
    if options.format == "json":
        print(
            json.dumps([_record(r, options.probe) for r in reports], indent=1, ensure_ascii=False)
        )
    elif options.format == "md":
        for report in reports:
            print(markdown(claims_table(report, options.probe), level=2))
    else:
        console = output_console()
        for report in reports:
            print_table(claims_table(report, options.probe), console)
    return 0


def _record(report: Report, family: str) -> dict[str, Any]:
    return {
        "model": report.model,
        "corpus": report.corpus,
        "marks": report.marks,
        "probe": family if report.scored else None,
        "caveat": CAVEAT,
        "claims": [
            {
                "name": claim.name,
                "statement": claim.statement,
                "source": claim.source,
                "differs": claim.differs,
                **report.outcomes[claim.name]._asdict(),
            }
            for claim in CLAIMS
        ],
    }
