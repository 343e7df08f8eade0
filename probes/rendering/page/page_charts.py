"""Charts of the page as Vega-Lite specifications, and the script that draws them."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from probes.boards.groups import Group, model_key, model_labels, model_order
from probes.common.errors import UserError
from probes.common.files import published
from probes.records.charts import Chart, Curves, Gallery, Grid
from probes.records.record import Record
from probes.rendering.drawing import grids, heat_maps, lines
from probes.rendering.drawing.style import (
    SAID,
    SOLID,
    Drawing,
    Mark,
    Style,
    looks_of_models,
    printable_spec,
    stacked,
)
from probes.rendering.palette import SYMBOLS

Spec = dict[str, Any]
"""A chart as Vega-Lite reads it."""

INKS: dict[str, Any] = {"ink": "var(--ink)", "soft": "var(--soft)", "paper": "var(--paper)"}
"""Colours of the page, which follow the reader's scheme."""

PAGE = Style(
    width=360,
    font="system-ui, sans-serif",
    title=14,
    text=12,
    small=11,
    line=2,
    marker=7,
    titled=False,
    hover=True,
    **INKS,
)

CELLS = Style(titled=False, **INKS)
"""Style of heat maps: they are drawn as wide as a column of a paper, and the page enlarges them."""

HEIGHT = 240
"""Height of a chart of curves."""


@dataclass(frozen=True)
class PageChart:
    """A chart with its caption.

    Attributes:
        panels: specifications by model; of a chart of all models one, named "".
        task: by which the page is filtered; empty for none.
    """

    title: str
    note: str
    panels: dict[str, Spec]
    task: str = ""


def page_chart(chart: Chart, models: Sequence[str], title: str = "", task: str = "") -> PageChart:
    """A chart in the style of the page.

    Args:
        models: all models of the page, which have the same colour in every chart.
        title: in place of the chart's own.
    """
    match chart:
        case Curves():
            panels = {"": spec(_curves(chart, models), PAGE)} if chart.models else {}
        case Grid():
            panels = {label: _grid(chart, label) for label in chart.panels}
        case Gallery():
            panels = {label: _gallery(chart, label) for label in chart.panels}
    return PageChart(title or chart.title, chart.note, panels, task)


def spec(drawing: Drawing, style: Style) -> Spec:
    """A drawing as JSON, with the configuration of its style."""
    made: Spec = drawing.to_dict(validate=False)
    return made | {"config": style.config}


def _curves(chart: Curves, models: Sequence[str]) -> Drawing:
    """One panel, and below it the names of lines if a model has several."""
    looks = lines.looks_of_both(chart, models)
    panel = lines.panel(replace(chart, title=""), looks, PAGE, PAGE.width, height=HEIGHT)
    names = chart.lines
    if len(names) < 2:
        return panel
    marks = looks.marks() if looks.by == "line" else []
    dashes = looks.dashes if looks.dashed == "line" else dict.fromkeys(names, SOLID)
    colours = {mark.name: mark.colour for mark in marks}
    key = [Mark(name, colours.get(name, PAGE.ink), dashes[name]) for name in names]
    return stacked([panel], 1, "", PAGE, key, PAGE.width)


def _grid(grid: Grid, label: str) -> Spec:
    """One model's heat map, whose cells say their numbers and cards where they are pointed at."""
    panel, (low, high) = grid.panels[label], grid.span
    one = replace(grid, panels={label: panel}, title="", low=low, high=high)
    rows, columns = grids.distinct_names(panel.rows), grids.distinct_names(panel.columns)
    cards = {
        (row, column): {"about": card.title, **dict(card.lines)}
        for row, own in zip(rows, grid.cards.get(label, ()), strict=False)
        for column, card in zip(columns, own, strict=True)
        if card
    }

    def said(row: dict[str, Any]) -> dict[str, str]:
        about = cards.get((row["row"], row["column"]), {})
        return {grid.down: row["row"], grid.across: row["column"], "value": row["text"], **about}

    return _saying(grids.of_grid(one, CELLS, CELLS.width - 40), said)


