"""The parts of the page that measurements of a corpus describe."""

import json
import re
from pathlib import Path

import pytest
import vl_convert
from changed_measurement import change_measurement
from corpus_records import corpus_record, geometry, store_record
from pages import data_of, own, rows_of
from results_by_hand import changed, make_full_result

from probes.__main__ import main
from probes.boards.groups import of_corpora
from probes.measurements.plugins import load_file
from probes.records.row import Row
from probes.rendering.page.page import page, write_page

pytestmark = pytest.mark.integration

EVIL = "</script><img src=x onerror=alert(1)>"

PLUG_IN = f"""
from probes import Curves, Point, Row, TableRow, Table, measurement
from probes.records.charts import Grid, Panel

EVIL = {EVIL!r}

def tables(record):
    if record.rows.value == (0,):
        raise RuntimeError("no such thing")
    return [Table(EVIL, ("layer", EVIL), (TableRow.of("0", EVIL),), notes=(EVIL,))]

def charts(drawn, records):
    points = [Point(0, 0.5, line=EVIL), Point(1, float("nan"), line=EVIL)]
    yield Curves(EVIL, EVIL, EVIL, EVIL, what=EVIL, models=dict.fromkeys(records, points))
    yield Grid(EVIL, EVIL, EVIL, EVIL, EVIL, {{EVIL: Panel((EVIL,), (EVIL,), ((0.5,),))}})

def mine(context):
    return [Row("mine", 1.0)]

mine.__doc__ = "One number " + EVIL
measurement("my_own", views=(), more_tables=tables, redrawn=charts)(mine)
"""


@pytest.fixture(autouse=True)
def all_current(monkeypatch):
    for module in ("comparable", "claims.claim_reports"):
        monkeypatch.setattr(f"probes.boards.{module}.is_current", lambda _: True)


def records(*given):
    return of_corpora({Path(f"{i}.json"): record for i, record in enumerate(given)})


def both(**more):
    twin = geometry([0.4, 0.4, 0.4], model="random:m", digest="r", result={"random_seed": 0})
    return records(geometry([0.1, 0.2, 0.3], **more), twin)


def tabs(text):
    return re.findall(r'role="tab" id="tab-[\w-]+" aria-controls="[\w-]+">([^<]*)<', text)


def test_a_page_without_scores_has_a_part_for_each_measurement():
    text = page({}, "x", both())
    assert tabs(text) == ["Geometry", "Claims", "Sources"]
    assert 'id="group"' not in text
    assert text.count('data-draw="0"') == 1
    assert "anisotropy at layers 1–2: 0.200 to 0.300 [0.190, 0.310]; limit: 0" in text


def test_curves_of_all_models_are_in_the_pages_data():
    data = data_of(page({}, "x", both()))
    chart = data["charts"]["of-geometry-0-0"]
    assert [model["label"] for model in data["models"]] == ["m", "random:m"]
    assert rows_of(chart)[0]["said"] == {
        "layer": "0",
        "model": "m",
        "anisotropy": "0.100 [0.090, 0.110]",
    }
    rows = rows_of(chart)
    assert [(r["model"], r["x"], r["value"]) for r in rows] == [
        *zip(["m"] * 3, (0, 1, 2), (0.1, 0.2, 0.3), strict=True),
        *(("random:m", x, 0.4) for x in (0, 1, 2)),
    ]
    assert [(r["low"], r["high"]) for r in rows[:3]] == [(0.09, 0.11), (0.19, 0.21), (0.29, 0.31)]


def test_a_grid_is_a_table_whose_last_row_comes_first():
    text = page({}, "x", both())
    table = re.search(r'aria-label="Heat map of m">.*?</table>', text, re.DOTALL)[0]
    rows = [
        (row[0], re.findall(r'<td class="(h\d+)"[^>]*>([^<]*)<', row[1]))
        for row in re.findall(r'<tr><th scope="row">(\d)</th>(.*?)</tr>', table, re.DOTALL)
    ]
    assert rows == [
        ("2", [("h8", ".80"), ("h9", ".90")]),
        ("1", [("h9", ".90")]),
    ]


def test_tables_of_each_model_are_on_the_page():
    text = page({}, "x", both())
    assert text.count("<caption>m · c · geometry</caption>") == 1
    assert text.count("<caption>random:m · c · geometry</caption>") == 1


def test_beside_scores_a_part_comes_before_the_claims_and_follows_their_filter():
    scores = {Path("s.json"): make_full_result("pos", model="m")}
    other = geometry([0.1, 0.2, 0.3])
    elsewhere = changed(other, "corpus", name="d", fingerprint="d" * 64)
    text = page(scores, "x", records(other, elsewhere))
    assert tabs(text)[-4:] == ["Breakdowns", "Geometry", "Claims", "Sources"]
    part = text.partition('<section class="panel" id="of-geometry"')[2].partition("</section>")[0]
    assert re.findall(r'data-group="([^"]*)">\s*<h3>(.*?)</h3>', part) == [
        ("g0", "c 1"),
        ("", "d 1"),
    ]
    assert text.count('data-draw="0"') == 1


