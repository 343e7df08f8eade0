"""Charts of measurements of a corpus: curves, grids of numbers as heat maps, and others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from textwrap import fill
from typing import Any

from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from probes.records.charts import Chart, Grid, Panel
from probes.records.curves import Curves
from probes.records.gallery import Gallery
from probes.records.scatter import Scatter
from probes.rendering.figures import gallery, scatter
from probes.rendering.figures.curves import draw_levels, panel
from probes.rendering.figures.style import COLUMN, looks, looks_of_lines, saved

_CELL = 0.2
"""Height of a cell of a grid in inches."""

_LARGEST, _SMALLEST = 6.2, 3.5
"""Sizes in points of numbers in cells; if even the smallest does not fit, none is written."""


def draw(path: Path, chart: Chart, width: float) -> None:
    """Draw a chart of one or more models."""
    match chart:
        case Curves():
            _draw_curves(path, chart, width)
        case Grid():
            _draw_grid(path, chart, width)
        case Scatter():
            scatter.draw(path, chart, width)
        case Gallery():
            gallery.draw(path, chart, width)


def _draw_curves(path: Path, curves: Curves, width: float) -> None:
    """One model has its lines in one panel; of several models, each line has a panel."""
    if len(curves.models) == 1:
        panels = [("", _by_line(curves))]
        styles = looks_of_lines(list(panels[0][1].models))
    else:
        panels = [(line, _of_line(curves, line)) for line in curves.lines]
        styles = looks(list(curves.models))
    n_columns = min(len(panels), 2 if width == COLUMN else 3)
    n_rows = -(-len(panels) // n_columns)
    names = [name for name in styles if name]
    in_legend = max(n_columns, 2)
    height = 0.3 + 0.15 * -(-len(names) // in_legend) + n_rows * (1.5 if n_columns > 1 else 1.9)
    with saved(path, width, height) as figure:
        places = figure.subplots(n_rows, n_columns, squeeze=False, sharey=True).ravel()
        for place, (axes, (title, found)) in enumerate(zip(places, panels, strict=False)):
            panel(axes, found, styles)
            axes.set_title(fill(title, 26))
            if place % n_columns:
                axes.set_ylabel("")
        for axes, (_, found) in zip(places, panels, strict=False):
            draw_levels(axes, found, found.levels, named=True)
        for axes in places[len(panels) :]:
            axes.set_visible(False)
        figure.suptitle(curves.title, fontsize=8)
        if len(names) > 1 or len(curves.models) > 1:
            lines = [Line2D([], [], **styles[name], label=name) for name in names]
            figure.legend(handles=lines, loc="outside lower center", ncols=in_legend, frameon=False)


def _by_line(curves: Curves) -> Curves:
    """The lines of the only model, each as if it were a model."""
    ((_, points),) = curves.models.items()
    lines = {line: [p for p in points if p.line == line] for line in curves.lines}
    return replace(curves, models=lines)


def _of_line(curves: Curves, line: str) -> Curves:
    models = {m: [p for p in points if p.line == line] for m, points in curves.models.items()}
    return replace(curves, models=models)


def _draw_grid(path: Path, grid: Grid, width: float) -> None:
    """Draw a heat map for each model, all of one scale."""
    n_columns = min(len(grid.panels), 1 if width == COLUMN else 2)
    n_rows = -(-len(grid.panels) // n_columns)
    most = max(len(each.rows) for each in grid.panels.values())
    cell = max(0.05, min(_CELL, 7 / most))
    with saved(path, width, 0.75 + n_rows * (0.6 + cell * most)) as figure:
        places = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
        for axes, (label, each) in zip(places, grid.panels.items(), strict=False):
            across = 72 * (width / n_columns - 0.7) / len(each.columns)
            image = _heat_map(axes, grid, each, across, 72 * cell)
            axes.set_title(label)
        for axes in places[len(grid.panels) :]:
            axes.set_visible(False)
        figure.suptitle(grid.title, fontsize=8)
        bar = figure.colorbar(image, ax=list(places), location="bottom", aspect=40, shrink=0.5)
        bar.outline.set_visible(False)
        if grid.digits == 0:
            bar.ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        bar.ax.tick_params(labelsize=6)


def _heat_map(axes: Any, grid: Grid, each: Panel, width: float, height: float) -> Any:
    """Draw one heat map, with its numbers if they fit.

    Args:
        width, height: of a cell, in points.
    """
    low, high = grid.span
    values = [[float("nan") if x is None else x for x in row] for row in each.values]
    image = axes.imshow(values, cmap="viridis", vmin=low, vmax=high, aspect="auto", origin="lower")
    texts = [[grid.text(value) for value in row] for row in each.values]
    longest = max((len(text) for row in texts for text in row), default=0)
    # A digit is about .6 as wide as it is high.
    size = min(_LARGEST, width / (0.62 * longest + 0.4), height / 1.3)
    for y, row in enumerate(texts if size >= _SMALLEST else []):
        for x, text in enumerate(row):
            colour = "black" if (grid.place(each.values[y][x]) or 0) > 0.6 else "white"
            axes.text(x, y, text, ha="center", va="center", color=colour, size=size)
    wide = max(map(len, each.columns)) * 0.62 * _LARGEST > width
    _name(axes.set_xticks, each.columns, width, rotation=90 if wide else 0)
    _name(axes.set_yticks, each.rows, height)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_xlabel(grid.across)
    axes.set_ylabel(grid.down)
    return image


def _name(set_ticks: Any, names: Sequence[str], room: float, **more: Any) -> None:
    """Name rows or columns: every one, or as many as there is room for, given that of one."""
    step = -(-8 // max(1, int(room)))
    set_ticks(range(0, len(names), step), names[::step], **more)
