"""Charts draw what is in their frames: of every view and every figure of scores."""

import itertools
import re
from pathlib import Path

import altair
import numpy as np
import pandas as pd
import pytest
import vl_convert
from drawn import column, data_of, expressions, png_pixels, svg, texts, width_of

from probes.boards import score_charts
from probes.boards.score_charts import results_of_group, scores_frame
from probes.boards.shown_together import all_groups, corpus_groups, corpus_records_of, model_labels
from probes.cli.chart_files import FIGURES
from probes.frames.frame import load
from probes.frames.joined_results import results_with_evidence
from probes.frames.measurement_tables import findings_of
from probes.measurements.chart_views import Cells, Lines, Maps
from probes.measurements.measurement import probe_measurements
from probes.measurements.pivots import Pivot
from probes.measurements.row_filters import rows_where
from probes.tables import charts, figures
from probes.tables.charts import INCH, PAGE, PAPER, WIDTHS, Style
from probes.tables.colours import COLOURS, css, distinct_colours

PUBLISHED = Path(__file__).parents[2] / "results" / "published"

SAMPLE = sorted(PUBLISHED.glob("*all-MiniLM*/sample"))


@pytest.fixture(scope="module")
def records():
    found = {path: x for folder in SAMPLE for path, x in load(folder).records().items()}
    if not found:
        pytest.skip("the published results are of another schema")
    return found


@pytest.fixture(scope="module")
def scores(records):
    (linear,) = (x for x in all_groups(results_with_evidence(records))[0] if x.probe == "linear")
    return linear


@pytest.fixture(scope="module")
def findings(records, scores):
    """The findings from which each view is made."""
    others = corpus_records_of(records)
    groups, _ = corpus_groups(others, model_labels({**others, **results_with_evidence(records)}))
    found = [(x.measurement, findings_of(x.measurement, x.records, x.paths)) for x in groups]
    pos = next(unit for unit in scores.units if unit.name == "pos")
    found += [(x, findings_of(x, pos.results, {})) for x in probe_measurements()]
    views = ((its, view, each) for its, each in found for view in its.shows)
    return [x for x in views if not isinstance(x[1], Pivot) and x[2].records]


@pytest.mark.slow
def test_every_view_draws_all_its_numbers(findings):
    drawn = set()
    for its, view, found in findings:
        known = found.records.keys() - view.missing(found).keys()
        if not known:
            continue
        chart = view.chart(found, PAGE)
        altair.Chart.from_dict(chart)  # checks it by the schema of Vega-Lite
        drawn.add(type(view).__name__)
        text = svg(view.chart(found, PAPER))
        assert "<text" in text, view.name
        if view.name == "relations":
            for title in (
                "dependency relation",
                "best fixed offset, then the best head of each layer",
                "how often the word attended to most is the right one",
            ):
                assert title in said_in(view.chart(found, PAPER))
        if isinstance(view, Maps):
            assert len(column(chart, "url")) == sum(
                found.arrays[x][view.array].shape[0] * found.arrays[x][view.array].shape[1]
                for x in known
            )
            continue
        if not isinstance(view, (Lines, Cells)):
            continue
        for row in data_of(chart):  # what is said of a head is said at its place
            place = f"layer {row['row']}, head {row['column']}" if "said" in row else ""
            assert place in str(row.get("said", "")), view.name
        metrics = [view.metric] if isinstance(view.metric, str) else [*view.metric]
        where = view.where
        if len(found.records) > 1 and isinstance(view, Lines):
            where = {**where, **view.of_several}
        rows = rows_where(found.frame, metrics, where).dropna(subset=["value"])
        if isinstance(view, Lines):
            at = rows[view.x]
            rows = rows[(at > 0) | at.isna()] if view.log else rows
        shown = {round(x, 6) for x in [*column(chart, "value"), *column(chart, "level")]}
        # Shares are drawn in percent.
        expected = ({round(scale * x, 6) for x in rows["value"]} for scale in (1, 100))
        assert any(shown >= each for each in expected), (its.name, view.name)
        assert set(column(chart, "model")) == known
    assert drawn >= {"Lines", "Cells", "Maps", "RelationsGrid"}


