"""Values by layer, with their bands: one panel, or a panel for each task or line."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import altair as alt

from probes.records.charts import Curves, Point
from probes.rendering.drawing.style import (
    DASHED,
    DOTTED,
    SAID,
    SOLID,
    Drawing,
    Looks,
    Style,
    layered,
    looks_of_models,
    table,
    wrapped,
)
from probes.rendering.palette import shades
from probes.statistics.metrics import shown

FADED = 0.3
"""Opacity of the marks of scores that are not above their floor."""

DASHES = [SOLID, [4.0, 2.0], [4.0, 2.0, 1.0, 2.0], DOTTED]
"""Lines of a model that differ in their dashes; if there are more, they differ in colour."""


class _Level(NamedTuple):
    name: str
    value: float
    text: str


def looks_of_both(curves: Curves, models: Sequence[str]) -> Looks:
    """How models are drawn that have several lines each: colours by model and dashes by line.

    Too many lines for dashes have colours instead.
    """
    looks = looks_of_models(models)
    lines = curves.lines
    if len(lines) < 2:
        return looks
    if len(lines) > len(DASHES):
        every = [looks.shapes[0]] * len(lines)
        return Looks("line", lines, shades(len(lines)), every, "model", looks.dashes)
    return looks._replace(dashed="line", dashes=dict(zip(lines, DASHES, strict=False)))


def digits_of(curves: Curves) -> int:
    """Digits of a chart's numbers: more where none is greater than 1, such as correlations."""
    if curves.percent:
        return 1
    every = [p.value for points in curves.models.values() for p in points if p.value is not None]
    return 3 if curves.metric or all(abs(value) <= 1 for value in every) else 2


def panel(
    curves: Curves,
    looks: Looks,
    style: Style,
    width: float,
    *,
    axis: str | None = None,
    named: bool = True,
    height: float | None = None,
) -> Drawing:
    """A curve per model and line, with its band, and levels.

    Args:
        axis: title of the axis of values, if it is not that of the curves.
        named: whether levels are named beside their lines.
    """
    rows = [
        _row(curves, model, point) | (_said(curves, model, point) if style.hover else {})
        for model, points in curves.models.items()
        for point in points
        if point.value is not None and math.isfinite(point.value)
    ]
    near, far = _levels(curves, rows)
    away = wrapped(" · ".join(level.text for level in far), width - 6, style.small)
    padding = 4 + len(away) * 1.2 * style.small * bool(far)
    x = alt.X(
        "x:Q",
        title=curves.what,
        scale=alt.Scale(type="log", base=2, padding=5)
        if curves.log
        else alt.Scale(zero=False, nice=False, padding=5),
        axis=alt.Axis(
            values=_ticks(curves, width), format=",d", labelOverlap="greedy", labelSeparation=3
        ),
    )
    height = height or min(0.75 * width, 110)
    title = wrapped(curves.axis if axis is None else axis, height, style.text)
    y = alt.Y(
        "value:Q",
        title=title,
        scale=alt.Scale(zero=False, nice=False, padding=padding),
        axis=alt.Axis(tickCount=5),
    )
    names = alt.Scale(domain=looks.names, range=looks.colours)
    colour: dict[str, Any] = {"scale": names, "legend": None}
    by = f"{looks.by}:N"
    base = alt.Chart(table(rows)).encode(x=x, detail=[alt.Detail("model:N"), alt.Detail("line:N")])
    band = base.mark_area(opacity=0.18).encode(
        alt.Y("low:Q", title=title), y2="high:Q", color=alt.Color(by, **colour)
    )
    line = base.mark_line().encode(
        y=y,
        color=alt.Color(by, **colour),
        strokeDash=alt.StrokeDash(
            f"{looks.dashed}:N",
            scale=alt.Scale(domain=list(looks.dashes), range=list(looks.dashes.values())),
            legend=None,
        )
        if looks.dashes
        else alt.Undefined,
    )
    fills = [
        style.paper if name in looks.open else own
        for name, own in zip(looks.names, looks.colours, strict=True)
    ]
    points = base.mark_point().encode(
        y=y,
        stroke=alt.Stroke(by, **colour),
        fill=alt.Fill(by, scale=alt.Scale(domain=looks.names, range=fills), legend=None),
        shape=alt.Shape(by, scale=alt.Scale(domain=looks.names, range=looks.shapes), legend=None),
        opacity=alt.condition("datum.floored", alt.value(FADED), alt.value(1)),
    )
    banded = [band] if any(row["low"] is not None for row in rows) else []
    layers = [*banded, line, points, *_drawn(near, y, style, named=named)]
    if style.hover:
        layers.append(base.mark_point(size=400, opacity=0, tooltip=SAID).encode(y=y))
    if far:
        layers.append(
            alt.Chart(table([{"text": away}]))
            .mark_text(align="left", baseline="bottom", color=style.soft)
            .encode(
                text="text:N",
                x=alt.XValue(3),
                y=alt.YValue("height"),
            )
        )
    return layered(layers, curves.title, width, height, style)


