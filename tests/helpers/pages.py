"""What a page carries for its charts and cards."""

from __future__ import annotations

import base64
import gzip
import json
import re
from typing import Any

from probes.rendering.page.page_charts import script


def data_of(text: str) -> dict[str, Any]:
    """The data of a page."""
    found = re.search(r'<script type="text/plain" id="data">([^<]*)</script>', text)
    assert found
    data: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(found[1])))
    return data


def own(text: str) -> str:
    """A page without the drawing library, which names elements too."""
    return text.replace(script(), "")


def rows_of(chart: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of a chart's points, of its several data sets."""
    return [row for rows in chart["datasets"].values() for row in rows if "model" in row]