def test_every_figure_of_scores_has_the_scores_of_the_records(scores):
    drawn = {name: getattr(score_charts, of)(scores, PAPER) for name, of in FIGURES.items()}
    assert drawn["steps"].chart is None
    assert set(drawn["steps"].missing.values()) == {"its name has no training step"}
    pos = next(unit for unit in scores.units if unit.name == "pos")
    for model, result in pos.results.items():
        expected = [100 * result.score(layer) for layer in result.layers]
        curves = column(drawn["curves"].chart, "value", model=model, panel="pos\naccuracy, %")
        assert curves == pytest.approx(expected)
        cells = [
            row for row in data_of(drawn["heatmap"].chart)
            if row["model"] == model and row["column"].startswith("pos\n") and row["row"] != "floor"
        ]  # fmt: skip
        assert [row["text"] for row in cells] == [f"{x:.1f}" for x in expected]
        floor = 100 * pos.floored[model].floor[1]
        points = [x - floor for x in expected]
        assert [row["value"] for row in cells] == pytest.approx(points, abs=1e-3)
    located = pos.results["all-MiniLM-L6-v2"].row("localisation", "expected_layer")
    (value,) = column(drawn["expected-layers"].chart, "value", name="pos", kind="expected layer")
    assert value == pytest.approx(located.value, abs=1e-5)
    for name in ("heatmap", "curves", "expected-layers"):
        said = " ".join(texts(svg(drawn[name].chart)))
        assert "all-MiniLM-L6-v2" in said, name


def test_a_frame_of_scores_says_what_tables_mark(scores):
    frame = scores_frame(results_of_group(scores))
    assert len(frame) == sum(len(r.layers) for u in scores.units for r in u.results.values())
    one = frame[(frame["model"] == "all-MiniLM-L6-v2") & frame["task"].str.startswith("pos\n")]
    result = next(u for u in scores.units if u.name == "pos").floored["all-MiniLM-L6-v2"]
    assert one.loc[one["best"], "layer"].tolist() == [result.best_number]
    assert one["floor"].unique().tolist() == [result.floor[1]]
    assert one["floored"].tolist() == [result.is_floored(x) for x in result.layers]


CURVES = pd.DataFrame(
    [("", model, "", x, y + x, y + x - 0.5, y + x + 0.5)
     for model, y in (("m", 1.0), ("random:m", 0.5), ("n", 2.0)) for x in range(3)],
    columns=["panel", "model", "line", "x", "value", "low", "high"],
)  # fmt: skip


def scale_of(chart, channel):
    """Domain and range of the first scale of a channel."""
    for layer in chart.to_dict()["layer"]:
        if scale := layer["encoding"].get(channel, {}).get("scale"):
            return dict(zip(scale["domain"], scale["range"], strict=True))
    return {}


def test_random_twins_are_dotted_in_their_models_colour():
    chart = charts.lines(CURVES, PAPER)
    assert scale_of(chart, "color") == {
        "m": COLOURS[0], "random:m": COLOURS[0], "n": COLOURS[1]
    }  # fmt: skip
    assert scale_of(chart, "strokeDash") == {"m": [1, 0], "random:m": [1, 1.5], "n": [1, 0]}


def test_models_that_are_shown_together_keep_their_colours():
    style = Style(models=("k", "m", "random:m", "n"))
    colours = {"m": COLOURS[1], "random:m": COLOURS[1], "n": COLOURS[2]}
    assert scale_of(charts.lines(CURVES, style), "color") == colours


def test_halves_on_an_axis_are_not_rounded():
    doses = pd.concat([CURVES[:1].assign(x=x) for x in (-1, -0.5, 0.5, 1)])
    assert {"−1", "−0.5", "0.5", "1"} <= set(texts(svg(charts.lines(doses, PAPER))))


