"""What is drawn of galleries and scatters, as Vega has it."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scenes import png_pixels

from probes.records.charts import Gallery, GalleryPanel, Picture
from probes.rendering.drawing.grids import of_gallery, picture_url
from probes.rendering.drawing.style import text_width
from probes.rendering.palette import COLOURS, shade

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
