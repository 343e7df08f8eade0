"""Data that a page carries for its charts, and its tables."""

from __future__ import annotations

import base64
import gzip
import json
import re
from html import unescape
from typing import Any

from probes.pages.page_charts import script


def data_of(text: str) -> dict[str, Any]:
    """The data of a page."""
    found = re.search(r'<script type="text/plain" id="data">([^<]*)</script>', text)
    assert found
    data: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(found[1])))
    return data


def texts(text: str) -> str:
    """The text of all elements of a page but the script, parted by spaces."""
    parts = re.sub(r"<(script|style).*?</\1>", "", text, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", parts)).split())


def chart_of(text: str, title: str) -> dict[str, Any]:
    """The specification of a chart."""
    figures = re.findall(r"<figure.*?</figure>", text, re.DOTALL)
    (figure,) = (x for x in figures if f"<h5>{title}</h5>" in x)
    (number,) = re.findall(r'data-chart="(\d+)"', figure)
    found: dict[str, Any] = data_of(text)["charts"][int(number)]
    return found


def own(text: str) -> str:
    """A page without the drawing library, which names elements too."""
    return text.replace(script(), "")


def rows_of(chart: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of a chart's points, of its several data sets."""
    return [row for rows in chart["datasets"].values() for row in rows if "model" in row]
