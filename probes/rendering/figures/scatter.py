"""Points in planes without units: a plane for each model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.lines import Line2D

from probes.records.scatter import Scatter, ScatterPoint
from probes.rendering.figures.style import COLUMN, looks_of_lines, saved
from probes.rendering.labels import plane, sides

_MARKER, _LETTER = 3.5, 4.5
"""Heights in points."""

_OFFSETS: dict[str, dict[str, Any]] = {
    "right": {"xytext": (2.2, 0), "ha": "left", "va": "center_baseline"},
    "left": {"xytext": (-2.2, 0), "ha": "right", "va": "center_baseline"},
    "top": {"xytext": (0, 2), "ha": "center", "va": "bottom"},
    "bottom": {"xytext": (0, -2), "ha": "center", "va": "top"},
}
"""Where a text stands relative to its point."""

_INK = "#444b54"


def draw(path: Path, scatter: Scatter, width: float) -> None:
    """Draw a plane for each model: groups by marker, levels (or else groups) by colour."""
    n_columns = min(len(scatter.points), 1 if width == COLUMN else 2)
    n_rows = -(-len(scatter.points) // n_columns)
    side = min(width / n_columns - 0.1, 4.5)
    looks = looks_of_lines(scatter.groups)
    named = [group for group in scatter.groups if group]
    in_legend = int(width / 1.3)
    height = 0.35 + n_rows * (side + 0.3) + 0.14 * -(-len(named) // in_legend)
    with saved(path, width, height + (0.35 if scatter.scale else 0)) as figure:
        places = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
        for axes, (label, points) in zip(places, scatter.points.items(), strict=False):
            drawn = _plane(axes, scatter, points, looks, 72 * (side - 0.1))
            axes.set_title(label)
        for axes in places[len(scatter.points) :]:
            axes.set_visible(False)
        figure.suptitle(scatter.title, fontsize=8)
        if scatter.scale and drawn:
            at: dict[str, Any] = {
                "ax": list(places),
                "location": "bottom",
                "aspect": 40,
                "shrink": 0.5,
            }
            bar = figure.colorbar(drawn, label=scatter.scale, pad=0.02, **at)
            bar.outline.set_visible(False)
            bar.ax.tick_params(labelsize=6)
        if len(named) > 1:
            plain = {"color": _INK} if scatter.scale else {}
            styles = {group: {**looks[group], **plain, "linestyle": ""} for group in named}
            lines = [Line2D([], [], **style, label=group) for group, style in styles.items()]
            figure.legend(handles=lines, loc="outside lower center", ncols=in_legend, frameon=False)


def _plane(
    axes: Any,
    scatter: Scatter,
    points: Sequence[ScatterPoint],
    looks: dict[str, dict[str, Any]],
    extent: float,
) -> Any:
    """Draw one plane; return what its levels are drawn by, None if no point has one."""
    by_level = None
    low, high = scatter.span
    for group, look in looks.items():
        own = [p for p in points if p.group == group]
        for leveled in (True, False):
            these = [p for p in own if (p.level is not None) == leveled]
            if not these:
                continue
            colours: dict[str, Any] = {"c": look["color"]}
            if leveled:
                colours = {"c": [p.level for p in these], "vmin": low, "vmax": high}
            made = axes.scatter(
                [p.x for p in these],
                [p.y for p in these],
                s=_MARKER**2,
                marker=look["marker"],
                linewidths=0,
                label=group,
                **colours,
            )
            by_level = made if leveled else by_level
    for point, side in zip(points, sides(points, extent, _MARKER, _LETTER), strict=True):
        if side:
            at = {"textcoords": "offset points", "fontsize": _LETTER, "color": _INK}
            axes.annotate(point.text, (point.x, point.y), **at, **_OFFSETS[side])
    square = plane(points)
    axes.set_xlim(square.left, square.right)
    axes.set_ylim(square.bottom, square.top)
    axes.set_aspect("equal")
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set(visible=True, linewidth=0.4, color="#9aa1a9")
    return by_level
