"""The report as text: every table and every chart's data are in it, and nothing is markup."""

import json
import re
from pathlib import Path

import pytest
import vl_convert
from corpus_records import corpus_record, geometry, store_record
from drawn import expressions
from pages import chart_of, data_of, own, rows_of, texts
from plugged_in import change_measurement
from results_by_hand import changed, make_full_result, make_result

from probes.__main__ import main
from probes.boards.breakdown_tables import evidence_tables
from probes.boards.claims.claim_reports import claims_table, make_reports
from probes.boards.layer_tables import score_tables
from probes.boards.shown_together import all_groups, corpus_records_of
from probes.frames.measurement_tables import measurement_tables
from probes.measurements.measurement import get_measurement
from probes.measurements.plugins import load_file
from probes.pages.page import page
from probes.pages.page_charts import script
from probes.records.row import Row

pytestmark = pytest.mark.integration

EVIL = "</script><img src=x onerror=alert(1)>"

QUOTES = 'a"b\\"c\\'

PLUG_IN = f"""
from probes import Row, Table, TableRow, measurement

EVIL = {EVIL!r}

class Mine:
    name, title, note = "mine", EVIL, EVIL

    def missing(self, found):
        return {{}}

    def chart(self, found, style):
        from probes import lines

        if found.frame["value"].eq(2).any():
            raise ValueError("rows that do not fit")
        rows = [
            {{"panel": EVIL, "model": model, "line": EVIL, "x": x, "value": x, "low": None, "high": None}}
            for model in found.records
            for x in (0, 1)
        ]
        import pandas as pd

        return lines(pd.DataFrame(rows), style)

def tables(record):
    if record.rows.value == (0,):
        raise RuntimeError("no such thing")
    return [Table(EVIL, ("layer", EVIL), (TableRow.of("0", EVIL),), notes=(EVIL,))]

def compute(context):
    return [Row("mine", 1.0)]

compute.__doc__ = "One number " + EVIL
measurement("my_own", shows=(Mine(),), more_tables=tables)(compute)
"""


@pytest.fixture
def plug_in(write, plug_ins):
    load_file(write(PLUG_IN))
    return lambda value: corpus_record("my_own", [Row("mine", value)], 2)


def records(*given):
    return corpus_records_of({Path(f"{i}.json"): record for i, record in enumerate(given)})


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
    (shown,), _ = all_groups(found, others)
    tables = [claims_table(x) for x in make_reports(found, "linear", others)]
    for label, results in shown.paths.items():
        floored = [unit.floored[label] for unit in shown.units if label in unit.results]
        tables += score_tables(floored)
        tables += [x for each in evidence_tables([*results.values()]).values() for x in each]
    tables += measurement_tables(get_measurement("geometry"), [*others.values()])
    assert len(tables) > 15
    for cell in (cell for table in tables for row in table.filled.rows for cell in row.cells):
        text = f"{cell.text}{cell.spread}{cell.marks}{cell.note}"
        assert "".join(text.split()) in compact
    assert "seen n = 5" in said
    assert "No random twin among the results on pos" in said


def test_each_chart_has_its_numbers():
    text = page(scores(), "x", both())
    rows = rows_of(chart_of(text, "Anisotropy"))
    assert [(r["model"], r["x"], r["value"], r["low"], r["high"]) for r in rows[:3]] == [
        ("m", 0, 0.1, 0.09, 0.11), ("m", 1, 0.2, 0.19, 0.21), ("m", 2, 0.3, 0.29, 0.31),
    ]  # fmt: skip
    assert [(r["model"], r["value"]) for r in rows[3:]] == [("random:m", 0.4)] * 3
    cells = rows_of(chart_of(text, "Similarity of layers"))
    found = [(r["row"], r["column"], r["text"]) for r in cells if r["model"] == "m"]
    assert found == [("1", "0", ".90"), ("2", "0", ".80"), ("2", "1", ".90")]
    rows = rows_of(chart_of(text, "pos (accuracy), n = 9"))
    points = [(r["model"], r["x"], r["value"]) for r in rows if r["value"] is not None]
    assert points == [(m, x, v) for m in "mn" for x, v in enumerate((50.0, 70.0, 60.0))]
    expected = rows_of(chart_of(text, "Expected layer by task"))
    of_kind = [r for r in expected if r["kind"] == "expected layer"]
    assert {(r["value"], r["low"], r["high"]) for r in of_kind} == {(1.25, 1.0, 1.5)}


