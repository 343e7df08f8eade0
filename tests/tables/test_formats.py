"""Tables in every format: marks, escapes, widths, shades, and control characters."""

import io
import json
import re
import shutil
import subprocess
import unicodedata
from dataclasses import replace

import pytest
import vl_convert
from hypothesis import given, settings
from hypothesis import strategies as st
from results_by_hand import make_result, with_rows
from rich.console import Console
from typesetting import NO_LATEX, SIGNS, typeset

from probes.boards.layer_tables import score_table
from probes.measurements.table_cells import score_cell
from probes.pages.layers_md import layers_md
from probes.pages.page import table_html, templates
from probes.pages.page_charts import packed
from probes.records.row import Row
from probes.tables.colours import shade
from probes.tables.latex import latex
from probes.tables.printing import TIE, data_rows, escaped_markdown, markdown, print_table, printer
from probes.tables.table import Cell, Table, TableRow

TABLE = Table(
    "a | b",
    ("layer", "pos\naccuracy\nsilver"),
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
        f"| 0 | 90.0{TIE}±{TIE}0.5☆ |",
        f"| 1 | **95.0**{TIE}±{TIE}0.5★ |",
        r"| &lt;x>\_[y\](z) | – |",
        "",
        "± half an interval",
        "",
    ]


def test_only_what_markdown_would_interpret_is_escaped():
    assert escaped_markdown("Hewitt & Liang [1, 2]") == "Hewitt & Liang [1, 2]"
    assert escaped_markdown("&lt; &#60; [a](b) [a][b]") == r"&amp;lt; &amp;#60; [a\](b) [a\][b]"


def test_latex_marks_and_escapes():
    text = latex(TABLE)
    assert r"0 & 90.0 & $^{\circ}_{\pm.5}$ \\" in text
    assert r"1 & \textbf{95.0} & $_{\pm.5}$ \\" in text
    assert r"\textless{}x\textgreater{}\_{[}y](z) & -- & \\" in text
    assert r"\label{tab:a-b}" in text
    assert r"\caption{a \textbar{} b. $\pm$ half an interval}" in text


def odd_table(text):
    """A table with a text at every place where one may stand."""
    score = Cell("90", half="[75.0, 100.0]", note=text, best=True, floored=True)
    rows = (TableRow.of(text, score, text), TableRow.of("", Cell(text, "0.5"), "–", faint=True))
    return Table(text, (text, f"pos\n{text}", text), rows, notes=(text, "≥ .05"), left=1)


@given(st.text() | st.characters())
@settings(max_examples=500, deadline=None)
def test_latex_is_ascii_whatever_a_table_says(text):
    for left in (1, 2):
        assert SIGNS.fullmatch(latex(replace(odd_table(text), left=left)))


ODD = "≥ ☆ ★ ▽ ≈ † − ± × → … “é” ß Ångström Čapek ế i̇ Ω λ ς שלום हिन्दी 語 🙂 ½ ẹ́ ą́ а́ α̃ -́ \u0301 a_b^c~d {x} \\ % # $ & < > | [q] *s*"


@NO_LATEX
def test_pdflatex_reads_odd_texts(tmp_path):
    tables = [odd_table(x) for x in (ODD, "[CLS]", "*x", "\\", "a\n\nb", "שלום")]
    typeset(tmp_path, "\n".join(map(latex, tables)))
    if shutil.which("pdftotext"):
        command = ["pdftotext", "paper.pdf", "-"]
        words = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        assert "[CLS]" in words.stdout
        assert "U+05E9" in words.stdout


def test_latex_signs():
    r"""A letter with accents, a Greek one, and those that LaTeX has no command for."""
    said = latex(Table("t", ("a",), (TableRow.of("é ế Ω ς — --wide שa"),)))
    assert r"\'{e} \'{\^{e}} $\Omega$ $\varsigma$ --- -{}-wide \probesletter{05E9}a \\" in said
    assert said.startswith(r"\providecommand{\probesletter}[1]{\ifdefined\Uchar")
    assert "probesletter" not in latex(TABLE)
    for form in ("NFC", "NFD"):
        letters = unicodedata.normalize(form, "ẹ́ \u0430\u0301 ą́ ą e\u0331\u0301 α\u0303")
        said = latex(Table("t", ("a",), (TableRow.of(letters),)))
        assert (
            r"\d{\'{e}} \'{\probesletter{0430}} \'{\probesletter{0105}} \probesletter{0105}" in said
        )
        assert r" \'{e}\probesletter{0331} \~{$\alpha$} \\" in said
    titles = [Table(x, ("a",), (TableRow.of("1"),)) for x in ("שלום", "עולם")]
    labels = [re.search(r"\\label{tab:(.*)}", latex(x))[1] for x in titles]
    assert labels[0] != labels[1]
    assert r"\label{tab:m-ewt-test}" in latex(Table("M · ewt · test", ("a",), ()))


