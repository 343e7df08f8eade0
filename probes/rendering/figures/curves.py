"""Score by layer: a panel per task, a line with its band per model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from probes.boards.groups import Group
from probes.measurements.scores import ScoreMeasurement
from probes.records.curves import Curves
from probes.rendering.figures.style import COLUMN, looks, saved
from probes.statistics.formatting import shown

_BASELINE, _GREY = "type majority", "#6b7280"


def draw(path: Path, group: Group, width: float) -> None:
    """Draw the layer curves of all models of a group."""
    n_columns = min(len(group.units), 2 if width == COLUMN else 3)
    n_rows = -(-len(group.units) // n_columns)
    styles = looks(group.models)
    n_lines = -(-len(styles) // n_columns) + 1
    with saved(path, width, 0.15 * n_lines + 1.35 * n_rows) as figure:
        panels = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
        for axes, unit in zip(panels, group.units, strict=False):
            found = ScoreMeasurement().curves(unit.results)
            _panel(axes, found, styles)
            axes.set_title(group.short_title(unit))
            axes.set_ylabel(found.axis)
        for axes in panels[len(group.units) :]:
            axes.set_visible(False)
        lines = [Line2D([], [], **style, label=model) for model, style in styles.items()]
        lines.append(Line2D([], [], color=_GREY, linestyle="--", linewidth=0.8, label=_BASELINE))
        figure.legend(handles=lines, loc="outside lower center", ncols=n_columns, frameon=False)


def _panel(axes: Any, found: Curves, styles: dict[str, dict[str, Any]]) -> None:
    for model, points in found.models.items():
        known = [(p.x, found.scale * p.value, p.interval) for p in points if p.value is not None]
        layers = [layer for layer, *_ in known]
        axes.plot(layers, [value for _, value, _ in known], **styles[model])
        banded = [(layer, *bounds) for layer, _, bounds in known if bounds]
        axes.fill_between(
            [layer for layer, *_ in banded],
            [found.scale * low for _, low, _ in banded],
            [found.scale * high for *_, high in banded],
            color=styles[model]["color"],
            alpha=0.18,
            linewidth=0,
        )
    _baseline(axes, found)
    axes.xaxis.set_major_locator(MaxNLocator(7, integer=True))
    axes.set_xlabel("layer")


def _baseline(axes: Any, found: Curves) -> None:
    """Type majority as a line; if it is far off and would flatten the curves, as text."""
    level = found.levels.get(_BASELINE)
    if level is None:
        return
    low, high = axes.get_ylim()
    value = found.scale * level
    if 2 * low - high < value < 2 * high - low:
        axes.axhline(value, color=_GREY, linestyle="--", linewidth=0.8, zorder=0)
    else:
        axes.set_ylim(low - 0.15 * (high - low), high)
        text = f"{'↓' if value < low else '↑'} {_BASELINE} {shown(level, found.metric)}"
        axes.text(0.02, 0.03, text, transform=axes.transAxes, fontsize=5.5, color=_GREY)
