"""The data of the page's charts: plain numbers, rounded."""

from __future__ import annotations

import math
from collections.abc import Mapping
from html import escape
from itertools import product
from typing import Any

from probes.boards.groups import Group
from probes.measurements.localisation import Mixes, mixes_of
from probes.records.curves import Curves
from probes.records.scatter import Scatter
from probes.records.values import Estimate
from probes.rendering.labels import plane, sides
from probes.rendering.page.models import SYMBOLS, Shown
from probes.rendering.palette import distinct, shades

Chart = dict[str, Any]

SIDES = {
    "right": "middle right",
    "left": "middle left",
    "top": "top center",
    "bottom": "bottom center",
}
"""The plotting library's names of the sides of a point."""

PLANE, MARKER, LETTER = 340, 8, 10
"""In pixels: side of a plane where it is smallest, and heights of markers and letters."""

MOST_DASHES = 4
"""Lines of a model that differ in their dashes; if there are more, they differ in colour."""


def model_styles(models: Mapping[str, Shown]) -> list[dict[str, Any]]:
    """How each model is drawn, by its id."""
    return [
        {
            "label": m.label,
            "name": _text(m.label),
            "colour": m.colour,
            "symbol": m.symbol,
            "random": m.random,
        }
        for m in models.values()
    ]


def line_chart(curves: Curves, models: Mapping[str, Shown]) -> Chart:
    """A line with its band for each model and name of a line, and levels."""
    series = []
    for label, line in product(curves.models, curves.lines):
        on_line = [point for point in curves.models[label] if point.line == line]
        known = [point for point in on_line if _rounded(point.value) is not None]
        bounds = [point.interval or (None, None) for point in known]
        series.append(
            {
                "m": models[label].id,
                "line": _text(line),
                "x": [point.x for point in known],
                "y": [_rounded(point.value, curves.scale) for point in known],
                "l": [_rounded(low, curves.scale) for low, _ in bounds],
                "h": [_rounded(high, curves.scale) for _, high in bounds],
            }
        )
    levels = [[_text(name), _rounded(v, curves.scale)] for name, v in curves.levels.items()]
    return {
        "kind": "lines",
        "axis": _text(curves.axis),
        "what": _text(curves.what),
        "log": curves.log,
        "lines": [_text(line) for line in curves.lines],
        "shades": shades_of(curves),
        "digits": digits_of(curves),
        "series": series,
        "levels": levels,
    }


def shades_of(curves: Curves) -> list[str]:
    """Colours of a chart's lines, from dark to light, if there are too many for dashes."""
    n = len(curves.lines)
    return shades(n) if n > MOST_DASHES else []


def digits_of(curves: Curves) -> int:
    """Digits of a chart's numbers: more where none is greater than 1, such as correlations."""
    if curves.percent:
        return 1
    every = [p.value for points in curves.models.values() for p in points if p.value is not None]
    return 3 if curves.metric or all(abs(value) <= 1 for value in every) else 2


def plane_chart(scatter: Scatter, label: str) -> Chart:
    """The points of one model: a series for each group that all models have together."""
    points = scatter.points[label]
    written = list(zip(points, sides(points, PLANE, MARKER, LETTER), strict=True))
    series = []
    for i, (group, colour) in enumerate(distinct(scatter.groups).items()):
        own = [(p, side) for p, side in written if p.group == group]
        series.append(
            {
                "name": _text(group),
                "colour": colour,
                "symbol": list(SYMBOLS)[i % len(SYMBOLS)],
                "x": [significant(p.x, 4) for p, _ in own],
                "y": [significant(p.y, 4) for p, _ in own],
                "text": [_text(p.text) if side else "" for p, side in own],
                "side": [SIDES.get(side, "middle right") for _, side in own],
                "hover": [_text(", ".join(filter(None, (p.text, group)))) for p, _ in own],
                "level": [significant(p.level, 4) for p, _ in own],
            }
        )
    square = plane(points)
    return {
        "kind": "plane",
        "scale": _text(scatter.scale),
        "span": scatter.span,
        "x": [square.left, square.right],
        "y": [square.bottom, square.top],
        "series": series,
    }


def expected_layer_chart(group: Group, models: Mapping[str, Shown]) -> Chart | None:
    """A bar per model and task from layer 0 to the expected layer, and its centre of gravity.

    None if no result has been localised.
    """
    units = [unit for unit in group.units if any(map(mixes_of, unit.results.values()))]
    series = []
    for label in group.models:
        results = [unit.results.get(label) for unit in units]
        found = [mixes_of(result) if result else None for result in results]
        if not any(found):
            continue
        series.append(
            {
                "m": models[label].id,
                "e": [_value(x.expected_layer if x else None) for x in found],
                "l": [_bound(x, 0) for x in found],
                "h": [_bound(x, 1) for x in found],
                "g": [_value(x.centre_of_gravity if x else None) for x in found],
                "undefined": [bool(x and x.expected_layer.value is None) for x in found],
            }
        )
    tasks = [_text(group.short_title(unit)) for unit in units]
    return {"kind": "bars", "tasks": tasks, "series": series} if series else None


def _value(estimate: Estimate | None) -> float | None:
    return _rounded(estimate.value) if estimate else None


def _bound(mixes: Mixes | None, which: int) -> float | None:
    interval = mixes.expected_layer.interval if mixes else None
    return _rounded(interval[which]) if interval else None


def _rounded(value: float | None, scale: int = 1) -> float | None:
    # A plug-in's number may be NaN, which JSON does not have.
    if value is None or not math.isfinite(value):
        return None
    return round(scale * value, 2 if scale > 1 else 4)


def significant(value: float | None, digits: int) -> float | None:
    """A value with so many digits; None for one that JSON does not have."""
    return float(f"{value:.{digits}g}") if value is not None and math.isfinite(value) else None


def _text(text: str) -> str:
    """Text for the plotting library, which interprets some tags and entities."""
    return escape(text, quote=False)