def test_sources_name_the_records_of_every_measurement():
    text = page({}, "x", both())
    sources = text.partition('id="sources"')[2]
    assert "2 result files" in sources
    assert "geometry v2, mean pooling, float32" in sources


@pytest.fixture
def plug_in(write, plug_ins):
    load_file(write(PLUG_IN))
    return lambda value: corpus_record("my_own", [Row("mine", value)], 2)


def test_what_a_plug_in_says_is_escaped(plug_in):
    text = page({}, "x", records(plug_in(1.0)))
    assert tabs(text)[0] == "My own"
    assert "<img" not in own(text)
    part = text.partition('id="of-my_own"')[2].partition("</section>")[0]
    assert part.count("&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;") >= 10
    (chart,) = data_of(text)["charts"].values()
    assert [(r["x"], r["value"], r["line"]) for r in rows_of(chart)] == [(0, 0.5, EVIL)]  # no NaN


QUOTES = 'a"b\\"c\\'


def expressions(spec):
    """Every expression of a chart, as Vega-Lite hands it to Vega."""
    if isinstance(spec, list):
        return [found for each in spec for found in expressions(each)]
    if not isinstance(spec, dict):
        return []
    own = [
        value
        for name, value in spec.items()
        if name in ("signal", "expr", "test", "update", "init") and isinstance(value, str)
    ]
    return own + [found for each in spec.values() for found in expressions(each)]


def test_what_a_plug_in_says_is_in_no_expression(write, plug_ins):
    load_file(write(PLUG_IN.replace(repr(EVIL), repr(QUOTES))))
    record = corpus_record("my_own", [Row("mine", 1.0)], 2, model=QUOTES)
    data = data_of(page({}, "x", records(record)))
    (chart,) = data["charts"].values()
    assert QUOTES in json.dumps(chart, ensure_ascii=False).replace('\\"', '"').replace("\\\\", "\\")
    compiled = vl_convert.vegalite_to_vega({**chart, "config": data["config"]})
    found = expressions(compiled)
    assert 'datum["said"]' in found or "datum.said" in found
    assert not any("b\\" in expression or "c\\" in expression for expression in found)


def test_a_plug_in_that_fails_costs_its_part_alone(plug_in, capsys):
    text = page({}, "x", {**both(), Path("p.json"): records(plug_in(0.0))[Path("0.json")]})
    assert tabs(text) == ["Geometry", "Claims", "Sources"]
    said = " ".join(capsys.readouterr().err.split())
    assert said.count("left out of the page: my_own: the measurement 'my_own' raised") == 1
    assert "RuntimeError: no such thing" in said
    text = page({}, "x", records(plug_in(0.0)))
    assert tabs(text) == ["Claims", "Sources"]


def test_a_defect_of_the_suites_own_is_not_hidden(monkeypatch):
    change_measurement(monkeypatch, "geometry", redrawn=lambda *given: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        page({}, "x", both())


def test_the_command_on_a_folder_without_scores(tmp_path, capsys):
    store_record(tmp_path, geometry([0.1, 0.2, 0.3]))
    assert main(["report", str(tmp_path)]) == 0
    assert "Geometry" in tabs((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert main(["claims", str(tmp_path)]) == 0
    assert "anisotropy" in capsys.readouterr().out


NAMES = """
    const said = [...document.querySelectorAll("[data-chart='of-geometry-0-0'] .mark-symbol path")]
      .map(each => each.__data__.datum.model);
    return [...new Set(said)];
"""


@pytest.mark.parametrize("scored", [False, True])
def test_the_part_in_a_browser(browser, tmp_path, plug_in, scored):
    scores = {tmp_path / "s.json": make_full_result("pos", model="m")} if scored else {}
    others = {**both(), Path("p.json"): records(plug_in(1.0))[Path("0.json")]}
    browser.emulate()
    browser.open(write_page(scores, tmp_path / "p.html", "x", others), "of-geometry")
    place = "return document.querySelector(`[data-chart='of-geometry-0-0']`)"
    browser.until(f"{place}?.classList.contains('done')")
    assert browser.js(NAMES) == ["m", "random:m"]
    assert browser.texts("#of-geometry .heat caption") == ["● m", "○ random:m never trained"]
    browser.one("#choices summary").click()
    browser.one("#random").click()
    browser.until(f"{place}.classList.contains('done')")
    assert browser.js(NAMES) == ["m"]
    assert browser.texts("#of-geometry .heat caption") == ["● m"]
    browser.one("#tab-of-my_own").click()
    browser.until("return !!document.querySelector('#of-my_own .chart.done')")
    assert EVIL in browser.one("#of-my_own h5").text
    assert browser.js("return document.documentElement.scrollWidth") <= 1280
    assert browser.errors() == []
