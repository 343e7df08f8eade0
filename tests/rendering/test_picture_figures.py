"""What is drawn of galleries and scatters, as matplotlib has it."""

import math
from itertools import pairwise

import numpy as np
import pytest
from PIL import Image

from probes.records.gallery import Gallery, GalleryPanel, Picture
from probes.records.scatter import Scatter, ScatterPoint
from probes.rendering.figures import charts, gallery, scatter
from probes.rendering.figures.style import COLUMN, WIDE
from probes.rendering.palette import COLOURS

WIDTHS = [COLUMN, WIDE]


def of(pictures, **more):
    rows = tuple(f"l{i}" for i in range(len(pictures)))
    columns = tuple(f"h{i}" for i in range(len(pictures[0])))
    panel = GalleryPanel(rows, columns, tuple(map(tuple, pictures)))
    return Gallery("g", "Maps", "", "layer", "head", {"m": panel}, **more)


def planes(figure):
    return [axes for axes in figure.axes if axes.get_visible() and axes.get_title()]


def colour(rgba):
    return "#{:02x}{:02x}{:02x}".format(*(round(255 * x) for x in rgba[:3]))


DIAGONAL = Picture(((1.0, 0.0), (None, 0.25)), "D", "diagonal")


def test_pictures_are_in_their_places_with_their_first_row_at_the_top(drawn):
    found = drawn(gallery, of([[None, DIAGONAL], [Picture(((0.5,),)), None]]))
    (axes,) = planes(found)
    assert axes.get_ylim() == (-0.5, 1.5)  # the first row of pictures is at the bottom
    assert [t.get_text() for t in axes.get_yticklabels()] == ["l0", "l1"]
    assert [t.get_text() for t in axes.get_xticklabels()] == ["h0", "h1"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("head", "layer")
    first, second = axes.images
    assert np.mean(np.reshape(first.get_extent(), (2, 2)), axis=1).tolist() == [1, 0]
    assert np.mean(np.reshape(second.get_extent(), (2, 2)), axis=1).tolist() == [0, 1]
    assert first.origin == "upper"
    assert np.ma.filled(first.get_array(), 9.0).tolist() == [[1.0, 0.0], [9.0, 0.25]]
    assert second.get_array().tolist() == [[0.5]]


def test_all_pictures_share_a_square_root_scale_that_is_named(drawn):
    found = drawn(gallery, of([[DIAGONAL, Picture(((0.5,),))]], high=4.0))
    images = planes(found)[0].images
    for image in images:
        # The colour of a value is at the square root of its place between 0 and 4.
        assert image.norm([0.0, 0.25, 1.0, 4.0]).tolist() == pytest.approx([0, 0.25, 0.5, 1])
    assert "square-root scale" in [axes.get_xlabel() for axes in found.axes]


def test_frames_surround_pictures_in_the_colours_of_the_key(drawn):
    given = [[DIAGONAL, Picture(((0.5,),), "B", "block"), Picture(((0.5,),))]]
    found = drawn(gallery, of(given, order=("vertical", "diagonal")))
    (axes,) = planes(found)
    assert [colour(frame.get_edgecolor()) for frame in axes.patches] == list(COLOURS[1:3])
    assert [text.get_text() for text in axes.texts] == ["D", "B"]
    for frame, image in zip(axes.patches, axes.images, strict=False):
        left, right, bottom, top = image.get_extent()
        x, y = frame.get_xy()
        assert x < left < right < x + frame.get_width()
        assert y < bottom < top < y + frame.get_height()
    (legend,) = found.legends
    names = [text.get_text() for text in legend.get_texts()]
    assert names == ["vertical", "diagonal (D)", "block (B)"]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(("layers", "heads"), [(6, 12), (24, 16)])
def test_marks_and_names_can_be_read(drawn, width, layers, heads):
    picture = Picture(tuple(map(tuple, np.eye(16).tolist())), "VD", "vertical and diagonal")
    found = drawn(gallery, of([[picture] * heads] * layers), width)
    (axes,) = planes(found)
    assert len(axes.images) == layers * heads
    edges = [frame.get_window_extent() for frame in axes.patches]
    side = edges[0].width / 300
    assert side > 0.15  # inches
    for text, edge in zip(axes.texts, edges, strict=True):
        box = text.get_window_extent()
        assert text.get_size() >= 4
        assert edge.x0 < box.x0 < box.x1 < edge.x1
        assert edge.y0 < box.y0 < box.y1 < edge.y1
    names = [text.get_window_extent() for text in axes.get_xticklabels()]
    assert all(a.x1 < b.x0 for a, b in pairwise(names))
    title, label = found._suptitle.get_window_extent(), axes.title.get_window_extent()
    assert title.y0 >= label.y1


POINTS = (
    ScatterPoint(0.0, 0.0, "1-1", "vertical", 1),
    ScatterPoint(3.0, 1.0, "1-2", "other", 1),
    ScatterPoint(1.0, 4.0, "2-1", "vertical", 2),
)


def test_points_are_in_their_groups_with_their_texts_beside_them(drawn):
    plain = tuple(point._replace(level=None) for point in POINTS)
    found = drawn(scatter, Scatter("s", "Heads", "", {"m": plain}))
    (axes,) = planes(found)
    groups = {each.get_label(): each for each in axes.collections}
    assert groups["vertical"].get_offsets().tolist() == [[0, 0], [1, 4]]
    assert groups["other"].get_offsets().tolist() == [[3, 1]]
    colours = [colour(each.get_facecolor()[0]) for each in groups.values()]
    assert colours == list(COLOURS[:2])
    assert {text.get_text(): text.xy for text in axes.texts} == {p.text: (p.x, p.y) for p in POINTS}
    assert axes.get_aspect() == 1
    assert not len(axes.get_xticks())
    assert not len(axes.get_yticks())
    (legend,) = found.legends
    assert [text.get_text() for text in legend.get_texts()] == ["vertical", "other"]


def test_levels_are_colours_of_one_scale(drawn):
    both = {"m": POINTS, "n": (ScatterPoint(0, 0, "", "other", 5), ScatterPoint(1, 1))}
    found = drawn(scatter, Scatter("s", "Heads", "", both, scale="layer"), WIDE)
    first, second = planes(found)
    levels = [each.get_array().tolist() for each in first.collections]
    assert levels == [[1, 2], [1]]
    leveled, plain = second.collections
    assert {each.get_clim() for each in (*first.collections, leveled)} == {(1, 5)}
    assert plain.get_array() is None
    assert "layer" in [axes.get_xlabel() for axes in found.axes]


@pytest.mark.parametrize("width", WIDTHS)
def test_texts_of_many_points_overlap_neither_markers_nor_each_other(drawn, width):
    rng = np.random.default_rng(1)
    points = tuple(
        ScatterPoint(x, y, f"{i // 12 + 1}-{i % 12 + 1}", "head")
        for i, (x, y) in enumerate(rng.normal(size=(144, 2)).tolist())
    )
    (axes,) = planes(drawn(scatter, Scatter("s", "Heads", "", {"m": points}), width))
    # The extent of an annotation reaches to its point; that of its letters does not.
    boxes = [super(type(text), text).get_window_extent() for text in axes.texts]
    assert len(boxes) > 60
    for place, box in enumerate(boxes):
        assert not any(shared(box, other) > 0.1 for other in boxes[:place])
    centres = axes.transData.transform([point[:2] for point in points])
    inside = [any(b.x0 < x < b.x1 and b.y0 < y < b.y1 for b in boxes) for x, y in centres.tolist()]
    assert not any(inside)


def shared(a, b):
    """The share of the first rectangle that lies in the second."""
    width = max(0, min(a.x1, b.x1) - max(a.x0, b.x0))
    height = max(0, min(a.y1, b.y1) - max(a.y0, b.y0))
    return width * height / (a.width * a.height)


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_every_chart_is_drawn_by_its_kind(tmp_path, ending):
    path = tmp_path / f"x.{ending}"
    for chart in (of([[DIAGONAL]]), Scatter("s", "S", "", {"m": POINTS})):
        charts.draw(path, chart, COLUMN)
        assert path.stat().st_size > 1000
        if ending == "png":
            width, height = Image.open(path).size
            assert width == pytest.approx(300 * COLUMN, abs=2)
            assert math.isfinite(height)