def test_both_ends_of_an_uneven_interval_are_printed():
    """Of 100 [75, 100] half the width, 12.5, would say [87.5, 112.5]."""
    assert score_cell(0.95, (0.92, 0.98), "accuracy").spread == "±3.0"
    assert score_cell(0.9, (0.87, 0.921), "accuracy").spread == "±2.6"  # a side of 3.0, one of 2.1
    cell = score_cell(1.0, (0.75, 1.0), "accuracy", best=True)
    assert cell.spread == "[75.0, 100.0]"
    assert score_cell(0.9, (0.87, 0.919), "accuracy").spread == "[87.0, 91.9]"
    assert score_cell(-0.037, (-0.2, 0.0), "erasure_drop").spread == "[−20.0, 0.0]"
    table = Table("t", ("layer", "pos"), (TableRow.of("1", cell),))
    assert "100.0 [75.0, 100.0]★" in printed(table)
    assert f"| **100.0**{TIE}[75.0,{TIE}100.0]★ |" in markdown(table)
    assert r"\textbf{100.0} & $_{{[}75.0,\,100.0]}$ \\" in latex(table)
    assert '100.0&nbsp;<small class="interval">[75.0, 100.0]</small>★' in table_html(table)
    (row,) = data_rows(table)
    assert (row["pos"], row["pos low"], row["pos high"]) == (1.0, 0.75, 1.0)
    count = Table("t", ("layer", "n"), (TableRow.of("1", Cell("12", "3")),))
    assert r"12 & $_{\pm3}$" in latex(count)


@NO_LATEX
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
    said = typeset(tmp_path, rf"Table~\ref{{tab:b}}.{text}", f"twocolumn,{paper}")
    for problem in (b"Overfull", b"undefined"):
        assert problem not in said


def test_latex_gives_the_name_of_a_group_a_line_and_long_texts_a_paragraph():
    rows = [("pos, n = 9", "m", "90.0"), ("", "o", "95.0"), ("srl", "m", "1.0")]
    table = Table("t", ("task", "model", "score"), tuple(TableRow.of(*x) for x in rows), left=2)
    lines = latex(table).splitlines()
    start = lines.index(r"\toprule")
    assert lines[start - 1 : start + 10] == [
        r"\begin{tabular}{@{}lr@{}}",
        r"\toprule",
        r"model & \scriptsize score \\",
        r"\midrule",
        r"\multicolumn{2}{@{}l@{}}{pos, n = 9} \\",
        r"m & 90.0 \\",
        r"o & 95.0 \\",
        r"\addlinespace",
        r"\multicolumn{2}{@{}l@{}}{srl} \\",
        r"m & 1.0 \\",
        r"\bottomrule",
    ]
    sentence = Table("t", ("claim", "m"), (TableRow.of("word " * 9, "supported"),), left=2)
    assert r"\begin{tabular}{@{}p{.45\linewidth}l@{}}" in latex(sentence)


def test_latex_explains_the_marks_that_occur_and_leaves_out_curves():
    score = Cell("90.0", place=0.5)
    marked = Table("t", ("layer", "pos"), (TableRow.of("0", replace(score, best=True)),))
    assert r"\textbf{bold} best layer on dev." in latex(marked)
    assert r"\caption{t.}" in latex(replace(marked, rows=(TableRow.of("0", score),)))
    starred = Table("t", ("P at 1★", "n"), (TableRow.of("1", "2"),), notes=("★ best",))
    assert latex(starred).count(r"$\star$") == 2
    curves = Table("t", ("m", "layers", "n"), (TableRow.of("a", "▁▄█", "1"),), left=2)
    assert r"\begin{tabular}{@{}lr@{}}" in latex(curves)
    assert r"m & \scriptsize n \\" in latex(curves)
    tokens = Table("t", ("token", "next", "n"), (TableRow.of("▁", "▁the", "1"),), left=2)
    assert r"\probesletter{2581} & \probesletter{2581}the & 1 \\" in latex(tokens)


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


HEADS = ("model", "flags", "layer", "score", "p", "control\ntask")
ROWS = (("a", "–", "1", "90.0", "", "–"), ("b", "–", "–", "91.0", "–", "–"))
DASHES = Table("t", HEADS, tuple(TableRow.of(*row) for row in ROWS), left=2, repeated=3)


def test_columns_of_nothing_but_dashes_are_left_out_and_named():
    filled = DASHES.filled
    assert filled.heads == ("model", "layer", "score")
    assert (filled.left, filled.repeated) == (1, 2)
    assert filled.texts == [("a", "1", "90.0"), ("b", "–", "91.0")]
    note = "Columns without a value are not shown: flags; p; control, task."
    assert filled.notes == (note,)
    for text in (printed(DASHES), markdown(DASHES), latex(DASHES)):
        assert note in " ".join(text.split())
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


