"""Score by layer: a panel per task, a line with its band per model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from probes.boards.groups import Group
from probes.measurements.scores import ScoreMeasurement
from probes.records.curves import Curves
from probes.rendering.figures.style import COLUMN, looks, saved
from probes.statistics.formatting import shown

_BASELINE, GREY = "type majority", "#6b7280"


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
            panel(axes, found, styles)
            draw_levels(axes, found, {_BASELINE} & found.levels.keys(), named=False)
            axes.set_title(group.short_title(unit))
        for axes in panels[len(group.units) :]:
            axes.set_visible(False)
        lines = [Line2D([], [], **style, label=model) for model, style in styles.items()]
        lines.append(Line2D([], [], color=GREY, linestyle="--", linewidth=0.8, label=_BASELINE))
        figure.legend(handles=lines, loc="outside lower center", ncols=n_columns, frameon=False)


def panel(axes: Any, found: Curves, styles: Mapping[str, dict[str, Any]]) -> None:
    """Draw one curve per model, with its band."""
    for model, points in found.models.items():
        known = [(p.x, found.scale * p.value, p.interval) for p in points if p.value is not None]
        places = [x for x, *_ in known]
        axes.plot(places, [value for _, value, _ in known], **styles[model])
        banded = [(x, *bounds) for x, _, bounds in known if bounds]
        axes.fill_between(
            [x for x, *_ in banded],
            [found.scale * low for _, low, _ in banded],
            [found.scale * high for *_, high in banded],
            color=styles[model]["color"],
            alpha=0.18,
            linewidth=0,
        )
    axes.set_xlabel(found.what)
    axes.set_ylabel(found.axis)
    if found.log:
        every = sorted({p.x for points in found.models.values() for p in points})
        axes.set_xscale("log", base=2)
        axes.set_xticks(every, [f"{x:,}" for x in every])
        axes.minorticks_off()
    else:
        axes.xaxis.set_major_locator(MaxNLocator(7, integer=True))


def draw_levels(axes: Any, found: Curves, names: Iterable[str], *, named: bool) -> None:
    """Draw levels as lines; those that are far off and would flatten the curves, as text.

    Args:
        named: whether lines are named beside them.
    """
    low, high = axes.get_ylim()
    span, far = high - low, []
    for name in names:
        value = found.scale * found.levels[name]
        if low - span < value < high + span:
            axes.axhline(value, color=GREY, linestyle="--", linewidth=0.8, zorder=0)
            if named:
                at = {"transform": axes.get_yaxis_transform(), "ha": "right", "va": "bottom"}
                axes.text(0.99, value, name, fontsize=5.5, color=GREY, **at)
        else:
            text = shown(found.levels[name], found.metric) if found.metric else f"{value:.2f}"
            far.append(f"{'↓' if value < low else '↑'} {name} {text}")
    if far:
        low, high = axes.get_ylim()
        axes.set_ylim(low - 0.15 * (high - low), high)
        axes.text(0.02, 0.03, " · ".join(far), transform=axes.transAxes, fontsize=5.5, color=GREY)
