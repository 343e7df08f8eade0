"""Numbers by row and column as heat maps: a panel for each model, all of one scale."""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections.abc import Sequence
from typing import Any

import altair as alt

from probes.records.charts import Gallery, GalleryPanel, Grid, Panel, Picture
from probes.rendering.drawing.style import (
    SOLID,
    Drawing,
    Mark,
    Style,
    filled,
    layered,
    stacked,
    stroked,
    table,
    text_width,
    viridis,
)
from probes.rendering.palette import distinct, shade

CELL = 14.4
"""Height of a cell at most."""

LARGEST, SMALLEST = 6.2, 3.5
"""Sizes of numbers in cells; if even the smallest does not fit, none is written."""


def of_grid(grid: Grid, style: Style, room: float) -> Drawing:
    """A heat map for each model."""
    columns = style.columns(len(grid.panels), 200)
    most = max(len(each.rows) for each in grid.panels.values())
    cell = max(3.6, min(CELL, 7 * 72 / most))
    panels = [
        _panel(grid, label, each, style, room / columns, cell)
        for label, each in grid.panels.items()
    ]
    return stacked(panels, columns, grid.title, style)


def _panel(grid: Grid, label: str, each: Panel, style: Style, width: float, cell: float) -> Drawing:
    down, along = distinct_names(each.rows), distinct_names(each.columns)
    rows: list[dict[str, Any]] = [
        {
            "row": row,
            "column": column,
            "value": value,
            "text": grid.text(value),
            "ink": "black" if (grid.place(value) or 0) > 0.6 else "white",
        }
        for row, values in zip(down, each.values, strict=True)
        for column, value in zip(along, values, strict=True)
        if value is not None
    ]
    across = width / len(each.columns)
    base = alt.Chart(table(rows)).encode(
        x=names("column", along, grid.across, across, style),
        y=names("row", down[::-1], grid.down, cell, style, upright=True),
    )
    bar: dict[str, Any] = {"tickMinStep": 1} if grid.digits == 0 else {}
    layers = [
        base.mark_rect().encode(
            color=viridis("value", grid.span, grid.title, style, tickCount=5, **bar)
        )
    ]
    longest = max((text_width(row["text"], 1) for row in rows), default=1)
    size = min(LARGEST, (across - 1.5) / longest, cell / 1.3)
    if size >= SMALLEST:
        layers.append(
            base.mark_text(fontSize=size, baseline="middle").encode(
                text="text:N", fill=filled("ink")
            )
        )
    return layered(layers, label, width, cell * len(each.rows), style)


def distinct_names(given: Sequence[str]) -> list[str]:
    """The names, those that were there already with letters that are not seen."""
    return [name + "\u200b" * given[:i].count(name) for i, name in enumerate(given)]


def names(
    column: str,
    every: Sequence[str],
    title: str,
    step: float,
    style: Style,
    *,
    upright: bool = False,
) -> Any:
    """An axis of names in their order: of each, or of as many as fit.

    Args:
        every: the names, which may have several lines.
        step: room of one.
        upright: whether it is the axis of y.
    """
    size = min(style.text - 0.3, max(step, 4))
    longest = max((text_width(x, size) for name in every for x in name.split("\n")), default=0)
    turned = not upright and longest > step - 1
    room = 1.15 * size if upright or turned else step
    skipped = max(1, math.ceil(room / step))
    kept = list(every)[:: -skipped if upright else skipped]
    axis = alt.Axis(
        values=kept,
        labelAngle=-90 if turned else 0,
        labelExpr="split(datum.label, '\\n')",
        labelFontSize=size,
        labelOverlap=False,
        ticks=False,
        domain=False,
    )
    scale = alt.Scale(domain=list(every), padding=0)
    kind = alt.Y if upright else alt.X
    return kind(f"{column}:N", sort=None, title=title or None, axis=axis, scale=scale)


_HIGHEST, _MOST = 8.0 * 72, 0.6 * 72
"""Height of a panel, and side of a picture, at most."""

