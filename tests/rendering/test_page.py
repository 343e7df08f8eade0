"""The report as text: every table and every chart's data are in it, and nothing is markup."""

import json
import re
from pathlib import Path

import pytest
import vl_convert
from changed_measurement import change_measurement
from corpus_records import corpus_record, geometry, store_record
from pages import chart_of, data_of, own, rows_of, texts
from results_by_hand import changed, make_full_result, make_result

from probes.__main__ import main
from probes.boards.breakdown_tables import evidence_tables
from probes.boards.claims.claim_reports import claims_table, make_reports
from probes.boards.groups import group, of_corpora
from probes.boards.layer_tables import score_tables
from probes.measurements.measurement import get_measurement
from probes.measurements.plugins import load_file
from probes.records.row import Row
from probes.rendering.page.page import page
from probes.rendering.page.page_charts import script

pytestmark = pytest.mark.integration

EVIL = "</script><img src=x onerror=alert(1)>"

QUOTES = 'a"b\\"c\\'

PLUG_IN = f"""
from probes import (
    Card, Curves, Gallery, GalleryPanel, Grid, Panel, Picture, Point, Row, Table, TableRow,
    measurement,
)

EVIL = {EVIL!r}

def tables(record):
    if record.rows.value == (0,):
        raise RuntimeError("no such thing")
    return [Table(EVIL, ("layer", EVIL), (TableRow.of("0", EVIL),), notes=(EVIL,))]

def charts(drawn, records):
    if next(iter(records.values())).rows.value == (2,):
        return [Gallery("g", "G", "", "d", "a", {{"m": GalleryPanel((), (), ())}})]
    points = [Point(0, 0.5, line=EVIL), Point(1, float("nan"), line=EVIL)]
    card = Card(EVIL, (("entropy", ".42"), (EVIL, EVIL)))
    cells = Panel((EVIL, "2"), ("1",), ((0.5,), (None,)))
    pictures = GalleryPanel((EVIL,), ("1",), ((Picture(((0.5,),), EVIL, EVIL),),))
    return [
        Curves(EVIL, EVIL, EVIL, EVIL, what=EVIL, models=dict.fromkeys(records, points)),
        Grid("g", "G", EVIL, EVIL, "head", {{"m": cells}}, cards={{"m": ((card,), (None,))}}),
        Gallery("p", "P", EVIL, EVIL, "head", {{"m": pictures}}),
    ]

def mine(context):
    return [Row("mine", 1.0)]

mine.__doc__ = "One number " + EVIL
measurement("my_own", views=(), more_tables=tables, redrawn=charts)(mine)
"""


@pytest.fixture(autouse=True)
def all_current(monkeypatch):
    for module in ("groups", "claims.claim_reports"):
        monkeypatch.setattr(f"probes.boards.{module}.is_current", lambda _: True)


@pytest.fixture
def plug_in(write, plug_ins):
    load_file(write(PLUG_IN))
    return lambda value: corpus_record("my_own", [Row("mine", value)], 2)


def records(*given):
    return of_corpora({Path(f"{i}.json"): record for i, record in enumerate(given)})


def both():
    twin = geometry([0.4, 0.4, 0.4], model="random:m", digest="r", result={"random_seed": 0})
    return records(geometry([0.1, 0.2, 0.3]), twin)


def scores(*results):
    every = results or (
        make_full_result("pos", model="m"),
        make_full_result("chunking", (0.2, 0.4, 0.6), model="m", metric="span_f1"),
        changed(make_full_result("pos", model="n"), "model", digest="n"),
    )
    return {Path(f"s{i}.json"): result for i, result in enumerate(every)}


def tabs(text):
    return re.findall(r'role="tab" id="tab-[\w-]+" aria-controls="([\w-]+)"', text)