def test_no_table_is_wider_than_the_terminal():
    names = ("pos", "a-longer-name", "dep")
    for width in range(40, 90):
        console = Console(width=width, record=True, file=io.StringIO())
        print_table(score_table([make_result(name, (0.123, 0.456)) for name in names]), console)
        text = console.export_text()
        rules = [line for line in text.splitlines() if line.startswith("─")]
        assert rules
        assert all(len(line) <= width for line in text.splitlines())
        assert all(len(rule.strip()) == len(rule) for rule in rules)
        assert [text.count(f"{name}") for name in names] == [1] * 3


def drawn_in(values, **scale):
    """Red, green and blue of numbers, as Vega has them."""
    fill = {"field": "i", "type": "quantitative", "scale": scale}
    data = {"values": [{"i": i} for i in values]}
    spec = {"data": data, "mark": "point", "encoding": {"fill": fill}}
    text = json.dumps(vl_convert.vegalite_to_scenegraph(spec)["scenegraph"])
    drawn = re.findall(r'"fill": "rgb\((\d+), (\d+), (\d+)\)"', text)[: len(values)]
    return [list(map(int, parts)) for parts in drawn]


def test_shades_in_the_terminal_are_those_of_viridis():
    for i, parts in enumerate(drawn_in(range(101), scheme="viridis")):
        assert shade(i / 100) == pytest.approx(parts, abs=20)


def test_colours_of_the_page_are_those_of_heat_maps_of_scores():
    """Points above the floor are blue in both, from the middle of the scale to its end."""
    css = templates().loader.get_source(templates(), "page.css")[0]
    expected = drawn_in(range(11), scheme="blueorange", reverse=True, domain=[-10, 10])
    for i, parts in enumerate(expected):
        (colour,) = re.findall(rf"\.h{i} {{ background: #(\w+); }}", css)
        assert list(bytes.fromhex(colour)) == pytest.approx(parts, abs=20)


CONTROLS = "a\x1b[31mb\x07\u202e\x00z"
ESCAPED = r"a\x1b[31mb\x07\u202e\x00z"
ROW = TableRow.of(CONTROLS, Cell("1", note=CONTROLS, value=1.0))
CONTROL_TABLE = Table(CONTROLS, (CONTROLS, f"x\n{CONTROLS}"), (ROW,), notes=(CONTROLS,))


def require_plain(text):
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", text)


@pytest.mark.parametrize("form", ["table", "md", "csv", "json", "latex"])
def test_tables_in_every_format(form, capsys):
    with printer.printing(form):
        printer.show([CONTROL_TABLE])
        printer.say(CONTROLS)
    said = capsys.readouterr().out
    require_plain(said)
    if form == "json":
        assert json.loads(said)[0]["table"] == ESCAPED
    elif form == "csv":
        assert said.count(ESCAPED) == 6


def test_rows_for_programs(capsys):
    with printer.printing("csv"):
        printer.show([CONTROL_TABLE], [{"label": CONTROLS}])
    assert capsys.readouterr().out == f'"label"\n"{ESCAPED}"\n'
    with printer.printing("json"):
        printer.show([CONTROL_TABLE], [{"label": CONTROLS}])
    said = capsys.readouterr().out
    require_plain(said)
    assert json.loads(said) == [{"label": CONTROLS}]


def test_documents_and_charts():
    result = make_result("pos", [0.5, 0.9], groups={CONTROLS: 9})
    result = with_rows(result, [Row("accuracy", 0.5, 1, axes={"group": CONTROLS})])
    text = layers_md([result])
    for each in (
        table_html(CONTROL_TABLE),
        text,
        templates().from_string("{{ x }}").render(x=CONTROLS),
    ):
        require_plain(each)
        assert "x1b[31mb" in each
    assert packed({"label": [CONTROLS]}) == packed({"label": [ESCAPED]})


def test_latex_breaks_names_of_rows_as_the_number_of_tasks_allows():
    """Two columns of numbers leave room for 22 letters, five for 9."""
    name, score = "recall at the threshold for 1 %, best layer", Cell("90.0", half="0.5")
    lines = {
        2: ["recall at the", r"threshold for 1 \%,", "best layer"],
        5: ["recall at", "the", "threshold", r"for 1 \%,", "best", "layer"],
    }
    for n_tasks, expected in lines.items():
        heads = ("layer", *(f"t{i}" for i in range(n_tasks)))
        row = TableRow.of(name, *[score] * n_tasks, faint=True)
        text = latex(Table("t", heads, (row,), left=1))
        names = re.findall(r"^\\scriptsize (.*?) &", text, re.MULTILINE)
        assert names[1:] == expected
        assert r"\begin{tabular}{@{}lr@{}l" in text  # no paragraph around short lines
