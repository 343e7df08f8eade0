"""What is drawn of charts: curves, heat maps and trees, as Vega has it."""

from itertools import pairwise

import numpy as np
import pytest

from probes.records.charts import Curves, Grid, Panel, Point, PredictedTree
from probes.rendering.drawing.arcs import heights, of_tree, width_of
from probes.rendering.drawing.grids import of_grid
from probes.rendering.drawing.lines import of_curves
from probes.rendering.drawing.style import INCH, Style, text_width, wrapped
from probes.rendering.palette import COLOURS, css


def grid(values, **more):
    rows = tuple(f"r{i}" for i in range(len(values)))
    columns = tuple(f"c{i}" for i in range(len(values[0])))
    panel = Panel(rows, columns, tuple(map(tuple, values)))
    return Grid("g", "Title", "", "down", "across", {"m": panel}, **more)


def named(scene, role="axis-label"):
    """Places of names, by name."""
    return {mark.text: (mark.x, mark.y) for mark in scene.of("text", role)}


def rgb(colour):
    """Of "rgb(1, 2, 3)" or "#010203"."""
    if colour.startswith("#"):
        return tuple(int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return tuple(int(x) for x in colour[4:-1].split(","))


def test_a_grid_has_its_numbers_in_its_cells_and_its_first_row_at_the_bottom(drawn):
    scene = drawn(of_grid, grid([[1.0, 0.25], [None, -0.5]], low=-1.0, high=1.0))
    assert scene.titles() == ["Title", "m"]
    assert scene.texts("axis-title") == ["across", "down"]
    names = named(scene)
    cells = {(mark.x, mark.y): mark for mark in scene.of("text")}
    at = {text.text: place for place, text in cells.items()}
    assert at.keys() == {"1.00", ".25", "-.50"}
    for text, column, row in (("1.00", "c0", "r0"), (".25", "c1", "r0"), ("-.50", "c1", "r1")):
        assert at[text] == pytest.approx((names[column][0], names[row][1]), abs=1)
    assert names["r0"][1] > names["r1"][1]
    # The colour of a value is at its place on the scale; there is none where there is no value.
    rects = {(r.x, r.y): rgb(r.item["fill"]) for r in scene.of("rect")}
    assert len(rects) == 3
    found = sorted(rects.values())
    expected = sorted(rgb(css(place)) for place in (1.0, 0.625, 0.25))
    for one, other in zip(found, expected, strict=True):
        assert one == pytest.approx(other, abs=3)
    assert "Title" in scene.texts("legend-title")


def test_numbers_can_be_read_on_their_colours(drawn):
    scene = drawn(of_grid, grid([[0.0, 1.0]]))
    assert [mark.item["fill"] for mark in scene.of("text")] == ["white", "black"]


def test_panels_share_their_colours_and_may_be_of_different_sizes(drawn):
    both = grid([[0.0, 0.5]])
    both.panels["n"] = Panel(("0",), ("0",), ((2.0,),))
    scene = drawn(of_grid, both, 6.8)
    assert scene.titles() == ["Title", "m", "n"]
    fills = [rgb(r.item["fill"]) for r in scene.of("rect")]
    for fill, place in zip(fills, (0.0, 0.25, 1.0), strict=True):
        assert fill == pytest.approx(rgb(css(place)), abs=3)
    assert len(scene.of("text", "legend-title")) == 1


def test_numbers_that_do_not_fit_are_not_written(drawn):
    values = np.linspace(0, 1, 40 * 40).reshape(40, 40)
    scene = drawn(of_grid, grid(values.tolist()))
    assert not scene.of("text")
    assert {"c0", "r0"} < named(scene).keys()
    assert len(named(scene)) < 80


def curves(**models):
    return Curves("c", "C", "", "share", percent=True, models=models)


def points_of(scene, colour):
    """Points of a colour as shares of the drawing's ticks: x and value."""
    ticks = {
        "x": {m.text: m.x for m in scene.of("text", "axis-label") if m.item["align"] == "center"},
        "y": {m.text: m.y for m in scene.of("text", "axis-label") if m.item["align"] == "right"},
    }

    def scale(known, place):
        (a, at_a), *_, (b, at_b) = sorted((float(k), v) for k, v in known.items())
        return a + (place - at_a) * (b - a) / (at_b - at_a)

    return [
        (scale(ticks["x"], m.x), scale(ticks["y"], m.y))
        for m in scene.of("symbol")
        if m.item.get("stroke") == colour and m.item["size"] < 12
    ]


def test_one_model_has_its_lines_in_one_panel_with_their_bands(drawn):
    points = [
        Point(0, 0.5, (0.4, 0.6), "a"),
        Point(1, 0.7, (0.6, 0.8), "a"),
        Point(1, 0.2, None, "b"),
    ]
    scene = drawn(of_curves, curves(m=points))
    # Positions of ticks are rounded to half a unit.
    first = sorted(points_of(scene, COLOURS[0]))
    assert np.array(first) == pytest.approx(np.array([[0, 50], [1, 70]]), abs=0.6)
    assert points_of(scene, COLOURS[1])[0] == pytest.approx((1, 20), abs=0.6)
    areas = [m.item for m in scene.of("area") if m.item.get("defined", True)]
    assert [area["fill"] for area in areas] == [COLOURS[0]] * 2
    # A band reaches as far above a point as below it.
    symbols = [m.item["y"] for m in scene.of("symbol") if m.item.get("stroke") == COLOURS[0]]
    for area, y in zip(areas, symbols, strict=False):
        assert area["y"] + area["height"] / 2 == pytest.approx(y, abs=0.01)
    assert [text for text in scene.texts() if text in "ab"] == ["a", "b"]
    assert scene.texts("axis-title") == ["layer", "share"]


def test_of_several_models_each_line_has_a_panel(drawn):
    points = [Point(0, 0.5, None, "a"), Point(0, 0.1, None, "b")]
    scene = drawn(of_curves, curves(m=points, n=points[:1]))
    assert scene.titles() == ["C", "a", "b"]
    assert scene.texts() == ["m", "n"]
    # Both panels have one scale.
    at = {(m.item["stroke"], round(m.y, 1)) for m in scene.of("symbol") if m.item["size"] < 12}
    assert len({y for _, y in at}) == 2


def test_random_twins_are_open_and_dotted_in_their_models_colour(drawn):
    points = [Point(0, 0.5), Point(1, 0.6)]
    scene = drawn(of_curves, curves(**{"m": points, "random:m": points[::-1]}))
    lines = {(m.item["stroke"], tuple(m.item.get("strokeDash", ()))) for m in scene.of("line")}
    assert lines == {(COLOURS[0], (1, 0)), (COLOURS[0], (1, 1.5))}
    fills = {m.item["fill"] for m in scene.of("symbol")}
    assert fills == {COLOURS[0], "white"}


def test_an_axis_of_ranks_is_logarithmic_and_names_each(drawn):
    found = Curves("c", "C", "", "UUAS", what="rank", log=True)
    found.models["m"] = [Point(rank, 0.5) for rank in (1, 2, 4, 64)]
    scene = drawn(of_curves, found)
    assert "rank" in scene.texts("axis-title")
    at = [m for m in scene.of("text", "axis-label") if m.item["align"] == "center"]
    assert [mark.text for mark in at] == ["1", "2", "4", "64"]
    first, *others = (mark.x for mark in at)
    assert [(x - first) / (others[0] - first) for x in others] == pytest.approx([1, 2, 6], abs=0.1)


def test_a_chart_with_panels_has_each_with_all_lines(drawn):
    points = [
        Point(x, value + x, None, line, panel)
        for panel, value in (("pos", 0.0), ("srl", 50.0))
        for line in ("importance", "random")
        for x in (10, 20)
    ]
    scene = drawn(of_curves, Curves("p", "Pruned", "", "drop", what="pruned", models={"m": points}))
    assert scene.titles() == ["Pruned", "pos", "srl"]
    assert scene.texts("axis-title").count("pruned") == 2
    assert len(scene.of("line")) == len(points)


def test_levels_are_lines_if_they_are_near_and_named_if_they_are_far(drawn):
    found = curves(m=[Point(0, 0.5), Point(1, 0.6)])
    found.levels.update(near=0.55, far=0.05)
    scene = drawn(of_curves, found)
    (line,) = (m for m in scene.of("rule") if m.item.get("strokeDash") == [3, 2])
    low, high = (m.y for m in scene.of("symbol") if m.item["size"] < 12)
    assert line.y == pytest.approx((low + high) / 2, abs=0.5)
    assert {"near", "↓ far 5.00"} <= set(scene.texts())


PAIR = PredictedTree("m", ("The", "dog", "sees", "it", "."), (1, 2, -1, 2, 2), (1, 3, -1, 2, -2))
"""The edges of "dog" is wrong, and the full stop is left out."""


def test_edges_of_a_predicted_tree():
    assert PAIR.gold_edges == {(0, 1), (1, 2), (2, 3)}
    assert PAIR.predicted_edges == {(0, 1), (1, 3), (2, 3)}


def edges(scene, words):
    """Ends, colour, dash, and whether it is above the words, of each line."""
    texts = [mark for mark in scene.of("text") if mark.text in words]
    assert [mark.text for mark in sorted(texts, key=lambda mark: mark.x)] == list(words)
    place = {mark.text: mark.x for mark in texts}
    base = texts[0].y
    found = []
    lines = {}
    for mark in scene.of("line"):
        lines.setdefault(mark.item["stroke"], []).append(mark)
    for colour, marks in lines.items():
        parts = [marks[i : i + 48] for i in range(0, len(marks) // 48 * 48, 48)]
        for part in parts:
            ends = [min(place, key=lambda w, x=m.x: abs(place[w] - x)) for m in (part[0], part[-1])]
            middle = part[24]
            found.append(
                (tuple(ends), colour, tuple(middle.item.get("strokeDash", ())), middle.y < base)
            )
    return found


def test_a_tree_has_gold_edges_above_and_predicted_ones_below(drawn):
    # Without lines to roots, which have other numbers of points.
    words = PAIR.words
    scene = drawn(of_tree, PredictedTree("m", words, (1, 2, 3, 2, 2), (1, 3, 3, 2, -2)))
    found = edges(scene, words)
    above = {edge: colour for edge, colour, _, is_above in found if is_above}
    below = {edge: (colour, dash) for edge, colour, dash, is_above in found if not is_above}
    assert above.keys() == {("The", "dog"), ("dog", "sees"), ("sees", "it"), ("sees", ".")}
    assert [edge for edge, colour in above.items() if colour != "black"] == [("sees", ".")]
    assert below == {
        ("The", "dog"): (COLOURS[0], (1, 0)),
        ("sees", "it"): (COLOURS[0], (1, 0)),
        ("dog", "it"): (COLOURS[1], (3, 2)),
    }
    assert scene.titles() == ["m: 2 of 3 edges"]
    assert {"gold", "predicted", "wrong"} <= set(scene.texts())


def test_roots_are_lines_from_outside(drawn):
    scene = drawn(of_tree, PAIR)
    at = {mark.text: mark.x for mark in scene.of("text")}["sees"]
    xs = [mark.x for mark in scene.of("line") if mark.x == pytest.approx(at, abs=0.1)]
    assert len(xs) >= 4


@pytest.mark.parametrize("n", [3, 40])
def test_words_do_not_overlap_and_stay_in_the_figure(drawn, n):
    words = tuple(f"word{i}" for i in range(n))
    tree = PredictedTree("m", words, (-1, *[0] * (n - 1)), (-1, *range(n - 1)))
    scene = drawn(of_tree, tree, width_of(tree, 3.3 * INCH) / INCH + 1)
    marks = [mark for mark in scene.of("text") if mark.text in words]
    boxes = [
        (mark.x - half, mark.x + half)
        for mark in marks
        if (half := text_width(mark.text, mark.item["fontSize"]) / 2)
    ]
    assert all(a[1] <= b[0] for a, b in pairwise(boxes))
    assert boxes[0][0] >= 0
    assert boxes[-1][1] <= scene.width
    assert marks[0].item["fontSize"] >= 4.5


def test_an_arc_is_above_those_that_it_contains():
    assert heights({(0, 3), (0, 1), (2, 3), (1, 3), (3, 4)}) == {
        (0, 1): 1,
        (2, 3): 1,
        (3, 4): 1,
        (1, 3): 2,
        (0, 3): 3,
    }


def test_without_a_title_there_is_one_less(drawn):
    assert drawn(of_grid, grid([[1.0]]), titled=False).titles() == ["m"]


def test_titles_are_in_lines_that_fit(drawn):
    long = "org/a-very-long-name-of-a-model-that-does-not-fit " * 3
    both = Grid("g", long, "", "", "", {long: Panel(("0",), ("0",), ((1.0,),))})
    style = Style()
    for mark in drawn(of_grid, both).of("text", "title-text"):
        widths = [text_width(line, mark.item["fontSize"]) for line in mark.item["text"]]
        assert len(widths) > 1
        assert max(widths) <= style.width


def test_lines_are_broken_between_words_and_else_within():
    assert wrapped("a bc def", text_width("a bc", 10), 10) == ["a bc", "def"]
    assert wrapped("abcdef", text_width("abc", 10), 10) == ["abc", "def"]
    assert wrapped("", 10, 10) == [""]
    assert text_width("漢字", 10) > text_width("ab", 10)


def test_rows_of_one_name_stay_apart(drawn):
    twice = Grid("g", "", "", "", "", {"m": Panel(("a", "a"), ("b",), ((0.25,), (0.75,)))})
    scene = drawn(of_grid, twice)
    assert sorted(mark.text for mark in scene.of("text")) == [".25", ".75"]
    assert len({mark.y for mark in scene.of("rect")}) == 2
