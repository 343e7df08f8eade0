"""Tables and pictures on pages are the output of commands, which a comment above each one names.

The commands read published results, so a number on a page cannot differ from its record. Decimals
in the text of the course stand in one of its tables.
"""

import contextlib
import io
import itertools
import re
import shlex
from glob import glob

import numpy as np
import pytest
from killing import ROOT
from typesetting import NO_LATEX, SIGNS, typeset

from probes.__main__ import main
from probes.records.record_files import read_record
from probes.tables.printing import TIE

COMMENT = re.compile(r"<!-- python -m probes ((?!figure ).+?) -->\n((?:.+\n)+)")

PICTURE = re.compile(r"(?:<!-- python -m probes (figure .+?) -->\n)?!\[[^]]+\]\((.+?)\)")

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

BLOCKS = [
    pytest.param(*found, id=f"{page.name} {i}")
    for page in PAGES
    for i, found in enumerate(COMMENT.findall(page.read_text(encoding="utf-8")))
]


PICTURES = {
    (page.parent / path).resolve().relative_to(ROOT).as_posix(): command
    for page in PAGES
    for command, path in PICTURE.findall(page.read_text(encoding="utf-8"))
}


def run_command(command, *more):
    words = [sorted(glob(word)) or [word] for word in shlex.split(command)]
    assert main([*(each for several in words for each in several), *more]) == 0


@pytest.mark.parametrize(("command", "table"), BLOCKS)
def test_a_table_is_the_output_of_its_command(command, table, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    run_command(command)
    # Editors like to replace no-break spaces.
    printed = capsys.readouterr().out.replace(TIE, " ").splitlines()
    remaining = iter(printed)  # Rows may be left out, but keep their order.
    assert [x for x in table.replace(TIE, " ").splitlines() if x not in remaining] == []


def test_tables_are_found():
    assert BLOCKS


@pytest.fixture(scope="module")
def in_latex(tmp_path_factory):
    """Tables of several kinds, with their notes, as the commands print them."""
    folder = ROOT / "results" / "published"
    models = sorted(map(str, folder.glob("*bert-mlm-tiny-*/sample")))
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        for command, *options in (
            *(["show", *models, "--by", by] for by in ("layer", "group", "localisation")),
            ["claims", *models],
            ["heads", *models],
            ["leaderboard", str(folder), "--corpus", "sample", "--task", "pos,agreement"],
        ):
            assert main([command, *options, "--format", "latex"]) == 0
    return printed.getvalue()


def test_published_tables_are_ascii_in_latex(in_latex):
    assert SIGNS.fullmatch(in_latex)
    assert "probesletter" not in in_latex  # Each of the suite's own signs has its command.
    assert r"$\bigtriangledown$ not significantly above the floor" in in_latex


@NO_LATEX
def test_pdflatex_reads_published_tables(in_latex, tmp_path):
    # Each on a page: LaTeX has room for a few floats.
    typeset(tmp_path, in_latex.replace(r"\end{table}", r"\end{table}\clearpage"))


@pytest.mark.parametrize(("path", "command"), PICTURES.items())
def test_a_picture_is_the_output_of_its_command(path, command, monkeypatch, tmp_path):
    """Every letter is the same, and every number (places, sizes, colours) but for rounding."""
    monkeypatch.chdir(ROOT)
    assert command.endswith((f"-o {path}", f"-o {path} --wide"))
    assert set(re.findall(r"results/\S+", command)) <= set(
        re.findall(r"results/published\S+", command)
    )
    run_command(command.replace(path, str(tmp_path / "again.svg")))
    number = re.compile(r"-?\d+(?:\.\d+)?")
    texts = [
        re.sub(r"gradient_\d+", "gradient", file.read_text(encoding="utf-8"))
        for file in (ROOT / path, tmp_path / "again.svg")
    ]
    shown, drawn = (number.sub("#", text) for text in texts)
    assert shown == drawn
    shown, drawn = (np.array(number.findall(text), dtype=float) for text in texts)
    np.testing.assert_allclose(shown, drawn, atol=0.02)


def test_every_picture_is_on_a_page():
    assert {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs/img").iterdir()} == {
        *PICTURES
    }


def prose(text):
    """A page without its tables, code, comments, addresses and versions."""
    text = re.sub(r"(?m)^(?:    |\|).*$", "", COMMENT.sub("", text))
    return re.sub(r"`[^`]*`|\]\([^)]*\)|r2\.16|arXiv \S+", "", text)


def decimals(text):
    return [x.removeprefix("0") for x in re.findall(r"\d*\.\d+", text)]


def test_numbers_in_the_text_of_the_course_stand_in_its_tables():
    page = (ROOT / "docs" / "course.md").read_text(encoding="utf-8")
    tables = " ".join([*(table for _, table in COMMENT.findall(page)), *costs_of_parts()])
    known = {*decimals(tables)}
    assert known
    assert [x for x in decimals(prose(page)) if x not in known] == []


def costs_of_parts():
    """Rows of the course's last table: what the probes of MiniLM's last layer lose, in points."""
    (path,) = (ROOT / "results" / "published").glob("all-MiniLM-*/sample/ablation-*.json")
    drops = {
        (row.layer, row.axes["predicts"], row.axes["disabled"]): row
        for row in read_record(path).rows.with_metric("ablation_drop")
        if row.axes["at"] == 6 and "head" not in row.axes and row.split == "test"
    }
    for part in range(1, 7):
        cells = []
        for task, kind in itertools.product(("pos", "agreement"), ("attention", "block")):
            row = drops[part, task, kind]
            half = 50 * (row.interval[1] - row.interval[0])
            cells.append(f"{100 * row.value:.1f} ± {half:.1f}".replace("-", "−"))
        yield f"| {part} | {' | '.join(cells)} |"


def test_the_ablation_of_the_course_is_the_published_one():
    page = (ROOT / "docs" / "course.md").read_text(encoding="utf-8").splitlines()
    rows = list(costs_of_parts())
    assert [row for row in rows if row not in page] == []
    clear = [part for part, row in enumerate(rows, start=1) if is_above_0(row.split(" | ")[3])]
    assert clear == [2, 3, 5]  # layers whose attention `agreement` needs, as the answer says


def is_above_0(cell):
    """Whether a cell, such as ``8.9 ± 5.1``, is above 0 with its interval."""
    value, half = map(float, cell.replace("−", "-").split(" ± "))
    return value > half


def test_the_example_of_interchange_is_the_published_one():
    (path,) = (ROOT / "results" / "published").glob("gemma-*/clams-en/interchange-*.json")
    flipped = {
        (row.layer, row.axes["position"], row.axes["direction"]): row
        for row in read_record(path).rows.with_metric("flipped")
        if row.axes.get("paradigm") == "en.obj_rel_across_anim" and row.axes["answers"] == "own"
    }
    noun, last = 2, 6
    page = (ROOT / "docs" / "interventions.md").read_text(encoding="utf-8")
    for layer in (0, 7, 10, 13, 14, 18):
        place = noun if layer <= 13 else last
        rows = [flipped[layer, position, "whole"] for position in (noun, last)]
        rows += [
            flipped[layer, place, direction]
            for direction in ("mean difference", "shuffled classes", "random")
        ]
        cells = " | ".join(f"{100 * row.value:.0f}" for row in rows)
        assert f"| {layer} | {cells} |" in page
        assert {(row.n, row.interval) for row in rows} == {(20, None)}
    between = [flipped[layer, i, "whole"].value for layer in range(19) for i in range(3, last)]
    assert 0.1 < max(between) <= 0.15
