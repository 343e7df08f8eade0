"""One table in every format."""

import io
import shutil
import subprocess
from dataclasses import replace

import pytest
from rich.console import Console

from probes.tables.latex import latex
from probes.tables.printing import escaped, markdown, print_table
from probes.tables.table import Cell, Table, TableRow

TABLE = Table(
    "a | b",
    ("layer", "pos\naccuracy, silver"),
    (
        TableRow.of("0", Cell("90.0", half="0.5", tied=True)),
        TableRow.of("1", Cell("95.0", half="0.5", best=True)),
        TableRow.of("<x>_[y](z)", "–"),
    ),
    notes=("± half an interval",),
)


def printed(table, width=80):
    console = Console(width=width, file=io.StringIO())
    print_table(table, console)
    return console.file.getvalue()


def test_markdown_marks_and_escapes():
    assert markdown(TABLE).split("\n") == [
        r"### a \| b",
        "",
        "| layer | pos (accuracy, silver) |",
        "| --- | ---: |",
        "| 0 | 90.0 ± 0.5☆ |",
        "| 1 | **95.0** ± 0.5★ |",
        r"| &lt;x>\_[y\](z) | – |",
        "",
        "± half an interval",
        "",
    ]


def test_only_what_markdown_would_interpret_is_escaped():
    assert escaped("Hewitt & Liang [1, 2]") == "Hewitt & Liang [1, 2]"
    assert escaped("&lt; &#60; [a](b) [a][b]") == r"&amp;lt; &amp;#60; [a\](b) [a\][b]"


def test_latex_marks_and_escapes():
    text = latex(TABLE)
    assert r"0 & 90.0 & $^{\circ}_{\pm.5}$ \\" in text
    assert r"1 & \textbf{95.0} & $_{\pm.5}$ \\" in text
    assert r"\textless{}x\textgreater{}\_[y](z) & -- & \\" in text
    assert r"\label{tab:a-b}" in text
    assert r"\caption{a \textbar{} b. $\pm$ half an interval}" in text


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="there is no pdflatex here")
@pytest.mark.parametrize("paper", ["letterpaper", "a4paper"])
def test_a_table_of_five_tasks_fits_one_column(tmp_path, paper):
    """LaTeX itself says which box is too wide; with `--wide`, a table takes twice as many."""
    marked = {"tied": True, "floored": True, "borderline": True}
    score, depth = Cell("95.0", half="1.5", **marked), Cell(".768", half=".021", best=True)
    heads = "pos\naccuracy", "chunking\nspan F1", "depth\nNSpr", "srl\naccuracy"
    agreement = "agreement\nbalanced acc., masked"
    one = score, score, depth, score, score
    floor = replace(score, half="", note="random twin 0")
    rows = [TableRow.of(str(n), *one, ends_section=n == 12) for n in range(13)]
    rows += [TableRow.of(name, *[floor] * 5, faint=True) for name in ("floor", "subject's Number")]
    rows += [TableRow.of("n", *["25,094"] * 5, faint=True)]
    table = Table("all-MiniLM-L6-v2 · ewt", ("layer", *heads, agreement), tuple(rows))
    twice = table.with_columns([*range(6), *range(1, 6)])
    text = latex(table) + latex(replace(twice, title="b"), wide=True)
    packages = r"\documentclass[twocolumn," + paper + r"]{article}\usepackage{booktabs}"
    document = packages + r"\begin{document}Table~\ref{tab:b}." + text + r"\end{document}"
    (tmp_path / "paper.tex").write_text(document)
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    said = [subprocess.run(command, cwd=tmp_path, capture_output=True, check=True) for _ in "12"]
    for problem in (b"Overfull", b"undefined"):
        assert problem not in said[1].stdout


