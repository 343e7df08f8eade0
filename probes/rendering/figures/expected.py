"""Expected layers after Tenney et al. 2019a: a panel per model, a bar per task."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from probes.boards.groups import Group, Unit
from probes.common.errors import UserError
from probes.measurements.localisation import mixes_of, no_localisation
from probes.rendering.figures.style import COLUMN, saved
from probes.rendering.palette import COLOURS


def draw(path: Path, group: Group, width: float) -> None:
    """Draw expected layers with their intervals, and centres of gravity.

    Raises:
        UserError: no result has an expected layer.
    """
    units = [u for u in group.units if any(map(mixes_of, u.results.values()))]
    if not units:
        why = no_localisation(group.units[0].first)
        raise UserError(f"{group.title}: no result has an expected layer ({why}).")
    models = group.models
    n_columns = min(len(models), 1 if width == COLUMN else 2)
    n_rows = -(-len(models) // n_columns)
    height = 0.4 + n_rows * (0.55 + 0.24 * len(units))
    with saved(path, width, height) as figure:
        panels = figure.subplots(n_rows, n_columns, squeeze=False, sharey=True).ravel()
        for axes, model in zip(panels, models, strict=False):
            _panel(axes, units, model)
            axes.set_yticks(range(len(units)), [group.short_title(unit) for unit in units])
        for axes in panels[len(models) :]:
            axes.set_visible(False)
        key = [
            Patch(color=COLOURS[0], label="expected layer"),
            Line2D([], [], color=COLOURS[1], marker="D", linestyle="", label="centre of gravity"),
            Patch(facecolor="white", edgecolor="#6b7280", hatch="////", label="undefined"),
        ]
        figure.legend(handles=key, loc="outside lower center", ncols=3, frameon=False)


def _panel(axes: Any, units: list[Unit], model: str) -> None:
    """Undefined expected layers are hatched over all layers; missing ones are labelled."""
    n_layers = max(u.results[model].model.n_layers for u in units if model in u.results)
    for y, unit in enumerate(units):
        result = unit.results.get(model)
        found = mixes_of(result) if result else None
        if found is None:
            axes.text(0.1, y, "not measured", va="center", fontsize=6, color="#6b7280")
            continue
        expected, gravity = found.expected_layer, found.centre_of_gravity
        if expected.value is None:
            axes.barh(y, n_layers, 0.6, color="white", edgecolor="#c3c8ce", hatch="////")
        else:
            axes.barh(y, expected.value, 0.6, color=COLOURS[0])
            # The interval is drawn below the number, so that neither hides the other.
            axes.text(
                0.08, y - 0.07, f"{expected.value:.1f}", va="center", fontsize=6, color="white"
            )
            if expected.interval:
                axes.hlines(y + 0.19, *expected.interval, color="black", linewidth=1)
        if gravity.value is not None:
            axes.plot(gravity.value, y, "D", color=COLOURS[1], markeredgecolor="white")
    axes.set_xlim(0, n_layers)
    axes.set_ylim(len(units) - 0.5, -0.5)
    axes.set_title(model, loc="left")
    axes.set_xlabel("layer")
