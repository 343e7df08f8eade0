"""Numbers by row and column as heat maps: a panel for each model, all of one scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import altair as alt

from probes.records.charts import Grid, Panel
from probes.rendering.drawing.style import (
    Drawing,
    Style,
    filled,
    layered,
    stacked,
    table,
    text_width,
    viridis,
)

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
