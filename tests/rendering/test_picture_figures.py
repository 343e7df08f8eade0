"""What is drawn of galleries and scatters, as Vega has it."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scenes import png_pixels

from probes.records.gallery import Gallery, GalleryPanel, Picture
from probes.records.scatter import Scatter, ScatterPoint
from probes.rendering.drawing.galleries import of_gallery, picture_url
from probes.rendering.drawing.planes import of_scatter
from probes.rendering.palette import COLOURS, shade
from probes.rendering.text_width import text_width

WIDTHS = [3.3, 6.8]


def of(pictures, **more):
    rows = tuple(f"l{i}" for i in range(len(pictures)))
    columns = tuple(f"h{i}" for i in range(len(pictures[0])))
    panel = GalleryPanel(rows, columns, tuple(map(tuple, pictures)))
    return Gallery("g", "Maps", "", "layer", "head", {"m": panel}, **more)


DIAGONAL = Picture(((1.0, 0.0), (None, 0.25)), "D", "diagonal")


def middle(image):
    return image.x + image.item["width"] / 2, image.y + image.item["height"] / 2


def test_the_pixels_of_a_picture_are_its_numbers_by_their_square_roots():
    found = png_pixels(picture_url(DIAGONAL, 0.0, 4.0))
    expected = {(0, 0): 0.5, (0, 1): 0.0, (1, 1): 0.25}
    for place, share in expected.items():
        assert tuple(found[place]) == (*shade(share), 255)
    assert found[1, 0, 3] == 0


def test_pictures_are_in_their_places_with_their_first_row_at_the_top(drawn):
    scene = drawn(of_gallery, of([[None, DIAGONAL], [Picture(((0.5,),)), None]]))
    at = {mark.text: (mark.x, mark.y) for mark in scene.of("text", "axis-label")}
    assert at["l0"][1] > at["l1"][1]  # the first row of pictures is at the bottom
    assert at["h0"][0] < at["h1"][0]
    assert scene.texts("axis-title") == ["head", "layer"]
    first, second = scene.of("image")
    for image, column, row in ((first, "h1", "l0"), (second, "h0", "l1")):
        assert middle(image) == pytest.approx((at[column][0], at[row][1]), abs=1)
        assert image.item["smooth"] is False
    assert png_pixels(first.item["url"]).shape == (2, 2, 4)
    assert png_pixels(second.item["url"]).shape == (1, 1, 4)


def test_all_pictures_share_a_square_root_scale_that_is_named(drawn):
    scene = drawn(of_gallery, of([[DIAGONAL, Picture(((0.5,),))]], high=4.0))
    assert "square-root scale" in scene.texts("legend-title")
    first, second = (png_pixels(mark.item["url"]) for mark in scene.of("image"))
    assert tuple(first[0, 0, :3]) == shade(0.5)
    assert tuple(second[0, 0, :3]) == shade(math.sqrt(0.125))


def test_frames_surround_pictures_in_the_colours_of_the_key(drawn):
    given = [[DIAGONAL, Picture(((0.5,),), "B", "block"), Picture(((0.5,),))]]
    scene = drawn(of_gallery, of(given, order=("vertical", "diagonal")))
    frames = [m for m in scene.of("symbol") if m.item.get("shape") == "square"]
    assert [m.item["stroke"] for m in frames] == [*COLOURS[1:3], "#0000"]
    for frame, image in zip(frames, scene.of("image"), strict=True):
        assert (frame.x, frame.y) == pytest.approx(middle(image))
        inner = math.sqrt(frame.item["size"]) - frame.item["strokeWidth"]
        assert inner == pytest.approx(image.item["width"])
    names = scene.texts()
    assert [x for x in names if x in ("D", "B")] == ["D", "B"] * 2  # a dark line around white
    assert [x for x in names if "(" in x or x == "vertical"] == [
        "vertical",
        "diagonal (D)",
        "block (B)",
    ]


@pytest.mark.parametrize("inches", WIDTHS)
@pytest.mark.parametrize(("layers", "heads"), [(6, 12), (24, 16)])
def test_marks_and_names_can_be_read(drawn, inches, layers, heads):
    picture = Picture(tuple(map(tuple, np.eye(16).tolist())), "VD", "vertical and diagonal")
    scene = drawn(of_gallery, of([[picture] * heads] * layers), inches)
    images = scene.of("image")
    assert len(images) == layers * heads
    side = images[0].item["width"]
    assert side > 0.14 * 72
    marks = [m for m in scene.of("text") if m.text == "VD" and m.item["fill"] == "white"]
    for mark, image in zip(marks, images, strict=True):
        width = text_width("VD", mark.item["fontSize"])
        assert mark.item["fontSize"] >= 3.5
        assert image.x < mark.x - width < mark.x < image.x + side
        assert image.y < mark.y < image.y + side / 2
    names = [m for m in scene.of("text", "axis-label") if m.text.startswith("h")]
    assert len(names) == heads
    for a, b in pairwise(sorted(names, key=lambda m: m.x)):
        # Beside each other, or turned.
        needed = text_width(a.text, a.item["fontSize"])
        assert b.x - a.x > (needed if not a.item.get("angle") else a.item["fontSize"])


POINTS = (
    ScatterPoint(0.0, 0.0, "1-1", "vertical", 1),
    ScatterPoint(3.0, 1.0, "1-2", "other", 1),
    ScatterPoint(1.0, 4.0, "2-1", "vertical", 2),
)


def placed(scene):
    """Points of the planes, without the key."""
    return [m for m in scene.of("symbol") if m.item["size"] < 12]


def test_points_are_in_their_groups_with_their_texts_beside_them(drawn):
    plain = tuple(point._replace(level=None) for point in POINTS)
    scene = drawn(of_scatter, Scatter("s", "Heads", "", {"m": plain}))
    points = placed(scene)
    assert [m.item["fill"] for m in points] == [COLOURS[0], COLOURS[1], COLOURS[0]]
    assert [m.item.get("shape", "circle") for m in points] == ["circle", "square", "circle"]
    (a, b, c) = points
    # Both axes have one scale, and that of y goes up.
    across, up = (b.x - a.x) / 3, (a.y - c.y) / 4
    assert across == pytest.approx(up, rel=1e-3)
    assert a.y - b.y == pytest.approx(up, rel=1e-3)
    texts = {m.text: m for m in scene.of("text")}
    for point, mark in zip(POINTS, points, strict=True):
        assert abs(texts[point.text].x - mark.x) < 20
        assert texts[point.text].y == pytest.approx(mark.y, abs=6)
    assert {"vertical", "other"} <= texts.keys()
    assert not scene.texts("axis-label")


def test_levels_are_colours_of_one_scale(drawn):
    both = {"m": POINTS, "n": (ScatterPoint(0, 0, "", "other", 5), ScatterPoint(1, 1))}
    scene = drawn(of_scatter, Scatter("s", "Heads", "", both, scale="layer"), 6.8)
    fills = [m.item["fill"] for m in placed(scene)]
    assert fills[0] == fills[1] == "rgb(68, 1, 84)"  # the least of both planes
    assert fills[3] == "rgb(253, 231, 37)"
    assert fills[2] not in (fills[0], fills[3])
    assert fills[4] == COLOURS[2]  # without a level
    assert scene.texts("legend-title") == ["layer"]


@pytest.mark.parametrize("inches", WIDTHS)
def test_texts_of_many_points_overlap_neither_markers_nor_each_other(drawn, inches):
    rng = np.random.default_rng(1)
    points = tuple(
        ScatterPoint(x, y, f"{i // 12 + 1}-{i % 12 + 1}", "head")
        for i, (x, y) in enumerate(rng.normal(size=(144, 2)).tolist())
    )
    scene = drawn(of_scatter, Scatter("s", "Heads", "", {"m": points}), inches)
    boxes = [box(mark) for mark in scene.of("text")]
    assert len(boxes) > 40
    for place, one in enumerate(boxes):
        assert not any(meet(one, other) for other in boxes[:place])
    for mark in placed(scene):
        assert not any(x0 < mark.x < x1 and y0 < mark.y < y1 for x0, y0, x1, y1 in boxes)


def box(mark):
    """Left, top, right and bottom of letters, which are a little narrower than is reckoned."""
    size = mark.item["fontSize"]
    width, height = 0.5 * size * len(mark.text), 0.7 * size
    x, y = mark.x + mark.item.get("dx", 0), mark.y + mark.item.get("dy", 0)
    left = {"left": 0, "center": -width / 2, "right": -width}[mark.item.get("align", "left")]
    top = {"top": 0, "middle": -height / 2, "bottom": -height}[mark.item["baseline"]]
    return x + left, y + top, x + left + width, y + top + height


def meet(a, b):
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
