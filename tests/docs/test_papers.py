"""The page on the two papers: a row for each system, and the verdicts that the records give."""

import re
import shlex
from collections import defaultdict
from functools import cache
from typing import NamedTuple

import pytest
from killing import ROOT

from probes.boards.claims.claim_reports import make_reports
from probes.boards.claims.score_claims import all_claims
from probes.boards.shown_together import corpus_records_of
from probes.cli.chart_files import figure_names
from probes.cli.results import records_below
from probes.frames.joined_results import results_with_evidence
from probes.measurements.measurement import EVIDENCE, measurements
from probes.tasks.builtin import tasks

PUBLISHED = ROOT / "results" / "published"

SECTIONS = ["3", "4.1", "4.2", "4.3", "5.1", "5.2", "6.2", "6.3", "7.1", "7.2", "8"]
SECTIONS += ["DS 4.1", "DS 4.2", "DS 4.3", "DS 4.4", "DS 4.5", "DS 4.6", "DS 5"]
"""Sections that describe systems. 6.1 is about training, 1, 2, 9 and 10 describe none."""

MODELS = {
    "all-MiniLM-L6-v2": "MiniLM",
    "all-mpnet-base-v2": "mpnet",
    "bert-mlm-tiny": "tiny",
    "gemma-3-270m": "Gemma",
}

MISSING = "not at hand ("


class Finding(NamedTuple):
    """One row of the page."""

    sections: str
    statement: str
    command: str
    record: str
    verdict: str


@cache
def findings():
    page = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
    rows = [line.strip("|").split("|") for line in page.splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in row] for row in rows]
    return [Finding(*row) for row in cells if row[0] not in ("section", "---")]


@cache
def verdicts():
    """The verdict on each claim by model: of EWT, else of another corpus."""
    records = records_below([PUBLISHED])
    reports = make_reports(results_with_evidence(records), "linear", corpus_records_of(records))
    by_claim = defaultdict(dict)
    for report in sorted(reports, key=lambda x: (not x.corpus.startswith("ewt"), x.corpus)):
        for claim in report.tested:
            if not report.of_twin:
                verdict = report.outcomes[claim.name].verdict
                by_claim[claim.statement].setdefault(MODELS[report.model], verdict)
    return by_claim


def verdict_cell(statement):
    """The cell of a claim, such as ``*supported*: MiniLM, tiny · *undecided*: mpnet``."""
    models = defaultdict(list)
    for model in MODELS.values():
        if model in verdicts()[statement]:
            models[verdicts()[statement][model]].append(model)
    short = {"not specific to training": "twin too"}
    return " · ".join(f"*{short.get(x, x)}*: {', '.join(of)}" for x, of in models.items()) or "–"


def test_every_section_has_a_row():
    covered = {section for row in findings() for section in row.sections.split(", ")}
    assert covered == {*SECTIONS}
    assert len(findings()) >= 60


@pytest.mark.parametrize("claim", all_claims(), ids=lambda claim: claim.name)
def test_every_claim_has_one_row_with_its_verdicts(claim):
    (row,) = (row for row in findings() if row.statement.startswith(f"{claim.statement} ("))
    sections = [x.replace("DS ", "Kovaleva et al. 2019, ") for x in row.sections.split(", ")]
    assert any(x in claim.source for x in sections)
    assert row.verdict == verdict_cell(claim.statement)


@pytest.mark.parametrize("row", findings(), ids=lambda row: row.statement[:40])
def test_a_finding_has_a_record_or_the_reason_why_not(row):
    names = re.findall(r"`([^`]+)`", row.record)
    if not row.record.startswith(MISSING):
        assert names
        assert [x for x in names if not [*PUBLISHED.glob(f"*/{x}-*.json")]] == []
    assert row.command.startswith("`") or "(open: " in row.record
    if row.verdict == "–":
        assert row.record.startswith(MISSING)


def test_measurements_and_tasks_of_commands_exist():
    known = {
        "--measurements": {*measurements, "probes"},
        "--evidence": {*EVIDENCE, "standard"},
        "--by": {*measurements, "use", "pattern"},
        "--tasks": {*tasks},
        "--task": {*tasks},
    }
    commands = [x for row in findings() for x in re.findall(r"`(python [^`]+)`", row.command)]
    for words in map(shlex.split, commands):
        for flag, names in known.items():
            if flag in words:
                assert {*words[words.index(flag) + 1].split(",")} <= names, words
        if "figure" in words:
            assert words[words.index("figure") + 1] in figure_names()
    assert len(commands) >= 50


def test_the_page_is_short():
    page = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
    assert len(page.splitlines()) <= 200
