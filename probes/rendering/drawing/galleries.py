"""Small pictures in rows and columns, such as attention maps: a panel for each model."""

from __future__ import annotations

import base64
import math
import struct
import zlib
from typing import Any

import altair as alt

from probes.records.gallery import Gallery, GalleryPanel, Picture
from probes.rendering.drawing.style import (
    SOLID,
    Drawing,
    Mark,
    Style,
    layered,
    stacked,
    stroked,
    table,
    viridis,
)
from probes.rendering.palette import distinct, shade
from probes.rendering.words import text_width

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
        _panel(gallery, label, panel, style, side, frames)
        for label, panel in gallery.panels.items()
    ]
    marks = [
        Mark(f"{group} ({letters})" if letters else group, frames[group], SOLID)
        for group, letters in gallery.key.items()
    ]
    return stacked(panels, columns, gallery.title, style, marks, room)


def _panel(
    gallery: Gallery,
    label: str,
    panel: GalleryPanel,
    style: Style,
    side: float,
    frames: dict[str, str],
) -> Drawing:
    low, high = gallery.span
    width, height = side * len(panel.columns), side * len(panel.rows)
    rows: list[dict[str, Any]] = [
        {
            "x": x + 0.5,
            "y": y + 0.5,
            "url": picture_url(picture, low, high),
            "right": x + 1 - _GAP,
            "top": y + 1 - 0.6 * _GAP,
            "mark": picture.mark,
            "frame": frames.get(picture.group, "#0000"),
            "low": low,
        }
        for y, pictures in enumerate(panel.pictures)
        for x, picture in enumerate(pictures)
        if picture is not None
    ]
    ends = {"x": len(panel.columns), "y": len(panel.rows)}

    def at(field: str, name: str) -> Any:
        scale = alt.Scale(domain=[0, ends[name]], nice=False)
        return (alt.X if name == "x" else alt.Y)(f"{field}:Q", scale=scale, axis=None)

    inner = side * (1 - _GAP)
    line = min(0.9, 0.4 * _GAP * side)
    base = alt.Chart(table(rows)).encode(x=at("x", "x"), y=at("y", "y"))
    letters = max((text_width(row["mark"], 1) for row in rows), default=1) or 1
    size = min(5.5, 0.38 * side, 0.8 * inner / letters)
    scaled = viridis(
        "low", (low, high), "square-root scale", style, kind="sqrt", tickCount=4, format=".2~g"
    )
    corner = base.encode(x=at("right", "x"), y=at("top", "y"), text="mark:N")
    placed: dict[str, Any] = {"align": "right", "baseline": "top", "fontSize": size}
    layers = [
        base.mark_image(width=inner, height=inner, smooth=False, aspect=False).encode(url="url:N"),
        base.mark_point(
            shape="square", size=(inner + line) ** 2, strokeWidth=line, filled=False
        ).encode(stroke=stroked("frame")),
        corner.mark_text(stroke="black", strokeWidth=size / 4, strokeJoin="round", **placed),
        corner.mark_text(color="white", **placed),
        # Nothing is seen of it but its colour scale.
        base.mark_point(opacity=0, size=0).encode(color=scaled),
        *_names(panel, side, style, (gallery.down, gallery.across)),
    ]
    return layered(layers, label, width, height, style)


def _names(
    panel: GalleryPanel, side: float, style: Style, titles: tuple[str, str]
) -> list[alt.Chart]:
    """Names of rows and columns, and the titles of both."""
    size = min(style.text - 0.3, 0.5 * side)
    down, across = titles
    height, width = side * len(panel.rows), side * len(panel.columns)
    rows = [{"at": height - side * (i + 0.5), "name": name} for i, name in enumerate(panel.rows)]
    columns = [{"at": side * (i + 0.5), "name": name} for i, name in enumerate(panel.columns)]
    away = max(text_width(name, size) for name in panel.rows) + 5
    x, y = alt.X("at:Q", scale=None, axis=None), alt.Y("at:Q", scale=None, axis=None)
    middle: dict[str, Any] = {"baseline": "middle", "fontSize": size}
    title: dict[str, Any] = {"fontSize": style.text, "align": "center"}
    return [
        alt.Chart(table(rows))
        .mark_text(align="right", **middle)
        .encode(y=y, x=alt.XValue(-2), text="name:N"),
        alt.Chart(table(columns))
        .mark_text(align="center", **middle)
        .encode(x=x, y=alt.YValue(height + 2 + size / 2), text="name:N"),
        alt.Chart(table([{"name": across}]))
        .mark_text(baseline="top", **title)
        .encode(x=alt.XValue(width / 2), y=alt.YValue(height + 5 + size), text="name:N"),
        alt.Chart(table([{"name": down}]))
        .mark_text(baseline="bottom", angle=270, **title)
        .encode(x=alt.XValue(-away), y=alt.YValue(height / 2), text="name:N"),
    ]


def picture_url(picture: Picture, low: float, high: float) -> str:
    """A picture as a PNG file: a pixel for each number, by the square root of its place."""
    rows = [b"".join(_pixel(value, low, high) for value in row) for row in picture.values]
    return png_url(len(picture.values[0]), rows)


def _pixel(value: float | None, low: float, high: float) -> bytes:
    if value is None or not math.isfinite(value):
        return bytes(4)
    place = min(max((value - low) / (high - low), 0.0), 1.0) if high > low else 0.0
    return bytes((*shade(math.sqrt(place)), 255))


def png_url(width: int, rows: list[bytes]) -> str:
    """Rows of red, green, blue and opacity as a PNG file in a URL."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + check

    head = struct.pack(">IIBBBBB", width, len(rows), 8, 6, 0, 0, 0)
    body = zlib.compress(b"".join(b"\0" + row for row in rows), 9)
    png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")
    return "data:image/png;base64," + base64.b64encode(png).decode()