def said_in(chart):
    return " ".join(" ".join(texts(svg(chart))).split())


def panels_of(chart):
    """The specifications of the panels, by title."""
    return {" ".join(x["title"]["text"]): x for x in chart["concat"]}


def test_panels_fit_trained_models_and_twins_are_clipped():
    floor = pd.DataFrame([("a", "m", "", 0.25)], columns=["panel", "model", "line", "level"])
    low = CURVES.assign(panel="a").replace({"value": {0.5: -40.0}, "low": {0.0: -41.0}})
    both = pd.concat([low, low[low["model"] == "random:m"].assign(panel="b"), floor])
    chart = charts.lines(both, PAPER, fit_trained=True)
    domains = {name: x["encoding"]["y"]["scale"]["domain"] for name, x in panels_of(chart).items()}
    # m from 0.5 to 3.5 with its floor at .25, n to 4.5; the twin alone has its own range.
    assert domains == {"a": [0.25, 4.5], "b": [-41.0, 3.0]}
    assert "random twins are cut off where they leave them." in said_in(chart)
    drawn = column(chart, "value", model="random:m", panel="a")
    assert drawn == [-40.0, 1.5, 2.5]  # Numbers are those of the record.
    clipped = [x for x in panels_of(chart)["a"]["layer"] if x["mark"].get("clip")]
    assert {x["mark"]["type"] for x in clipped} == {"area", "rule", "line", "point"}
    within = charts.lines(CURVES[CURVES["model"] != "random:m"], PAPER, fit_trained=True)
    assert "domain" not in within["encoding"]["y"]["scale"]
    assert "title" not in within


def test_the_legend_names_floors_and_only_the_curves_within_the_axes():
    floor = pd.DataFrame([("a", "m", "", 0.25)], columns=["panel", "model", "line", "level"])
    numbers = ["value", "low", "high"]
    far = CURVES.assign(panel="a")
    twin = far["model"] == "random:m"
    far.loc[twin, numbers] = far.loc[twin, numbers] - 90
    rows = pd.concat([far, floor])
    legends = [
        charts.lines(x, PAPER, fit_trained=True)["layer"][3]["encoding"]["color"]["legend"][
            "values"
        ]
        for x in (rows, pd.concat([CURVES.assign(panel="a"), floor]), far)
    ]
    assert legends == [["m", "n", "floor"], ["m", "random:m", "n", "floor"], ["m", "n"]]
    written = texts(svg(charts.lines(rows, PAPER, fit_trained=True)))
    assert "floor" in written
    assert "random:m" not in written


@pytest.mark.parametrize(("panels", "columns"), [(0, 1), (1, 1), (4, 4), (5, 3), (7, 4), (9, 3)])
def test_panels_are_in_even_rows(panels, columns):
    assert Style(width=WIDTHS["two"] * INCH).columns(panels) == columns


def test_curves_by_depth_end_at_one():
    style = Style(n_layers={"m": 2, "random:m": 2, "n": 8})
    chart = charts.lines(CURVES, style)
    assert column(chart, "x", model="m") == column(chart, "x", model="random:m") == [0, 0.5, 1]
    assert column(chart, "x", model="n") == [0, 0.125, 0.25]
    assert {"relative depth", "0", "0.5", "1"} <= set(texts(svg(chart, style)))
    # Doses and sizes are no layers.
    assert column(charts.lines(CURVES, style, x="dose"), "x", model="n") == [0, 1, 2]


@pytest.mark.parametrize("inches", WIDTHS.values())
@pytest.mark.parametrize("models", [1, 6])
def test_letters_are_of_seven_to_nine_points(inches, models, tmp_path):
    names = [
        f"{'organisation/a-very-long-name-of-a-model' * (models > 1)}-{i}" for i in range(models)
    ]
    curves = [CURVES[:3].assign(model=name, panel=x) for name in names for x in ("a", "b", "c")]
    style = Style(inches * INCH)
    figures.save(charts.lines(pd.concat(curves), style), tmp_path / "x.svg", style)
    drawn = (tmp_path / "x.svg").read_text()
    width, natural = width_of(drawn), float(re.search(r'viewBox="0 0 ([\d.]+)', drawn)[1])
    assert width <= inches * INCH
    sizes = [float(x) * width / natural for x in re.findall(r'font-size="([\d.]+)px"', drawn)]
    assert 7 <= min(sizes) <= max(sizes) <= 9
    assert all(any(name[:30] in said for said in texts(drawn)) for name in names)


