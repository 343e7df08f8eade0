"""The charts of the page: as figures have them, with names in tooltips instead of a key."""

from __future__ import annotations

import base64
import gzip
import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from probes.boards.groups import Group
from probes.records.charts import Chart
from probes.records.curves import Curves
from probes.rendering.drawing import heat_maps, lines
from probes.rendering.drawing.style import Style, printable_spec
from probes.rendering.page.models import Shown

Spec = dict[str, Any]
"""A chart as Vega-Lite reads it, without what all of them have in common."""

PAGE = Style(
    width=360,
    font="system-ui, sans-serif",
    title=14,
    text=12,
    small=11,
    line=2,
    marker=7,
    ink="var(--ink)",
    soft="var(--soft)",
    paper="var(--paper)",
    titled=False,
    hover=True,
)
"""Colours are the page's own, which follow the reader's scheme, and print."""

HEIGHT = 240
"""Height of a chart of curves."""

WHOLE_WIDTH = {"autosize": {"type": "fit-x", "contains": "padding"}}
"""Marks a chart that takes the width of its place."""


def line_chart(given: Curves, models: Sequence[str]) -> Spec:
    """A line with its band for each model and name of a line, and levels."""
    looks = lines.looks_of_both(given, models)
    plain = replace(given, title="")
    made: Spec = lines.panel(plain, looks, PAGE, PAGE.width, height=HEIGHT).to_dict(validate=False)
    return made | WHOLE_WIDTH


def shades_of(given: Curves) -> list[str]:
    """Colours of a chart's lines, from dark to light, if there are too many for dashes."""
    looks = lines.looks_of_both(given, list(given.models))
    return looks.colours if looks.by == "line" else []


def expected_layer_chart(group: Group) -> Spec | None:
    """A bar per model and task from layer 0 to the expected layer, and its centre of gravity.

    None if no result has been localised.
    """
    made = heat_maps.localisation(group, PAGE, PAGE.width)
    return None if made is None else made.to_dict(validate=False) | WHOLE_WIDTH


def not_measured(charts: Iterable[tuple[str, Chart]]) -> list[str]:
    """What charts lack, of which models and tasks, and why: each reason once.

    Args:
        charts: each with its task, or an empty name.
    """
    tasks: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for task, chart in charts:
        for why in dict.fromkeys(chart.missing.values()):
            models = ", ".join(model for model in chart.missing if chart.missing[model] == why)
            tasks[why, models, chart.title].append(task)
    titles: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for (why, models, title), names in tasks.items():
        titles[why, models, ", ".join(filter(None, names))].append(title)
    return [
        f"{', '.join(found)} of {models}" + f" ({names})" * bool(names) + f": {why}"
        for (why, models, names), found in titles.items()
    ]


def model_names(models: Mapping[str, Shown]) -> list[dict[str, Any]]:
    """What the page's filters know of each model, by its id."""
    return [{"label": m.label, "random": m.random} for m in models.values()]


def packed(data: Any) -> str:
    """Data as the page carries them: compressed JSON, in letters that mean nothing in HTML."""
    text = json.dumps(printable_spec(data), separators=(",", ":"), allow_nan=False)
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()


def script() -> str:
    """Vega, Vega-Lite and Vega-Embed, with what they need."""
    import vl_convert

    text: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return text.replace("</script", "<\\/script")


def significant(value: float | None, digits: int) -> float | None:
    """A value with so many digits; None for one that JSON does not have."""
    return float(f"{value:.{digits}g}") if value is not None and math.isfinite(value) else None
