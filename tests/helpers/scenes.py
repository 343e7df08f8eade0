"""What Vega draws of a chart: its marks, at their places in the whole drawing."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any, NamedTuple

import numpy as np
import vl_convert

from probes.rendering.drawing.style import Style


class Mark(NamedTuple):
    """One drawn item.

    Attributes:
        kind: Vega's name of its mark, such as "text".
        role: such as "mark", "axis-label" or "title-text".
        x, y: its place from the left and the top.
        item: all that Vega says of it.
    """

    kind: str
    role: str
    x: float
    y: float
    item: dict[str, Any]

    @property
    def text(self) -> str:
        text = self.item.get("text", "")
        return " ".join(text) if isinstance(text, list) else str(text)


class Scene:
    """The marks of a drawing.

    Attributes:
        width, height: of the whole drawing.
    """

    def __init__(self, chart: Any, style: Style) -> None:
        # Altair's own check of the specification is a part of every test.
        spec = {**chart.to_dict(), "config": style.config}
        found = vl_convert.vegalite_to_scenegraph(spec)
        self.width, self.height = found["width"], found["height"]
        self.marks: list[Mark] = []
        self._walk(found["scenegraph"], *found["origin"])

    def _walk(self, mark: dict[str, Any], x: float, y: float) -> None:
        kind, role = mark["marktype"], mark.get("role", "")
        for item in mark["items"]:
            left, top = x + item.get("x", 0), y + item.get("y", 0)
            if kind == "group":
                for inner in item.get("items", ()):
                    self._walk(inner, left, top)
            else:
                self.marks.append(Mark(kind, role, left, top, item))

    def of(self, kind: str, role: str = "mark") -> list[Mark]:
        return [mark for mark in self.marks if (mark.kind, mark.role) == (kind, role)]

    def texts(self, role: str = "mark") -> list[str]:
        return [mark.text for mark in self.of("text", role)]

    def titles(self) -> list[str]:
        """Of the drawing and its panels, from the top and the left."""
        found = sorted(self.of("text", "title-text"), key=lambda mark: (mark.y, mark.x))
        return [mark.text for mark in found]


def png_size(data: bytes) -> tuple[int, int]:
    """Width and height of a PNG file."""
    assert data.startswith(b"\x89PNG")
    return struct.unpack(">II", data[16:24])


def png_pixels(url: str) -> np.ndarray:
    """Red, green, blue and opacity of a PNG in a URL, whose rows are stored as they are."""
    data = base64.b64decode(url.removeprefix("data:image/png;base64,"))
    width, height = png_size(data)
    at = data.index(b"IDAT")
    body = zlib.decompress(data[at + 4 : at + 4 + int.from_bytes(data[at - 4 : at])])
    rows = np.frombuffer(body, np.uint8).reshape(height, 1 + 4 * width)
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape(height, width, 4)