def test_heat_maps_have_the_blues_of_scores_above_the_floor():
    chart = charts.heat_map(CELLS, PAPER, down="layer", across="head", legend_title="share")
    fills = re.findall(
        r'aria-roledescription="rect mark"[^>]*|fill="(rgb[^"]*|#[^"]*)"', svg(chart)
    )
    assert {"rgb(242, 240, 235)", "rgb(19, 75, 133)"} <= set(fills)
    diverging = charts.heat_map(
        CELLS, PAPER, down="layer", across="head", legend_title="share", diverging=True
    )
    assert "rgb(19, 75, 133)" in svg(diverging)


def test_marks_are_shapes_and_a_single_number_has_a_bar():
    marked = CURVES[:4].assign(
        mark=["best on dev", "none", "not significantly above the floor", "none"]
    )
    drawn = svg(charts.lines(marked, PAPER))
    assert {"best on dev", "not significantly above the floor"} <= set(texts(drawn))
    assert "worse than another" not in texts(drawn)
    chart = charts.lines(marked, PAPER)
    assert column(chart, "model", alone=True) == ["random:m"]


CELLS = pd.DataFrame(
    [("m", row, column, 0.1 * row + 0.01 * column, f".{row}{column}")
     for row in range(3) for column in range(1, 3)],
    columns=["panel", "row", "column", "value", "text"],
)  # fmt: skip


def test_a_heat_map_has_whole_numbers_upwards_and_names_below_them():
    frame = pd.concat(
        [CELLS, pd.DataFrame({"panel": "m", "row": "floor", "column": [1], "text": ".99"})]
    )
    chart = charts.heat_map(frame, PAPER, down="layer", across="head", legend_title="share")
    said = texts(svg(chart))
    order = {row["row_at"]: row["row"] for row in data_of(chart)}
    assert [order[x] for x in sorted(order)] == ["2", "1", "0", "floor"]
    assert {".01", ".21", ".99", "share", "layer", "head", "m"} <= set(said)


def test_pictures_are_coloured_by_the_square_root_with_the_first_row_at_the_top():
    pixels = png_pixels(charts.picture(np.array([[0.0, 1.0], [0.25, np.nan]])))
    assert pixels[0].tolist() == [[68, 1, 84, 255], [253, 231, 37, 255]]
    assert pixels[1].tolist() == [[33, 145, 140, 255], [0, 0, 0, 0]]  # the middle of viridis


def test_an_arc_is_above_those_that_it_contains():
    edges = [(0, 1), (0, 3), (1, 2), (1, 3)]
    assert charts.heights(edges) == {(0, 1): 1, (1, 2): 1, (1, 3): 2, (0, 3): 3}


def test_a_tree_has_gold_edges_above_and_found_ones_below():
    edges = pd.DataFrame(
        [(-1, 1, "gold", False), (0, 1, "gold", False), (1, 2, "gold, of punctuation", False),
         (0, 1, "predicted", True), (0, 2, "wrong", True)],
        columns=["first", "last", "kind", "below"],
    )  # fmt: skip
    chart = charts.arcs(("She", "sleeps", "."), edges, PAPER, title="One")
    up, down = (
        {row["kind"] for row in data_of(chart) if "kind" in row and sign * row["y"] > 0}
        for sign in (1, -1)
    )
    assert (up, down) == ({"gold", "gold, of punctuation"}, {"predicted", "wrong"})
    assert {"She", "sleeps", "One", *up, *down} <= set(texts(svg(chart)))
    apexes = {
        edge: max(abs(row["y"]) for row in data_of(chart) if row.get("edge") == edge)
        for edge in range(5)
    }
    assert apexes[0] > apexes[1] == apexes[2] == apexes[3] < apexes[4]