def test_every_table_of_the_terminal_is_on_the_page():
    found, others = scores(), records(geometry([0.1, 0.2, 0.3]))
    said = texts(page(found, "x", others))
    compact = "".join(said.split())
    (shown,), _ = group(found, others)
    tables = [claims_table(x, "linear") for x in make_reports(found, "linear", others)]
    for label, results in shown.paths.items():
        floored = [unit.floored[label] for unit in shown.units if label in unit.results]
        tables += score_tables(floored)
        tables += [x for each in evidence_tables([*results.values()]).values() for x in each]
    tables += [
        x for record in others.values() for x in get_measurement("geometry").tables([record])
    ]
    assert len(tables) > 15
    for table in tables:
        for row in table.filled.rows:
            for cell in row.cells:
                half = f"±{cell.half}" if cell.half else ""
                assert "".join(f"{cell.text}{half}{cell.marks}{cell.note}".split()) in compact
    assert "seen n = 5" in said
    assert "No random twin among the results on pos" in said


def test_each_chart_has_its_numbers():
    text = page(scores(), "x", both())
    (anisotropy,) = chart_of(text, "Anisotropy")
    rows = rows_of(anisotropy)
    assert [(r["model"], r["x"], r["value"], r["low"], r["high"]) for r in rows[:3]] == [
        ("m", 0, 0.1, 0.09, 0.11), ("m", 1, 0.2, 0.19, 0.21), ("m", 2, 0.3, 0.29, 0.31),
    ]  # fmt: skip
    assert [(r["model"], r["value"]) for r in rows[3:]] == [("random:m", 0.4)] * 3
    assert rows[0]["said"] == {"layer": "0", "model": "m", "anisotropy": "0.100 [0.090, 0.110]"}
    one, _ = chart_of(text, "Similarity of layers")
    cells = [row["said"] for rows in one["datasets"].values() for row in rows]
    assert cells == [
        {"layer": "1", "other layer": "0", "value": ".90"},
        {"layer": "2", "other layer": "0", "value": ".80"},
        {"layer": "2", "other layer": "1", "value": ".90"},
    ]
    (curves,) = chart_of(text, "pos (accuracy), n = 9")
    points = [(r["model"], r["x"], r["value"]) for r in rows_of(curves)]
    assert points == [(m, x, v) for m in "mn" for x, v in enumerate((50.0, 70.0, 60.0))]
    (bars,) = chart_of(text, "Expected layer by task")
    assert {row["said"]["expected layer"] for row in rows_of(bars)} == {"1.25 [1.00, 1.50]"}


def test_parts_and_what_filters_them():
    assert tabs(page({}, "x", both())) == ["of-geometry", "claims", "sources"]
    elsewhere = changed(geometry([0.1, 0.2, 0.3]), "corpus", name="d", fingerprint="d" * 64)
    text = page(scores(), "x", records(geometry([0.1, 0.2, 0.3]), elsewhere))
    assert tabs(text) == [
        "overview", "leaderboard", "evidence", "breakdowns", "of-geometry", "claims", "sources",
    ]  # fmt: skip
    part = text.partition('<section class="panel" id="of-geometry"')[2].partition("</section>")[0]
    assert re.findall(r'data-group="([^"]*)">\s*<h3>(.*?)</h3>', part) == [
        ("g0", "c 1"),
        ("", "d 1"),
    ]
    assert set(re.findall(r'data-task="([^"]*)"', text)) == {"pos", "chunking"}
    assert data_of(text)["models"] == [{"label": x, "random": False} for x in ("m", "n")]
    # One model alone has no leaderboard.
    assert "leaderboard" not in tabs(page(scores(make_full_result("pos")), "x"))


def test_what_is_missing_is_said_with_the_reason():
    bare = make_result("chunking", (0.3, 0.4), model="m", p_best=False)
    said = texts(page(scores(make_full_result("pos", model="m"), bare), "x"))
    assert "Not measured: Number of tasks in which two layers differ significantly of m: " in said
    one = make_full_result("pos", model="m")
    text = page(scores(one, one, one), "x")
    assert "2 duplicate results left out s1.json: a second result of m on pos" in texts(text)


