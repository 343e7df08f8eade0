"""`python -m probes claims`: which claims of the literature about layers the results support."""

from __future__ import annotations

import argparse
import json
from typing import Any

from rich.table import Table
from rich.text import Text

from probes.boards.claims.literature import CAVEAT, CLAIMS, NOTE
from probes.boards.claims.report import Report, make_reports
from probes.cli.arguments import place
from probes.common.errors import UserError
from probes.common.terminal import output_console
from probes.records.files import or_published
from probes.records.unique import unique_results

SUMMARY = "Test claims of the literature about layers on the results in a folder."

COLOURS = {"supported": "green", "contradicted": "red", "undecided": "yellow", "not tested": "dim"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add = parser.add_argument
    add("folder", type=place, help="a folder of results, or of one model or corpus in it")
    add("--probe", default="linear", metavar="P", help="probe family (default: linear)")
    add("--format", choices=("table", "md", "json"), default="table", help="default: table")


def run(options: argparse.Namespace) -> int:
    """Print the verdicts for every model and corpus below the folder.

    Raises:
        UserError: there are no results of this probe family.
    """
    if not options.folder.is_dir():
        raise UserError(f"{options.folder}: there is no such folder.")
    reports = make_reports(unique_results(options.folder), options.probe)
    if not reports:
        there = or_published(options.folder)
        raise UserError(
            f"{options.folder}: no results of {options.probe} probes; run them first{there}."
        )
    if options.format == "json":
        print(
            json.dumps([_record(r, options.probe) for r in reports], indent=1, ensure_ascii=False)
        )
    elif options.format == "md":
        print("\n".join(line for report in reports for line in _markdown(report, options.probe)))
    else:
        console = output_console()
        for report in reports:
            console.print(_table(report, options.probe))
    return 0


def _table(report: Report, family: str) -> Table:
    table = Table(title=Text(f"{report.title} · {family} probe"), caption=NOTE, show_lines=True)
    table.add_column("claim")
    table.add_column("verdict", no_wrap=True)
    table.add_column("numbers")
    for claim in CLAIMS:
        finding = report.findings[claim.name]
        said = Text(claim.statement).append(f"\n{claim.source}", style="dim")
        table.add_row(said, Text(finding.verdict, COLOURS[finding.verdict]), Text(finding.why))
    return table


def _markdown(report: Report, family: str) -> list[str]:
    lines = [f"## {report.title} · {family} probe", ""]
    lines += ["| claim | source | verdict | numbers |", "| --- | --- | --- | --- |"]
    for claim in CLAIMS:
        found = report.findings[claim.name]
        cells = (claim.statement, claim.source, f"**{found.verdict}**", found.why)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return [*lines, "", NOTE, ""]


def _record(report: Report, family: str) -> dict[str, Any]:
    return {
        "model": report.model,
        "corpus": report.corpus,
        "marks": report.marks,
        "probe": family,
        "caveat": CAVEAT,
        "claims": [
            {
                "name": claim.name,
                "statement": claim.statement,
                "source": claim.source,
                **report.findings[claim.name]._asdict(),
            }
            for claim in CLAIMS
        ],
    }
