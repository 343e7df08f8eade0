"""Numbers by row and column as heat maps: a panel for each model, all of one scale."""

from __future__ import annotations

from typing import Any

import altair as alt

from probes.records.charts import Grid, Panel
from probes.rendering.drawing.style import Drawing, Style, filled, layered, stacked, table, viridis
from probes.rendering.words import text_width

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
    rows: list[dict[str, Any]] = [
        {
            "row": row,
            "column": column,
            "value": value,
            "text": grid.text(value),
            "ink": "black" if (grid.place(value) or 0) > 0.6 else "white",
        }
        for row, values in zip(each.rows, each.values, strict=True)
        for column, value in zip(each.columns, values, strict=True)
        if value is not None
    ]
    across = width / len(each.columns)
    base = alt.Chart(table(rows)).encode(
        x=names("column", each.columns, grid.across, across, style),
        y=names("row", each.rows[::-1], grid.down, cell, style, upright=True),
    )
    bar: dict[str, Any] = {"tickMinStep": 1} if grid.digits == 0 else {}
    layers = [
        base.mark_rect().encode(
            color=viridis("value", grid.span, legend_title(grid), style, tickCount=5, **bar)
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


def legend_title(grid: Grid) -> str:
    """What the colours of a grid are: its title, which is not written over a part of a figure."""
    return grid.title


def names(
    column: str,
    every: Any,
    title: str,
    step: float,
    style: Style,
    *,
    upright: bool = False,
) -> Any:
    """An axis of names in their order: of each, or of as many as there is room for.

    Args:
        step: room of one.
        upright: whether it is the axis of y.
    """
    size = min(style.text - 0.3, max(step, 4))
    longest = max((text_width(name, size) for name in every), default=0)
    turned = not upright and longest > step - 1
    room = 1.15 * size if upright or turned else step
    skipped = -(-room // step) if step < room else 1
    kept = list(every)[:: int(skipped)] if not upright else list(every)[::-1][:: int(skipped)]
    axis = alt.Axis(
        values=kept,
        labelAngle=-90 if turned else 0,
        labelFontSize=size,
        labelOverlap=False,
        ticks=False,
        domain=False,
    )
    scale = alt.Scale(domain=list(every), padding=0)
    kind = alt.Y if upright else alt.X
    return kind(f"{column}:N", sort=None, title=title or None, axis=axis, scale=scale)
