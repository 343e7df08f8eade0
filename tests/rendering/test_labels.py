"""Which points have room for their text; and colours by name."""

import numpy as np
import pytest

from probes.records.scatter import ScatterPoint
from probes.rendering.palette import COLOURS, css, distinct
from probes.rendering.point_labels import LETTER, Box, plane, sides


def test_the_plane_is_a_square_with_a_margin():
    found = plane([ScatterPoint(0, 1), ScatterPoint(10, 3)])
    assert found == pytest.approx((-0.8, -3.8, 10.8, 7.8))
    assert plane([ScatterPoint(2, 5)] * 3) == pytest.approx((1.42, 4.42, 2.58, 5.58))


def test_a_text_is_on_the_first_side_that_is_free():
    # Of 1,160 points, 80 are margin; markers are 20 high, texts 12 high and 5.8 wide a letter.
    far = [ScatterPoint(0, 0), ScatterPoint(1000, 1000)]

    def of_point(x, *others, text="abc"):
        points = [ScatterPoint(x, 500, text), *(ScatterPoint(*at) for at in others), *far]
        return sides(points, 1160, 20, 10)[0]

    # The text is 17.4 wide, between 10 and 27.4 beside the point's centre.
    assert of_point(500) == "right"
    assert of_point(500, (537.3, 500)) == "left"
    assert of_point(500, (537.5, 500)) == "right"
    assert of_point(500, (530, 500), (470, 500)) == "top"
    assert of_point(500, (530, 500), (470, 500), (500, 525)) == "bottom"
    assert of_point(500, (530, 500), (470, 500), (500, 525), (500, 475)) == ""
    assert of_point(1000, text="a" * 12) == "right"  # 80 - 10 = 70 of the margin, of which 69.6
    assert of_point(1000, text="a" * 13) == "left"
    assert of_point(500, text="") == ""


def test_of_many_texts_none_lies_on_a_marker_or_another_text():
    rng = np.random.default_rng(0)
    points = [
        ScatterPoint(x, y, "10-12"[: 1 + i % 5])
        for i, (x, y) in enumerate(rng.normal(size=(150, 2)))
    ]
    extent, marker, letter = 240, 3.5, 4.5
    found = sides(points, extent, marker, letter)
    square = plane(points)
    scale = extent / (square.right - square.left)
    markers, texts = [], []
    for point, side in zip(points, found, strict=True):
        x, y = (point.x - square.left) * scale, (point.y - square.bottom) * scale
        r, w, h = marker / 2, LETTER * letter * len(point.text), 1.2 * letter
        markers.append(Box(x - r, y - r, x + r, y + r))
        low, left = y - h / 2, x - w / 2
        start = {"right": (x + r, low), "left": (x - r - w, low), "top": (left, y + r)}
        if side:
            at = start.get(side, (left, y - r - h))
            texts.append(Box(*at, at[0] + w, at[1] + h))
    assert 75 < len(texts) < 150
    for place, text in enumerate(texts):
        assert not any(text.meets(other) for other in (*markers, *texts[:place]))
        assert text.left >= 0
        assert text.right <= extent


def test_names_have_distinct_colours():
    assert distinct("abc") == dict(zip("abc", COLOURS, strict=False))
    many = distinct("abcdefghij")
    assert len(set(many.values())) == 10
    assert many["a"] == css(0.0) == "#440154"  # viridis
    assert css(1.0) == "#fde725"
