"""Points in planes without units: a plane for each model."""

from __future__ import annotations

from typing import Any

import altair as alt

from probes.records.scatter import Scatter, ScatterPoint
from probes.rendering.drawing.legends import Mark, looks_of_lines, stacked
from probes.rendering.drawing.style import SAID, Drawing, Style, layered, table, viridis
from probes.rendering.point_labels import plane, sides

_PLACES: dict[str, dict[str, Any]] = {
    "right": {"align": "left", "baseline": "middle", "dx": 1},
    "left": {"align": "right", "baseline": "middle", "dx": -1},
    "top": {"align": "center", "baseline": "bottom", "dy": -1},
    "bottom": {"align": "center", "baseline": "top", "dy": 1},
}
"""Where a text stands relative to its point, by the radius of the marker."""

_INK = "#444b54"


def of_scatter(scatter: Scatter, style: Style, room: float) -> Drawing:
    """A plane for each model: groups by marker, levels (or else groups) by colour."""
    columns = style.columns(len(scatter.points), 200)
    side = min(room / columns, 4.5 * 72)
    panels = [panel(scatter, label, style, side, title=label) for label in scatter.points]
    return stacked(panels, columns, scatter.title, style, key_of(scatter), room)


def key_of(scatter: Scatter) -> list[Mark]:
    """The groups, if there are several."""
    looks = looks_of_lines(scatter.groups)
    marks = zip(looks.names, looks.colours, looks.shapes, strict=True)
    named = [
        Mark(name, _INK if scatter.scale else colour, shape=shape)
        for name, colour, shape in marks
        if name
    ]
    return named if len(named) > 1 else []


def panel(scatter: Scatter, label: str, style: Style, side: float, title: str = "") -> Drawing:
    """The points of one model, with as many texts as fit."""
    points = scatter.points[label]
    looks = looks_of_lines(scatter.groups)
    written = sides(points, side, style.marker, style.small)
    square = plane(points)
    rows = [_row(point, at) for point, at in zip(points, written, strict=True)]
    for row in rows if style.hover else ():
        level = {scatter.scale: row["level"]} if row["level"] is not None else {}
        row["said"] = {"point": row["text"], "group": row["group"], **level}
    base = alt.Chart(table(rows)).encode(
        x=_axis(alt.X, "x", square.left, square.right),
        y=_axis(alt.Y, "y", square.bottom, square.top),
    )
    shape = alt.Shape(
        "group:N", scale=alt.Scale(domain=looks.names, range=looks.shapes), legend=None
    )
    by_group = alt.Fill(
        "group:N", scale=alt.Scale(domain=looks.names, range=looks.colours), legend=None
    )
    said = SAID if style.hover else alt.Undefined
    marks = base.mark_point(filled=True, strokeWidth=0, tooltip=said).encode(shape=shape)
    plain = [row for row in rows if row["level"] is None]
    layers: list[alt.Chart] = []
    if len(plain) < len(rows):
        leveled = marks.transform_filter("datum.level !== null")
        layers.append(leveled.encode(color=viridis("level", scatter.span, scatter.scale, style)))
    if plain:
        layers.append(marks.transform_filter("datum.level === null").encode(fill=by_group))
    for place, more in _PLACES.items():
        if place in written:
            placed = {
                name: x * (style.marker / 2 + 0.5) if name in ("dx", "dy") else x
                for name, x in more.items()
            }
            layers.append(
                base.transform_filter(f"datum.side === '{place}'")
                .mark_text(color=_INK if style.paper == "white" else style.ink, **placed)
                .encode(text="text:N")
            )
    frame = alt.ViewBackground(stroke="#9aa1a9", strokeWidth=0.4)
    return layered(layers, title, side, side, style, view=frame)


def _row(point: ScatterPoint, side: str) -> dict[str, Any]:
    return {
        "x": float(f"{point.x:.4g}"),
        "y": float(f"{point.y:.4g}"),
        "text": point.text,
        "group": point.group,
        "level": point.level,
        "side": side,
    }


def _axis(kind: Any, name: str, low: float, high: float) -> Any:
    scale = alt.Scale(domain=[low, high], nice=False, zero=False)
    return kind(f"{name}:Q", scale=scale, axis=None)
