"""Tables on pages are the output of commands, which a comment above each table names.

The commands read published results, so a number on a page cannot differ from its record. Decimals
in the text of the results page stand in one of its tables.
"""

import re
import shlex
from glob import glob

import pytest
from killing import ROOT

from probes.__main__ import main
from probes.records.record_files import read_record

COMMENT = re.compile(r"<!-- python -m probes (.+?) -->\n((?:.+\n)+)")

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

BLOCKS = [
    pytest.param(*found, id=f"{page.name} {i}")
    for page in PAGES
    for i, found in enumerate(COMMENT.findall(page.read_text(encoding="utf-8")))
]


@pytest.mark.parametrize(("command", "table"), BLOCKS)
def test_a_table_is_the_output_of_its_command(command, table, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    words = [sorted(glob(word)) or [word] for word in shlex.split(command)]
    assert main([each for several in words for each in several]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert [line for line in table.splitlines() if line not in printed] == []


def test_tables_are_found():
    assert BLOCKS


def prose(text):
    """A page without its tables, code, comments, addresses and versions."""
    text = re.sub(r"(?m)^(?:    |\|).*$", "", COMMENT.sub("", text))
    return re.sub(r"`[^`]*`|\]\([^)]*\)|r2\.16|arXiv \S+", "", text)


def decimals(text):
    return [x.removeprefix("0") for x in re.findall(r"\d*\.\d+", text)]


def test_numbers_in_the_text_stand_in_a_tested_table():
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    tables = " ".join(table for _, table in COMMENT.findall(page))
    known = {*decimals(tables)}
    assert known
    assert [x for x in decimals(prose(page)) if x not in known] == []


def test_the_example_of_interchange_is_the_published_one():
    (path,) = (ROOT / "results" / "published").glob("gemma-*/clams-en-three-*/interchange-*.json")
    values = {
        (row.layer, row.axes["position"], row.axes["direction"]): row
        for row in read_record(path).rows.with_metric("flipped")
        if row.axes.get("paradigm") == "en.obj_rel_across_anim" and row.axes["answers"] == "own"
    }

    def said(layer, position, direction):
        row = values[layer, position, direction]
        half = "" if row.interval is None else f" ± {50 * (row.interval[1] - row.interval[0]):.0f}"
        return f"{100 * row.value:.0f}{half}"

    noun, last = 2, 6
    page = (ROOT / "docs" / "interventions.md").read_text(encoding="utf-8")
    for layer in (0, 7, 10, 13, 14, 18):
        place = noun if layer <= 13 else last
        cells = [
            said(layer, noun, "whole"),
            said(layer, last, "whole"),
            said(layer, place, "mean difference"),
            said(layer, place, "random"),
        ]
        assert f"| {layer} | {' | '.join(cells)} |" in page
