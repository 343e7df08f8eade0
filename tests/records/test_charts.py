"""Charts in plain types: ends of colour scales, groups, and parts that do not fit."""

from math import nan

import pytest

from probes.records.charts import (
    Card,
    Curves,
    Gallery,
    GalleryPanel,
    Grid,
    Panel,
    Picture,
    models_of,
)


def gallery(*pictures, **more):
    columns = tuple(map(str, range(len(pictures))))
    return Gallery(
        "g", "G", "", "d", "a", {"m": GalleryPanel(("1",), columns, (pictures,))}, **more
    )


def grid(values, **more):
    return Grid("g", "G", "", "d", "a", {"m": Panel(("1",), ("1", "2"), values)}, **more)


def test_the_ends_of_a_scale_are_those_of_the_numbers_unless_they_are_given():
    pictures = Picture(((0.25, None), (nan, 0.5))), None, Picture(((0.125,),))
    assert gallery(*pictures).span == (0.125, 0.5)
    assert gallery(*pictures, low=0.0).span == (0.0, 0.5)
    assert gallery(*pictures, high=1.0).span == (0.125, 1.0)
    assert gallery(None).span == (0.0, 1.0)
    assert grid(((3.0, None),)).span == (3.0, 3.0)


def test_the_key_of_a_gallery_has_the_marks_of_each_group():
    values = ((1.0,),)
    found = gallery(
        Picture(values, "V", "vertical"),
        Picture(values, "", "other"),
        Picture(values, "W", "vertical"),
        Picture(values, "X"),
        order=("block", "other"),
    )
    assert found.key == {"block": "", "other": "", "vertical": "V W"}


def test_models_of_charts():
    assert models_of(Curves("c", "C", "", "", models={"m": []})) == ["m"]
    assert models_of(grid(((1.0, 2.0),))) == models_of(gallery(None)) == ["m"]


ONE = Card("one")
RAGGED = Picture(((1.0,), (1.0, 2.0)))


@pytest.mark.parametrize(
    ("chart", "fault"),
    [
        (grid(((1.0, 2.0),)), ""),
        (grid(((1.0,),)), "a panel whose values are not as many"),
        (grid(((1.0, 2.0),), cards={"m": ((ONE, None),)}), ""),
        (grid(((1.0, 2.0),), cards={"m": ((ONE,),)}), "cards of m that are not in the shape"),
        (grid(((1.0, 2.0),), cards={"n": ((ONE, None),)}), "cards of n that are not in the shape"),
        (
            grid(((1.0, 2.0),), cards={"m": ((Card("x", picture=RAGGED), None),)}),
            "a card whose picture has no values, or rows of different lengths",
        ),
        (gallery(Picture(((1.0, 2.0), (3.0, 4.0))), None), ""),
        (gallery(), "a panel whose pictures are none"),
        (gallery(RAGGED), "a picture that has no values, or rows of different lengths"),
        (gallery(Picture(())), "a picture that has no values"),
        (gallery(Picture(((),))), "a picture that has no values"),
    ],
)
def test_what_does_not_fit_is_said(chart, fault):
    assert chart.fault.startswith(fault)
    assert bool(chart.fault) == bool(fault)