def _row(curves: Curves, model: str, point: Point) -> dict[str, Any]:
    low, high = point.interval or (None, None)
    return {
        "x": point.x,
        "value": _scaled(point.value, curves),
        "low": _scaled(low, curves),
        "high": _scaled(high, curves),
        "model": model,
        "line": point.line,
        **({"floored": True} if point.floored else {}),
    }


def _said(curves: Curves, model: str, point: Point) -> dict[str, Any]:
    """What the point says where it is pointed at."""
    digits, scale = digits_of(curves), curves.scale
    text = f"{scale * (point.value or 0):.{digits}f}"
    if point.interval:
        text += " [{:.{d}f}, {:.{d}f}]".format(*(scale * x for x in point.interval), d=digits)
    line = {"line": point.line} if len(curves.lines) > 1 else {}
    return {"said": {curves.what: f"{point.x:,}", "model": model, **line, curves.axis: text}}


def _scaled(value: float | None, curves: Curves) -> float | None:
    # A plug-in's number may be NaN, which JSON does not have.
    if value is None or not math.isfinite(value):
        return None
    return round(curves.scale * value, 2 if curves.percent else 4)


def _levels(curves: Curves, rows: Sequence[dict[str, Any]]) -> tuple[list[_Level], list[_Level]]:
    """Levels that are drawn, and those that are far off and would flatten the curves."""
    every = [y for row in rows for y in (row["value"], row["low"], row["high"]) if y is not None]
    low, high = min(every, default=0.0), max(every, default=1.0)
    span = high - low or 1.0
    near: list[_Level] = []
    far: list[_Level] = []
    for name, value in curves.levels.items():
        y = curves.scale * value
        text = shown(value, curves.metric) if curves.metric else f"{y:.2f}"
        level = _Level(name, y, f"{'↓' if y < low else '↑'} {name} {text}")
        (near if low - span < y < high + span else far).append(level)
    return near, far


def _drawn(levels: Collection[_Level], y: alt.Y, style: Style, *, named: bool) -> list[Drawing]:
    if not levels:
        return []
    rows = [{"value": level.value, "name": level.name} for level in levels]
    base = alt.Chart(table(rows)).encode(y=y)
    lines = [base.mark_rule(strokeDash=DASHED)]
    if named:
        lines.append(
            base.mark_text(align="right", baseline="bottom", dy=-1, color=style.soft).encode(
                text="name:N", x=alt.XValue("width")
            )
        )
    return lines


def _ticks(curves: Curves, width: float) -> list[int]:
    every = sorted({p.x for points in curves.models.values() for p in points})
    if curves.log or not every:
        return every
    gap = math.gcd(*(x - every[0] for x in every)) or 1  # 10 where x are 10, 20, …
    n_gaps = (every[-1] - every[0]) // gap + 1
    step = gap * -(-n_gaps // max(2, int(width // 16)))
    return list(range(every[0], every[-1] + 1, step))
