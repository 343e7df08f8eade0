"""Colours by name."""

from probes.tables.colours import COLOURS, css, distinct


def test_names_have_distinct_colours():
    assert distinct("abc") == dict(zip("abc", COLOURS, strict=False))
    many = distinct("abcdefghij")
    assert len(set(many.values())) == 10
    assert many["a"] == css(0.0) == "#440154"  # viridis
    assert css(1.0) == "#fde725"
