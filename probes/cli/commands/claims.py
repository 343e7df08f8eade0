"""`python -m probes claims`: tests claims of the literature on results."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from probes.boards.claims.claim_reports import Report, claims_table, make_reports, verdicts_tables
from probes.boards.claims.score_claims import all_claims
from probes.boards.shown_together import corpus_records_of
from probes.cli.arguments import add_folders, add_format
from probes.cli.results import records_below
from probes.common.errors import UserError
from probes.frames.joined_results import results_with_evidence
from probes.records.record_files import or_published
from probes.tables.printing import DataRow, printer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add_folders(parser)
    add = parser.add_argument
    add("--probe", default="linear", metavar="P", help="probe family (default: linear)")
    add_format(parser)


def run(options: argparse.Namespace) -> int:
    """Print the verdicts for every model and corpus below the folders.

    Raises:
        UserError: there are no results of this probe family.
    """
    records = records_below(options.folders)
    reports = make_reports(
        results_with_evidence(records), options.probe, corpus_records_of(records)
    )
    if not reports:
        where = ", ".join(map(str, options.folders))
        there = or_published(*options.folders)
        raise UserError(f"{where}: no results of {options.probe} probes; run them first{there}.")
    side_by_side = verdicts_tables(reports, options.probe)
    for i, report in enumerate(reports):
        tables = [*(() if i else side_by_side), claims_table(report)]
        printer.show(tables, _claim_rows(report))
    return 0


def _claim_rows(report: Report) -> Iterator[DataRow]:
    """A row for each claim."""
    for claim in all_claims():
        yield {
            "model": report.model,
            "corpus": report.corpus,
            "marks": ", ".join(report.marks),
            "probe": report.probe or None,
            "claim": claim.name,
            "statement": claim.statement,
            "source": claim.source,
            "differs": claim.differs,
            **report.outcomes[claim.name]._asdict(),
        }