_GAP = 0.18
"""Between pictures, relative to the distance of their centres."""


def of_gallery(gallery: Gallery, style: Style, room: float) -> Drawing:
    """A panel for each model, all of one scale."""
    columns = style.columns(len(gallery.panels), 200)
    down = max(len(panel.rows) for panel in gallery.panels.values())
    across = max(len(panel.columns) for panel in gallery.panels.values())
    side = min(room / columns / across, _HIGHEST / down, _MOST)
    frames = distinct(gallery.key)
    panels = [
        _pictures(gallery, label, panel, style, side, frames)
        for label, panel in gallery.panels.items()
    ]
    marks = [
        Mark(f"{group} ({letters})" if letters else group, frames[group], SOLID)
        for group, letters in gallery.key.items()
    ]
    return stacked(panels, columns, gallery.title, style, marks, room)


def _pictures(
    gallery: Gallery,
    label: str,
    panel: GalleryPanel,
    style: Style,
    side: float,
    frames: dict[str, str],
) -> Drawing:
    low, high = gallery.span
    down, along = distinct_names(panel.rows), distinct_names(panel.columns)
    rows: list[dict[str, Any]] = [
        {
            "row": row,
            "column": column,
            "url": picture_url(picture, low, high),
            "mark": picture.mark,
            "frame": frames.get(picture.group, "#0000"),
            "low": low,
        }
        for row, pictures in zip(down, panel.pictures, strict=True)
        for column, picture in zip(along, pictures, strict=True)
        if picture is not None
    ]
    inner = side * (1 - _GAP)
    line = min(0.9, 0.4 * _GAP * side)
    base = alt.Chart(table(rows)).encode(
        x=names("column", along, gallery.across, side, style),
        y=names("row", down[::-1], gallery.down, side, style, upright=True),
    )
    letters = max((text_width(row["mark"], 1) for row in rows), default=1) or 1
    size = min(5.5, 0.38 * side, 0.8 * inner / letters)
    corner: dict[str, Any] = {"align": "right", "baseline": "top", "fontSize": size}
    corner |= {"xOffset": inner / 2 - 0.5, "yOffset": 1 - inner / 2}
    marks = base.encode(text="mark:N")
    bar: dict[str, Any] = {"kind": "sqrt", "tickCount": 4, "format": ".2~g"}
    layers = [
        base.mark_image(width=inner, height=inner, smooth=False, aspect=False).encode(url="url:N"),
        base.mark_point(shape="square", size=(inner + line) ** 2, strokeWidth=line).encode(
            stroke=stroked("frame")
        ),
        marks.mark_text(stroke="black", strokeWidth=size / 4, strokeJoin="round", **corner),
        marks.mark_text(color="white", **corner),
        # Nothing is seen of it but its colour scale.
        base.mark_point(opacity=0, size=0).encode(
            color=viridis("low", (low, high), "square-root scale", style, **bar)
        ),
    ]
    return layered(layers, label, side * len(along), side * len(down), style)


def picture_url(picture: Picture, low: float, high: float) -> str:
    """A picture as a PNG file: a pixel for each number, by the square root of its place."""
    lines = (b"\0" + b"".join(_pixel(x, low, high) for x in row) for row in picture.values)
    size = len(picture.values[0]), len(picture.values)
    chunks = {
        b"IHDR": struct.pack(">IIBBBBB", *size, 8, 6, 0, 0, 0),
        b"IDAT": zlib.compress(b"".join(lines), 9),
        b"IEND": b"",
    }
    png = b"\x89PNG\r\n\x1a\n"
    for kind, data in chunks.items():
        check = zlib.crc32(kind + data)
        png += struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)
    return "data:image/png;base64," + base64.b64encode(png).decode()


def _pixel(value: float | None, low: float, high: float) -> bytes:
    """Red, green, blue and opacity."""
    if value is None or not math.isfinite(value):
        return bytes(4)
    place = min(max((value - low) / (high - low), 0.0), 1.0) if high > low else 0.0
    return bytes((*shade(math.sqrt(place)), 255))