@pytest.mark.parametrize("name", [EVIL, QUOTES])
def test_no_name_is_markup_or_an_expression(write, plug_ins, name):
    load_file(write(PLUG_IN.replace(repr(EVIL), repr(name))))
    other = corpus_record("my_own", [Row("mine", 1.0)], 2, model="m")
    result = make_full_result(name, model=name)
    text = page(
        scores(result, changed(result, "model", name="m", digest="n")), name, records(other)
    )
    assert "<img" not in own(text)
    assert not re.search(r'(src|href)="(?!#|data:)', own(text).replace(script(), ""))
    assert texts(text).count(" ".join(name.split())) > 20
    data = data_of(text)
    assert name in {model["label"] for model in data["models"]}
    (cells,) = chart_of(text, "G")
    (row,) = (x for rows in cells["datasets"].values() for x in rows)
    assert row["said"]["about"] == row["said"][name] == name
    for spec in data["charts"]:
        compiled = vl_convert.vegalite_to_vega(spec)
        found = [re.sub(r'"(?:[^"\\]|\\.)*"', "", x) for x in expressions(compiled)]
        assert any("said" in expression for expression in found)
        assert not any("alert" in x or "b\\" in x or "c\\" in x for x in found)
    assert "NaN" not in json.dumps(data)


def expressions(spec):
    """Every expression of a chart, as Vega-Lite hands it to Vega."""
    if isinstance(spec, list):
        return [found for each in spec for found in expressions(each)]
    if not isinstance(spec, dict):
        return []
    own = [x for name, x in spec.items() if name in EXPRESSIONS and isinstance(x, str)]
    return own + [found for each in spec.values() for found in expressions(each)]


EXPRESSIONS = ("signal", "expr", "test", "update", "init")


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (0.0, "the measurement 'my_own' raised RuntimeError: no such thing"),
        (2.0, "the chart 'g' has a panel whose pictures are none"),
    ],
)
def test_a_plug_in_that_fails_costs_its_part_alone(plug_in, capsys, value, why):
    text = page({}, "x", {**both(), Path("p.json"): records(plug_in(value))[Path("0.json")]})
    assert tabs(text) == ["of-geometry", "claims", "sources"]
    said = " ".join(capsys.readouterr().err.split())
    assert said.count("left out of the page: my_own: ") == 1
    assert why in said


def test_a_defect_of_the_suites_own_is_not_hidden(monkeypatch):
    change_measurement(monkeypatch, "geometry", redrawn=lambda *given: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        page({}, "x", both())


def test_sources_name_corpora_models_and_records():
    said = texts(page(scores(), "x", both()).partition('id="sources"')[2])
    for part in ("licence", "fingerprint", "Records: 5", "geometry v2, mean pooling, float32"):
        assert part in said


def test_the_command_on_a_folder_without_scores(tmp_path, capsys):
    store_record(tmp_path, geometry([0.1, 0.2, 0.3]))
    assert main(["report", str(tmp_path)]) == 0
    assert "of-geometry" in tabs((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert main(["claims", str(tmp_path)]) == 0
    assert "anisotropy" in capsys.readouterr().out


def test_twenty_models_take_less_than_two_and_a_half_megabytes():
    found = {}
    for i in range(20):
        for task in ("pos", "chunking", "depth", "agreement", "srl"):
            values = [0.51234 + 0.00411 * i + 0.0101 * layer for layer in range(13)]
            result = make_full_result(task, values, model=f"org/model-{i:02}")
            result = changed(result, "model", digest=str(i))
            found[Path(f"{task}-{i}.json")] = result
            found[Path(f"{task}-mlp-{i}.json")] = changed(result, "probe", family="mlp")
    assert len(own(page(found, "twenty")).encode()) < 2_500_000
