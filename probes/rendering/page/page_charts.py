"""The charts of the page: as figures have them, with names in tooltips instead of a key.

`shown_models` says how each model is drawn.
"""

from __future__ import annotations

import base64
import gzip
import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from probes.boards.groups import Group, model_key, model_labels, model_order
from probes.extraction.model_names import pretrained_name
from probes.records.charts import Chart, Curves
from probes.records.record import Record
from probes.rendering.drawing import heat_maps, lines
from probes.rendering.drawing.style import Style, printable_spec
from probes.rendering.palette import COLOURS, SYMBOLS

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


MOST_DRAWN = 8
"""Number of models that are drawn in the charts at first; more are hard to read."""

MOST_OPENED = 3
"""Number of trained models that the overview shows unfolded."""


@dataclass(frozen=True)
class Shown:
    """A model as the page shows it.

    Attributes:
        record: any record of it.
        random: whether its weights were never trained; it has its model's colour, dotted.
        drawn: whether it is drawn in the charts at first.
        opened: whether the overview shows it unfolded.
    """

    id: int
    label: str
    record: Record
    colour: str
    glyph: str
    random: bool
    drawn: bool
    opened: bool


def shown_models(found: Mapping[Path, Record]) -> dict[str, Shown]:
    """Models by label, each followed by its random twins."""
    labels = model_labels(found)
    firsts: dict[str, Record] = {}
    for record in found.values():
        firsts.setdefault(labels[model_key(record)], record)
    order = sorted(firsts, key=model_order)
    bases = list(dict.fromkeys(map(pretrained_name, order)))
    shown = {}
    for place, label in enumerate(order):
        base = bases.index(pretrained_name(label))
        random = firsts[label].model.random_seed is not None
        symbol = list(SYMBOLS)[base // len(COLOURS) % len(SYMBOLS)]
        shown[label] = Shown(
            id=place,
            label=label,
            record=firsts[label],
            colour=COLOURS[base % len(COLOURS)],
            glyph=SYMBOLS[symbol][random],
            random=random,
            drawn=place < MOST_DRAWN,
            opened=base < MOST_OPENED and not random,
        )
    return shown