def _gallery(gallery: Gallery, label: str) -> Spec:
    """One model's pictures, which say where and of what kind they are."""
    low, high = gallery.span
    one = replace(gallery, panels={label: gallery.panels[label]}, title="", low=low, high=high)

    def said(row: dict[str, Any]) -> dict[str, str]:
        return {gallery.down: row["row"], gallery.across: row["column"], "sign": row["mark"]}

    return _saying(grids.of_gallery(one, CELLS, CELLS.width - 40), said)


def _saying(drawing: Drawing, said: Callable[[dict[str, Any]], dict[str, str]]) -> Spec:
    """A drawing whose cells have these tooltips."""
    made = spec(drawing, CELLS)
    for row in chain(*made["datasets"].values()):
        if "row" in row:  # The key of a gallery has rows of its own.
            row["said"] = said(row)
    panel = made["vconcat"][0] if "vconcat" in made else made
    for layer in panel["layer"]:
        layer["mark"]["tooltip"] = SAID.to_dict()
    return made


def expected_layers(group: Group) -> PageChart | None:
    """Expected layers as bars, with centres of gravity; None if no result has been localised."""
    made = heat_maps.localisation(group, PAGE, PAGE.width)
    if made is None:
        return None
    note = (
        "Where in the model a task's labels become decodable (Tenney et al. 2019a). Bars: expected "
        "layer with its 95 % interval. Marks: centre of gravity. Undefined: the mix of all layers "
        "does not gain on layer 0."
    )
    return PageChart("Expected layer by task", note, {"": spec(made, PAGE)})


def not_measured(lacking: Iterable[tuple[str, str, Mapping[str, str]]]) -> list[str]:
    """Sentences that say which charts lack which models, and why.

    Args:
        lacking: titles of charts, each with a task, or none, and the reasons by model.
    """
    tasks: dict[tuple[str, str, str], list[str]] = {}
    for title, task, missing in lacking:
        for why in dict.fromkeys(missing.values()):
            names = ", ".join(name for name, reason in missing.items() if reason == why)
            tasks.setdefault((title, names, why), []).append(task)
    return [
        f"Not measured: {title} of {names}{' on ' + ', '.join(each) if any(each) else ''}: {why}."
        for (title, names, why), each in tasks.items()
    ]


def packed(data: Any) -> str:
    """Data as the page carries them: compressed JSON, in letters that mean nothing in HTML."""
    text = json.dumps(printable_spec(data), separators=(",", ":"), allow_nan=False)
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()


def script() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script.

    Bundling takes three seconds, so the script is kept in the user's cache.
    """
    import pooch
    import vl_convert

    path = Path(pooch.os_cache("probing-suite")) / f"vega-{version('vl-convert-python')}.js"
    if path.is_file():
        return path.read_text(encoding="utf-8")
    text: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    text = text.replace("</script", "<\\/script")
    try:
        with published(path) as temporary:
            temporary.write_text(text, encoding="utf-8")
    except UserError:  # A cache that cannot be written costs time alone.
        pass
    return text


class PageModel(NamedTuple):
    """A model as the page shows it.

    Attributes:
        record: any record of it.
        glyph: its marker in charts, as a character.
        random: whether its weights were never trained; it has its model's colour, dotted.
    """

    record: Record
    colour: str
    glyph: str
    random: bool


def page_models(found: Mapping[Path, Record]) -> dict[str, PageModel]:
    """Models by label, each followed by its random twins."""
    labels = model_labels(found)
    firsts: dict[str, Record] = {}
    for record in found.values():
        firsts.setdefault(labels[model_key(record)], record)
    looks = looks_of_models(sorted(firsts, key=model_order))
    return {
        label: PageModel(
            firsts[label], colour, SYMBOLS[shape][label in looks.open], label in looks.open
        )
        for label, colour, shape in zip(looks.names, looks.colours, looks.shapes, strict=True)
    }