def test_numbers_of_one_layer_have_no_chart_and_all_charts_one_legend():
    of_two, of_one = (
        make_full_result("pos", model="m"),
        make_full_result("pos", (0.5, 0.7), model="m"),
    )
    drawn, alone = (page(scores(x), "x") for x in (of_two, of_one))
    assert [r["value"] for r in rows_of(chart_of_section(drawn, ADDED))] == [0.8, 1.4, 1.2][1:]
    assert "Bits that a layer adds to layer 0" not in re.findall("<h4>(.*?)</h4>", alone)
    reason = f"No chart: {ADDED} of m on pos: single numbers, which the tables have."
    assert reason in texts(alone)
    assert reason not in texts(drawn)
    assert texts(alone).count("Star: best layer on dev.") == 1
    curves = chart_of(drawn, "pos (accuracy), n = 9")
    legends = re.findall(r'"legend": (\{[^}]*)', json.dumps(curves["layer"]))
    assert legends == []
    assert json.dumps(curves["layer"]).count('"legend": null') > 4


ADDED = "Bits that a layer adds to layer 0"


def chart_of_section(text, title):
    """The only chart below a heading."""
    part = text.partition(f"<h4>{title}</h4>")[2].partition("<h4>")[0]
    (number,) = re.findall(r'data-chart="(\d+)"', part)
    return data_of(text)["charts"][int(number)]


def test_parts_and_what_filters_them():
    assert tabs(page({}, "x", both())) == ["of-geometry", "claims", "sources"]
    elsewhere = changed(geometry([0.1, 0.2, 0.3]), "corpus", name="d", fingerprint="d" * 64)
    text = page(scores(), "x", records(geometry([0.1, 0.2, 0.3]), elsewhere))
    assert tabs(text) == [
        "overview", "evidence", "breakdowns", "of-geometry", "claims", "sources",
    ]  # fmt: skip
    part = text.partition('<section class="panel" id="of-geometry"')[2].partition("</section>")[0]
    groups = re.findall(r'data-group="([^"]*)">\s*<h3>(.*?)</h3>', part)
    assert groups == [("g0", "c 1"), ("", "d 1")]
    assert set(re.findall(r'data-task="([^"]*)"', text)) == {"pos", "chunking"}
    assert data_of(text)["models"] == [{"label": x, "random": False} for x in ("m", "n")]


def test_what_is_missing_is_said_with_the_reason():
    bare = make_result("pos", (0.3, 0.4), model="n", p_best=False)
    bare = changed(bare, "model", digest="n")
    said = texts(page(scores(make_full_result("pos", model="m"), bare), "x"))
    assert "No chart: Expected layer by task of n: there is no record of it." in said
    assert "No chart: Selectivity by layer of n on pos: there is no record of it." in said
    one = make_full_result("pos", model="m")
    text = page(scores(one, one, one), "x")
    assert "2 duplicate results left out s1.json: a second result of m on pos" in texts(text)


@pytest.mark.parametrize("name", [EVIL, QUOTES])
def test_no_name_is_markup_or_an_expression(write, plug_ins, name):
    load_file(write(PLUG_IN.replace(repr(EVIL), repr(name))))
    other = corpus_record("my_own", [Row("mine", 1.0)], 2, model="m")
    result = make_full_result(name, model=name)
    results = scores(result, changed(result, "model", name="m", digest="n"))
    text = page(results, name, records(other))
    assert "<img" not in own(text)
    assert not re.search(r'(src|href)="(?!#|data:)', own(text).replace(script(), ""))
    assert texts(text).count(" ".join(name.split())) > 20
    data = data_of(text)
    assert name in {model["label"] for model in data["models"]}
    assert {row.get("line") for spec in data["charts"] for row in rows_of(spec)} >= {name}
    for spec in data["charts"]:
        compiled = vl_convert.vegalite_to_vega(spec)
        found = [re.sub(r'"(?:[^"\\]|\\.)*"', "", x) for x in expressions(compiled)]
        assert not any("alert" in x or "b\\" in x or "c\\" in x for x in found)
    assert "NaN" not in json.dumps(data)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (0.0, "the measurement 'my_own' raised RuntimeError: no such thing"),
        (2.0, "the measurement 'my_own' raised ValueError: rows that do not fit"),
    ],
)
def test_a_plug_in_that_fails_costs_its_part_alone(plug_in, capsys, value, why):
    text = page({}, "x", {**both(), Path("p.json"): records(plug_in(value))[Path("0.json")]})
    assert tabs(text) == ["of-geometry", "claims", "sources"]
    said = " ".join(capsys.readouterr().err.split())
    assert said.count("left out of the page: my_own: ") == 1
    assert why in said


def test_a_defect_of_the_suites_own_is_not_hidden(monkeypatch):
    change_measurement(monkeypatch, "geometry", more_tables=lambda record: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        page({}, "x", both())


def test_sources_name_corpora_models_and_records():
    said = texts(page(scores(), "x", both()).partition('id="sources"')[2])
    for part in ("licence", "fingerprint", "Records: 5", "geometry v3, mean pooling, float32"):
        assert part in said


def test_the_command_on_a_folder_without_scores(tmp_path, capsys):
    store_record(tmp_path, geometry([0.1, 0.2, 0.3]))
    assert main(["report", str(tmp_path)]) == 0
    assert "of-geometry" in tabs((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert main(["claims", str(tmp_path)]) == 0
    assert "anisotropy" in capsys.readouterr().out
