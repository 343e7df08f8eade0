"""The report and figure commands, and how they group results; no browser."""

import re
import resource

import pytest
from board_by_hand import store
from drawn import png_size
from results_by_hand import changed, make_full_result, make_result

from probes.__main__ import main
from probes.boards.shown_together import all_groups
from probes.extraction.models.model_names import pretrained_name
from probes.pages.layers_md import write_tables

pytestmark = pytest.mark.integration


def paths(tmp_path, results):
    return {tmp_path / f"{i}.json": result for i, result in enumerate(results)}


@pytest.fixture
def stored_results(tmp_path):
    """A folder of results that were written, without predictions."""
    results = [
        make_full_result("pos", model="beta"),
        make_full_result("depth", model="beta", located=False, metric="nspr"),
        changed(make_full_result("pos", model="random:beta", random_seed=0), "model", digest="r"),
    ]
    for result in results:
        store(tmp_path, result)
    return tmp_path


def test_results_that_cannot_be_compared_are_in_other_groups_and_units(tmp_path):
    one = make_full_result("pos", model="a")
    found = [
        one,
        changed(changed(one, "task", version=2), "model", name="b", digest="b"),
        changed(one, "corpus", fingerprint="e" * 64),
        one.model_copy(update={"view": "cut"}),
        one.model_copy(update={"view": "masked"}),
        changed(one, "probe", family="mlp"),
        changed(one, "probe", epochs=99),
    ]
    groups, left_out = all_groups(paths(tmp_path, found))
    assert left_out == []
    assert [re.sub("[0-9a-f]{6,8}", "#", g.title) for g in groups] == [
        "c 1 · linear probe · text #, probe #",
        "c 1 · linear probe · text #, probe #",
        "c 1 · linear probe · text #, probe #",
        "c 1 · mlp probe",
    ]
    first = next(g for g in groups if len(g.units) > 1)
    assert [(u.title, list(u.results)) for u in first.units] == [
        ("pos (accuracy, cut, version 1)", ["a"]),
        ("pos (accuracy, masked, version 1)", ["a"]),
        ("pos (accuracy, version 1)", ["a"]),
        ("pos (accuracy, version 2)", ["b"]),
    ]


def test_random_twins_follow_their_model(tmp_path):
    names = ["random-2:B", "random:B", "c", "B", "random:x:y"]
    found = [changed(make_result("pos", model=name), "model", digest=name) for name in names]
    groups, _ = all_groups(paths(tmp_path, found))
    assert groups[0].models == ["B", "random-2:B", "random:B", "c", "random:x:y"]
    assert [pretrained_name(n) for n in names] == ["B", "B", "c", "B", "x:y"]


def test_the_report_command(stored_results, capsys):
    assert main(["report", str(stored_results)]) == 0
    assert capsys.readouterr().out.strip() == str(stored_results / "report.html")
    text = (stored_results / "report.html").read_text(encoding="utf-8")
    assert "Vega-Embed (BSD licence" in text
    page = stored_results / "new" / "p.html"
    assert main(["report", str(stored_results), "-o", str(page)]) == 2
    assert f"{page}: there is no folder {page.parent}; create it" in capsys.readouterr().err
    page.parent.mkdir()
    assert main(["report", str(stored_results), "-o", str(page)]) == 0
    assert page.exists()


@pytest.mark.parametrize(
    ("kind", "wide", "inches"),
    [
        ("heatmap", (), 3.03),
        ("expected-layers", ("--wide",), 6.3),
        ("curves", ("--width", "two"), 6.3),
    ],
)
def test_figures_have_a_columns_width_and_embedded_fonts(stored_results, kind, wide, inches):
    read = {}
    for suffix in (".png", ".pdf", ".svg"):
        path = stored_results / f"{kind}{suffix}"
        assert main(["figure", kind, str(stored_results), "-o", str(path), *wide]) == 0
        read[suffix] = path.read_bytes()
    # Panels are given widths; axes and legends take what they need.
    assert 0.75 * 300 * inches < png_size(read[".png"])[0] <= 300 * inches + 1
    (box,) = re.findall(rb"/MediaBox ?\[0 0 ([\d.]+) [\d.]+\]", read[".pdf"])
    assert float(box) == pytest.approx(0.24 * png_size(read[".png"])[0], abs=0.6)
    assert fonts(read[".pdf"]) == {"LiberationSans"}
    assert b"/FontFile2" in read[".pdf"]
    assert b"/Type3" not in read[".pdf"]
    assert re.search(rb'width="[\d.]+pt"', read[".svg"])


def fonts(pdf):
    """Names of the fonts in a PDF file, without the marks of their subsets."""
    return {x.decode() for x in re.findall(rb"/FontName\s*/[A-Z]{6}\+([^\s/]+)", pdf)}


def test_a_figures_size_title_and_font_can_be_chosen(stored_results):
    path = stored_results / "x.pdf"
    line = ["figure", "curves", str(stored_results), "-o", str(path), "--width", "5"]
    assert main([*line, "--font", "DejaVu Serif"]) == 0
    assert "DejaVuSerif" in fonts(path.read_bytes())
    svg = path.with_suffix(".svg")
    line = ["figure", "expected-layers", str(stored_results), "-o", str(svg)]
    for more, said in ((), True), (("--no-title",), False):
        assert main([*line, *more]) == 0
        assert ("Expected layers with" in svg.read_text()) == said


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (("--font", "Nowhere Sans"), "--font Nowhere Sans: no such font is installed"),
        (("--fonts", "nowhere"), "--fonts nowhere: there is no such folder"),
        (("--width", "0.5"), "--width 0.5: not a number of inches from 1 to 40"),
        (("--width", "x"), "--width x: not a number of inches from 1 to 40"),
    ],
)
def test_a_font_or_size_that_there_is_not_is_refused_in_one_line(stored_results, capsys, more, why):
    path = stored_results / "y.pdf"
    line = ["figure", "curves", str(stored_results), "-o", str(path), *more]
    try:
        status = main(line)
    except SystemExit as stop:
        status = stop.code
    assert status == 2
    assert why in " ".join(capsys.readouterr().err.split())
    assert not path.exists()


def test_under_a_low_limit_of_addresses_nothing_is_drawn(stored_results, capsys, monkeypatch):
    """The JavaScript engine would end the process."""
    monkeypatch.setattr(resource, "getrlimit", lambda which: (8 << 30, 8 << 30))
    page = stored_results / "report.html"
    for line in (["figure", "curves", str(stored_results), "-o", str(stored_results / "x.pdf")],
                 ["report", str(stored_results), "-o", str(page)]):  # fmt: skip
        assert main(line) == 2
        said = " ".join(capsys.readouterr().err.split())
        assert "since drawing takes 128 GB of addresses (not of memory), and this process" in said
    result = make_result("pos", (0.5, 0.7))
    write_tables(stored_results, [result])
    said = " ".join(capsys.readouterr().err.split())
    assert "layers.png: not drawn, since drawing takes 128 GB" in said
    assert (stored_results / "layers.md").exists()
    assert not (stored_results / "layers.png").exists()
    monkeypatch.undo()
    write_tables(stored_results, [result])
    assert (stored_results / "layers.png").exists()
