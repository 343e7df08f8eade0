"""A predicted tree below the gold one, as arcs under and over the words (Hewitt & Manning 2019)."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

import altair as alt

from probes.data.sentence import ROOT
from probes.records.charts import LEFT_OUT, PredictedTree
from probes.rendering.drawing.style import (
    DASHED,
    SOLID,
    Drawing,
    Mark,
    Style,
    dashes,
    filled,
    stacked,
    stroked,
    table,
    text_width,
)
from probes.rendering.palette import COLOURS

_BLACK, _GREY, _RIGHT, _WRONG = "black", "#9aa1a9", COLOURS[0], COLOURS[1]

_LARGEST, _SMALLEST = 7.0, 4.5
"""Sizes of words."""

_STEP, _HIGHEST = 12.0, 120.0
"""Height of an arc over the arcs that it contains, and of all together at most."""

_POINTS = 48
"""Of an arc."""

_EDGE = 8.0
"""What is left free beside the words."""


def width_of(tree: PredictedTree, width: float) -> float:
    """The width at which the words can be read: the given one, or a greater one."""
    return max(width, _SMALLEST * _units(tree) + 2 * _EDGE)


def _units(tree: PredictedTree) -> float:
    return sum(text_width(word, 1) + 0.7 for word in tree.words)


def of_tree(tree: PredictedTree, style: Style, room: float) -> Drawing:
    """One sentence: gold edges above, predicted ones below, dashed where they are wrong."""
    size = min((room - _EDGE) / _units(tree), _LARGEST)
    spaces = [text_width(word, size) + 0.7 * size for word in tree.words]
    margin = (room - sum(spaces)) / 2
    centres = [margin + sum(spaces[:i]) + n / 2 for i, n in enumerate(spaces)]
    gold, aside, found = tree.gold_edges, tree.other_gold_edges, tree.predicted_edges
    above, below = heights(gold | aside), heights(found)
    top, bottom = (max(each.values(), default=1) + 1 for each in (above, below))
    step = min(_STEP, _HIGHEST / max(top, bottom))
    lines: list[dict[str, Any]] = []

    def line(name: str, places: list[tuple[float, float]], colour: str, dash: list[float]) -> None:
        lines.extend(
            {"edge": name, "i": i, "x": x, "y": y, "colour": colour, "dash": dash}
            for i, (x, y) in enumerate(places)
        )

    for (a, b), level in above.items():
        places = _arc(centres[a], centres[b], size, step * level)
        line(f"gold {a} {b}", places, _GREY if (a, b) in aside else _BLACK, SOLID)
    for (a, b), level in below.items():
        right = (a, b) in gold
        places = _arc(centres[a], centres[b], -size, -step * level)
        colour, dash = (_RIGHT, SOLID) if right else (_WRONG, DASHED)
        line(f"predicted {a} {b}", places, colour, dash)
    right = ROOT in tree.gold and tree.predicted[tree.gold.index(ROOT)] == ROOT
    for i, head in enumerate(tree.gold):
        if head == ROOT:
            line(f"gold root {i}", _up(centres[i], size, step * top), _BLACK, SOLID)
    for i, head in enumerate(tree.predicted):
        if head == ROOT:
            colour, dash = (_RIGHT, SOLID) if right else (_WRONG, DASHED)
            line(f"predicted root {i}", _up(centres[i], -size, -step * bottom), colour, dash)
    x = alt.X("x:Q", axis=None, scale=alt.Scale(domain=[0, room]))
    ends = [-step * bottom - size, step * top + size]
    y = alt.Y("y:Q", axis=None, scale=alt.Scale(domain=ends))
    words = [
        {"x": centre, "y": 0, "word": word, "colour": _GREY if found == LEFT_OUT else _BLACK}
        for centre, word, found in zip(centres, tree.words, tree.predicted, strict=True)
    ]
    arcs = alt.Chart(table(lines)).mark_line(strokeWidth=0.9)
    arcs = arcs.encode(
        x, y, alt.Order("i:Q"), alt.Detail("edge:N"), stroked("colour"), dashes("dash")
    )
    texts = alt.Chart(table(words)).mark_text(fontSize=size, baseline="middle")
    texts = texts.encode(x, y, alt.Text("word:N"), filled("colour"))
    drawn = alt.layer(arcs, texts).properties(width=room, height=ends[1] - ends[0])
    marks = [
        Mark("gold", _BLACK, SOLID),
        Mark("predicted", _RIGHT, SOLID),
        Mark("wrong", _WRONG, DASHED),
    ]
    title = f"{tree.title}: {len(found & gold)} of {len(gold)} edges"
    return stacked([drawn], 1, title, style, marks, room)


def heights(edges: Collection[tuple[int, int]]) -> dict[tuple[int, int], int]:
    """The level of each arc: one above the highest that lies within it."""
    levels: dict[tuple[int, int], int] = {}
    for first, last in sorted(edges, key=lambda edge: (edge[1] - edge[0], edge)):
        inside = [n for (i, j), n in levels.items() if first <= i and j <= last]
        levels[first, last] = 1 + max(inside, default=0)
    return levels


def _arc(left: float, right: float, base: float, height: float) -> list[tuple[float, float]]:
    """Half an ellipse over its base, or below it."""
    middle, half = (left + right) / 2, (right - left) / 2
    angles = [math.pi * i / (_POINTS - 1) for i in range(_POINTS)]
    return [
        (round(middle - half * math.cos(a), 2), round(base + height * math.sin(a), 2))
        for a in angles
    ]


def _up(x: float, base: float, end: float) -> list[tuple[float, float]]:
    """A line to the root from outside."""
    return [(x, base), (x, base + end)]
