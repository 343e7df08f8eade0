"""What is drawn of charts: curves, heat maps and trees, as matplotlib has it."""

from itertools import pairwise

import numpy as np
import pytest
from PIL import Image

from probes.records.charts import Grid, Panel, PredictedTree
from probes.records.curves import Curves, Point
from probes.rendering.figures import charts, tree
from probes.rendering.figures.style import COLUMN, WIDE


def panels(figure):
    return [axes for axes in figure.axes if axes.get_visible() and axes.get_xlabel()]


def grid(values, **more):
    rows = tuple(f"r{i}" for i in range(len(values)))
    columns = tuple(f"c{i}" for i in range(len(values[0])))
    panel = Panel(rows, columns, tuple(map(tuple, values)))
    return Grid("g", "Title", "", "down", "across", {"m": panel}, **more)


def test_a_grid_has_its_numbers_in_its_cells_and_its_first_row_at_the_bottom(drawn):
    found = drawn(charts, grid([[1.0, 0.25], [None, -0.5]], low=-1.0, high=1.0))
    (axes,) = panels(found)
    assert axes.get_title() == "m"
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("across", "down")
    texts = {text.get_position(): text.get_text() for text in axes.texts}
    assert texts == {(0, 0): "1.00", (1, 0): ".25", (0, 1): "", (1, 1): "-.50"}
    assert axes.get_ylim() == (-0.5, 1.5)
    (image,) = axes.images
    assert image.get_clim() == (-1.0, 1.0)
    assert np.ma.filled(image.get_array(), 9.0).tolist() == [[1.0, 0.25], [9.0, -0.5]]


def test_numbers_can_be_read_on_their_colours(drawn):
    (axes,) = panels(drawn(charts, grid([[0.0, 1.0]])))
    assert [text.get_color() for text in axes.texts] == ["white", "black"]


def test_panels_share_their_colours_and_may_be_of_different_sizes(drawn):
    both = grid([[0.0, 0.5]])
    both.panels["n"] = Panel(("0",), ("0",), ((2.0,),))
    found = drawn(charts, both, WIDE)
    assert [axes.images[0].get_clim() for axes in panels(found)] == [(0.0, 2.0)] * 2
    assert [axes.get_title() for axes in panels(found)] == ["m", "n"]


def test_numbers_that_do_not_fit_are_not_written(drawn):
    values = np.linspace(0, 1, 40 * 40).reshape(40, 40)
    (axes,) = panels(drawn(charts, grid(values.tolist())))
    assert not axes.texts
    assert len(axes.get_xticks()) < 40


def curves(**models):
    return Curves("c", "C", "", "share", percent=True, models=models)


def test_one_model_has_its_lines_in_one_panel_with_their_bands(drawn):
    points = [
        Point(0, 0.5, (0.4, 0.6), "a"),
        Point(1, 0.7, (0.6, 0.8), "a"),
        Point(1, 0.2, None, "b"),
    ]
    found = drawn(charts, curves(m=points))
    (axes,) = panels(found)
    assert [line.get_xydata().tolist() for line in axes.lines] == [
        [[0, 50], [1, 70]],
        [[1, 20]],
    ]
    band = axes.collections[0].get_paths()[0].vertices
    assert {tuple(x) for x in band.round(6).tolist()} >= {(0, 40), (0, 60), (1, 60), (1, 80)}
    (legend,) = found.legends
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b"]


def test_of_several_models_each_line_has_a_panel(drawn):
    points = [Point(0, 0.5, None, "a"), Point(0, 0.1, None, "b")]
    found = drawn(charts, curves(m=points, n=points[:1]))
    assert [axes.get_title() for axes in panels(found)] == ["a", "b"]
    assert [len(axes.lines) for axes in panels(found)] == [2, 2]
    (legend,) = found.legends
    assert [text.get_text() for text in legend.get_texts()] == ["m", "n"]