@pytest.mark.parametrize(("inches", "names"), [*itertools.product((3.03, 6.3, 12), (1, 3))])
def test_the_whole_is_about_as_wide_as_the_look(inches, names):
    style = Style(inches * INCH)
    curves = pd.concat([CURVES.assign(panel=f"task {i}") for i in range(names)])
    cells = pd.concat([CELLS.assign(panel=f"model {i}") for i in range(names)])
    for chart in (
        charts.lines(curves, style, y="accuracy, %"),
        charts.heat_map(cells, style, down="layer", across="head", legend_title="share"),
    ):
        assert width_of(svg(chart, style)) == pytest.approx(inches * INCH, rel=0.1)


HOSTILE = [
    '"+alert(1)+"\\"+alert(1)+\\"{{alert(1)}}',
    "datum['x'];alert(1)</text><script>alert(1)</script>\x1b[31malert\x1b[0m",
    "a.b[0]:Q",
]


@pytest.mark.parametrize(("name", "style"), [(HOSTILE[0], PAPER), *((x, PAGE) for x in HOSTILE)])
def test_what_users_have_named_is_no_expression_and_is_escaped(name, style):
    curves = CURVES.assign(
        panel=name, line=name, model=CURVES["model"].where(CURVES["x"] < 0, name)
    )
    cells = CELLS.assign(panel=name, row=name, text=name)
    bars = CURVES.rename(columns={"line": "name"}).assign(name=name, model=name, kind=name)
    edges = pd.DataFrame([(-1, 0, "gold", False)], columns=["first", "last", "kind", "below"])
    maps = cells.assign(kind=name, url=charts.picture(np.zeros((2, 2))))
    more = {"down": "layer", "across": "head", "title": name}
    for chart in (
        charts.lines(curves, style, y=name, title=name),
        charts.lines(pd.concat([curves, curves.assign(panel="b")]), style, by="line"),
        charts.heat_map(cells, style, legend_title=name, **more),
        charts.points(bars, style, across="layer", title=name, longest=3),
        charts.pictures(maps, style, kinds={name: name}, **more),
        charts.arcs((name,), edges, style, title=name),
    ):
        altair.Chart.from_dict(chart)
        compiled = vl_convert.vegalite_to_vega({**chart, "config": style.config})
        assert not [x for x in expressions(compiled) if "alert" in x]
        drawn = svg(chart, style)
        assert "<script" not in drawn
        assert "\x1b" not in drawn


def test_letters_that_the_font_lacks_are_drawn():
    scripts = CURVES[:6].replace({"m": "Ελληνικά", "random:m": "русский עברית"})
    assert {"Ελληνικά", "русский עברית"} <= set(texts(svg(charts.lines(scripts, PAPER))))


def test_charts_without_a_number_are_drawn_empty():
    nothing = {"value": None, "low": None, "high": None}
    bars = CURVES.rename(columns={"line": "name"}).assign(kind="k", text="undefined", **nothing)
    for diverging in (False, True):
        cells = CELLS.assign(value=None, text="–")
        more = {"down": "layer", "across": "head", "legend_title": "share", "diverging": diverging}
        assert "–" in texts(svg(charts.heat_map(cells, PAPER, **more)))
    assert "undefined" in texts(svg(charts.points(bars, PAPER, across="layer", longest=3)))
    assert "layer" in texts(svg(charts.lines(CURVES.assign(**nothing), PAPER)))


def test_names_have_distinct_colours():
    assert distinct_colours("abc") == dict(zip("abc", COLOURS, strict=False))
    many = distinct_colours("abcdefghij")
    assert len(set(many.values())) == 10
    assert many["a"] == css(0.0) == "#440154"  # viridis
    assert css(1.0) == "#fde725"
