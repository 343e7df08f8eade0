"""README and manual: every command is one that the parsers take, and lists are complete."""

import re
import shlex
from types import SimpleNamespace

import pytest
from killing import ROOT

import probes.__main__
from probes.__main__ import main as probes_main
from probes.cli.chart_files import FIGURES
from probes.cli.main import build_parser
from probes.measurements.measurement import EVIDENCE
from probes.statistics.metrics import metrics
from probes.tasks.builtin import tasks

RUN = {"adding-a-task.md", "adding-a-measurement.md"}
"""Guides with plug-ins that bring flags; tests of their own run what they show."""

DOCS = [page for page in sorted((ROOT / "docs").glob("*.md")) if page.name not in RUN]

PAGES = [ROOT / "README.md", *DOCS]

COMMAND = r"python (?:run_probes\.py|-m probes) [^`\n]+"

BLOCK = re.compile(rf"^(?: {{4}}|\$ )(?:\.venv/bin/)?({COMMAND})", re.M)

IN_A_ROW = re.compile(rf"`({COMMAND})`")


def commands(page):
    """Commands of blocks and tables, without comments and without those that leave something open."""
    lines = re.sub(r"\\\n\s*", "", page.read_text(encoding="utf-8")).splitlines()
    found = BLOCK.findall("\n".join(lines))
    for line in lines:
        found += IN_A_ROW.findall(line) if line.startswith("| ") else []
    found = [each.partition(" > ")[0] for each in found if "…" not in each]
    return [shlex.split(each, comments=True) for each in found]


@pytest.fixture
def parsed(monkeypatch):
    """Runs the parser of a sub-command, and nothing of the command."""
    monkeypatch.setattr(probes.__main__, "discover", lambda included: None)
    real = probes.__main__._module

    def module(name):
        return SimpleNamespace(add_arguments=real(name).add_arguments, run=lambda options: 0)

    monkeypatch.setattr(probes.__main__, "_module", module)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_is_one(page, parsed, capsys):
    for words in commands(page):
        _, *given = words
        if given[0] == "run_probes.py":
            build_parser().parse_args(given[1:])
        else:
            assert probes_main(given[2:]) == 0, (words, capsys.readouterr().err)


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("tasks.md", [f"**`{name}`**" for name in tasks]),
        ("method.md", [f"`{name}`" for name in metrics]),
        ("report.md", [f"`{name}`" for name in FIGURES]),
        ("probes.md", [name.replace("_", " ") for name in EVIDENCE]),
    ],
)
def test_a_page_has_an_entry_for_everything_that_it_lists(page, names):
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert [name for name in names if name.lower() not in text.lower()] == [], f"add to {page}"


def test_commands_are_found():
    assert sum(len(list(commands(page))) for page in PAGES) > 120


def test_set_up_is_in_the_first_lines_of_the_readme():
    lines = PAGES[0].read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 150
    assert any("make demo" in line for line in lines[:15])
    assert any("run_probes.py --model all-MiniLM-L6-v2" in line for line in lines[:17])