def test_latex_explains_the_marks_that_occur_and_leaves_out_curves():
    score = Cell("90.0", place=0.5)
    marked = Table("t", ("layer", "pos"), (TableRow.of("0", replace(score, best=True)),))
    assert r"\textbf{bold} best layer on dev." in latex(marked)
    assert r"\caption{t.}" in latex(replace(marked, rows=(TableRow.of("0", score),)))
    starred = Table("t", ("P at 1★", "n"), (TableRow.of("1", "2"),), notes=("★ best",))
    assert latex(starred).count(r"$\star$") == 2
    curves = Table("t", ("m", "layers", "n"), (TableRow.of("a", "▁▄█", "1"),), left=2)
    assert r"\begin{tabular}{@{}lr@{}}" in latex(curves)
    assert r"m & n \\" in latex(curves)


def test_the_terminal_marks_the_best_and_the_tied():
    lines = printed(TABLE).splitlines()
    assert any("90.0±.5☆" in line for line in lines)
    assert any("95.0±.5★" in line for line in lines)


def test_a_table_that_is_too_wide_is_split_and_its_first_column_repeated():
    rows = (TableRow.of("a", *["12345678"] * 9),)
    table = Table("t", ("x", *map(str, range(9))), rows, notes=("below",))
    lines = printed(table, 40).splitlines()
    heads = [line.split() for line in lines if line.startswith("x ")]
    assert heads == [["x", "0", "1", "2"], ["x", "3", "4", "5"], ["x", "6", "7", "8"]]
    assert [line.split() for line in lines if line[:2] == "a "] == [["a", *["12345678"] * 3]] * 3
    assert lines[0] == "t"
    assert lines.count("below") == 1


def test_words_are_broken_before_a_table_is_split_and_numbers_never():
    sentence = "the quick brown fox jumps over the lazy dog"
    rows = (TableRow.of(sentence, sentence, "12,345,678"),)
    lines = printed(Table("t", ("name", "about", "n"), rows, left=2), 40).splitlines()
    assert len({*map(len, lines[1:-2])}) == 1
    assert len(lines[1]) <= 40
    assert "12,345,678" in lines[3]
    assert " ".join(line[:14].strip() for line in lines[3:]).split() == sentence.split()


def test_a_table_without_rows_is_its_title_and_notes():
    assert printed(Table("t", ("a", "b"), (), notes=("none",))).split() == ["t", "none"]


def test_a_table_with_repeated_columns_alone_is_printed_once():
    table = Table("t", ("x", "n"), (TableRow.of("a", "1"),), repeated=2)
    assert printed(table).split() == ["t", "x", "n", "────", "a", "1"]


def test_columns_are_chosen_by_number():
    chosen = TABLE.with_columns([1])
    assert chosen.heads == ("pos\naccuracy, silver",)
    assert chosen.texts == [("90.0 ± 0.5",), ("95.0 ± 0.5",), ("–",)]


DASHES = Table(
    "t",
    ("model", "flags", "layer", "score", "p", "control\ntask"),
    (
        TableRow.of("a", "–", "1", "90.0", "", "–"),
        TableRow.of("b", "–", "–", "91.0", "–", "–"),
    ),
    left=2,
    repeated=3,
)


def test_columns_of_nothing_but_dashes_are_left_out_and_named():
    filled = DASHES.filled
    assert filled.heads == ("model", "layer", "score")
    assert (filled.left, filled.repeated) == (1, 2)
    assert filled.texts == [("a", "1", "90.0"), ("b", "–", "91.0")]
    assert filled.notes == ("Columns without a value are not shown: flags; p; control, task.",)
    for text in (printed(DASHES), markdown(DASHES), latex(DASHES)):
        assert "Columns without a value are not shown: flags; p; control, task." in " ".join(
            text.split()
        )
        assert text.count("flags") == 1
        assert "91.0" in text
    assert TABLE.filled is TABLE


def test_a_column_stays_if_a_cell_says_why_or_if_no_other_has_values():
    noted = Table("t", ("m", "x", "y"), (TableRow.of("a", Cell("–", note="no result"), "1"),))
    assert noted.filled is noted
    alone = Table("t", ("layer", "pos"), (TableRow.of("0", "–"), TableRow.of("1", "–")))
    assert alone.filled is alone
    empty = Table("t", ("model", "flags", "n"), (TableRow.of("a", "", "1"),))
    assert empty.filled is empty
    assert Table("t", ("a", "b"), ()).filled.heads == ("a", "b")
