"""The content of a chart: data, and texts and sizes of the drawing."""

from __future__ import annotations

import base64
import re
import struct
import zlib
from collections.abc import Iterator
from html import unescape
from typing import Any

import numpy as np

from probes.frames.measurement_tables import findings_of
from probes.measurements.measurement import get_measurement
from probes.tables import figures
from probes.tables.charts import PAPER


def data_of(chart: Any) -> list[dict[str, Any]]:
    """All rows of a chart's data."""
    return [row for rows in chart.to_dict()["datasets"].values() for row in rows]


def column(chart: Any, of: str, **where: Any) -> list[Any]:
    """A column of the data, of the rows that have one and lie where they should."""
    rows = (row for row in data_of(chart) if row.get(of) is not None)
    return [row[of] for row in rows if all(row.get(k) == v for k, v in where.items())]


def expressions(spec: Any, key: str = "") -> Iterator[str]:
    """All that Vega reads as an expression."""
    if isinstance(spec, dict):
        for name, each in spec.items():
            if name not in ("values", "domain", "range"):
                yield from expressions(each, name)
    elif isinstance(spec, list):
        for each in spec:
            yield from expressions(each, key)
    elif isinstance(spec, str) and key in ("signal", "expr", "test", "update", "init", "as"):
        yield spec


def svg(chart: Any, style: Any = PAPER) -> str:
    return figures.svg(chart, style)


def texts(drawn: str) -> list[str]:
    """The texts of an SVG, in its order."""
    found = re.findall(r"<text[^>]*>(.*?)</text>", drawn, re.DOTALL)
    return [unescape(re.sub(r"<[^>]+>", " ", text)).strip() for text in found]


def width_of(drawn: str) -> float:
    return float(re.search(r'width="([\d.]+)"', drawn)[1])


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


def view_of(measurement: str, name: str, records: Any) -> tuple[Any, dict[str, str]]:
    """The chart of a measurement's view, None without numbers, and why models are missing."""
    given = get_measurement(measurement)
    found = findings_of(given, records)
    view = next(each for each in given.charts if each.name == name)
    missing = view.missing(found)
    return None if found.records.keys() <= missing.keys() else view.chart(found, PAPER), missing


def curve(chart: Any, **where: Any) -> list[tuple[Any, ...]]:
    """The points of a curve."""
    rows = (row for row in data_of(chart) if row["value"] is not None)
    kept = (row for row in rows if all(row.get(k) == v for k, v in where.items()))
    return [(row["x"], row["value"], row["low"], row["high"]) for row in kept]