def test_an_axis_of_ranks_is_logarithmic_and_names_each(drawn):
    found = Curves("c", "C", "", "UUAS", what="rank", log=True)
    found.models["m"] = [Point(rank, 0.5) for rank in (1, 2, 4, 64)]
    (axes,) = panels(drawn(charts, found))
    assert (axes.get_xscale(), axes.get_xlabel()) == ("log", "rank")
    assert axes.get_xticks().tolist() == [1, 2, 4, 64]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["1", "2", "4", "64"]


def test_levels_are_lines_if_they_are_near_and_named_if_they_are_far(drawn):
    found = curves(m=[Point(0, 0.5), Point(1, 0.6)])
    found.levels.update(near=0.55, far=0.05)
    (axes,) = panels(drawn(charts, found))
    (line,) = [line for line in axes.lines if line.get_linestyle() == "--"]
    assert list(line.get_ydata()) == pytest.approx([55, 55])
    assert [text.get_text() for text in axes.texts] == ["near", "↓ far 5.00"]


PAIR = PredictedTree("m", ("The", "dog", "sees", "it", "."), (1, 2, -1, 2, 2), (1, 3, -1, 2, -2))
"""The edges of "dog" is wrong, and the full stop is left out."""


def test_edges_of_a_predicted_tree():
    assert PAIR.gold_edges == {(0, 1), (1, 2), (2, 3)}
    assert PAIR.predicted_edges == {(0, 1), (1, 3), (2, 3)}


def test_a_tree_has_gold_edges_above_and_predicted_ones_below(drawn):
    (axes,) = drawn(tree, PAIR).axes
    place = {text.get_text(): text.get_position()[0] for text in axes.texts}
    order = sorted(place, key=place.get)
    assert order == list(PAIR.words)

    def ends(arc):
        x, half = arc.center[0], arc.width / 2
        return tuple(
            order[int(np.argmin([abs(place[w] - e) for w in order]))] for e in (x - half, x + half)
        )

    arcs = [
        (ends(arc), arc.center[1] > 0, arc.get_edgecolor(), arc.get_linestyle())
        for arc in axes.patches
    ]
    above = {edge: colour for edge, is_above, colour, _ in arcs if is_above}
    below = {edge: style for edge, is_above, _, style in arcs if not is_above}
    assert above.keys() == {("The", "dog"), ("dog", "sees"), ("sees", "it"), ("sees", ".")}
    assert [edge for edge, colour in above.items() if colour != (0, 0, 0, 1)] == [("sees", ".")]
    assert below.keys() == {("The", "dog"), ("dog", "it"), ("sees", "it")}
    assert [edge for edge, style in below.items() if style != "-"] == [("dog", "it")]
    assert axes.get_title() == "m: 2 of 3 edges"


@pytest.mark.parametrize("n", [3, 40])
def test_words_do_not_overlap_and_stay_in_the_figure(drawn, n):
    words = tuple(f"word{i}" for i in range(n))
    found = drawn(tree, PredictedTree("m", words, (-1, *[0] * (n - 1)), (-1, *range(n - 1))))
    (axes,) = found.axes
    boxes = [text.get_window_extent() for text in axes.texts]
    assert all(a.x1 <= b.x0 for a, b in pairwise(boxes))
    assert boxes[0].x0 >= 0
    assert boxes[-1].x1 <= found.bbox.x1


def test_an_arc_is_above_those_that_it_contains():
    assert tree._heights({(0, 3), (0, 1), (2, 3), (1, 3), (3, 4)}) == {
        (0, 1): 1,
        (2, 3): 1,
        (3, 4): 1,
        (1, 3): 2,
        (0, 3): 3,
    }


def test_files_have_a_columns_width(tmp_path):
    for chart in (grid([[1.0]]), curves(m=[Point(0, 0.5)])):
        charts.draw(tmp_path / "x.png", chart, COLUMN)
        assert Image.open(tmp_path / "x.png").width == pytest.approx(300 * COLUMN, abs=2)
