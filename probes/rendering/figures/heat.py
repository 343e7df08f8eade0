"""Scores by layer and task, after Liu et al. 2019a: a panel per model."""

from __future__ import annotations

from pathlib import Path

from probes.boards.groups import Group
from probes.rendering.figures.style import COLUMN, saved
from probes.rendering.heatmap import panel, scale


def draw(path: Path, group: Group, width: float) -> None:
    """Draw the heat maps of all models of a group; a task's colours span all of them."""
    models = group.models
    n_columns = min(len(models), 1 if width == COLUMN else 2)
    n_rows = -(-len(models) // n_columns)
    n_layers = max(len(u.results[m].layers) for u in group.units for m in u.results)
    with saved(path, width, 0.4 + n_rows * (0.65 + 0.17 * n_layers)) as figure:
        panels = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
        for axes, model in zip(panels, models, strict=False):
            units = [unit for unit in group.units if model in unit.results]
            among = [list(unit.results.values()) for unit in units]
            image = panel(axes, [unit.beside_twins(model) for unit in units], 6.2, among)
            axes.set_title(model)
            axes.set_ylabel("layer")
        for axes in panels[len(models) :]:
            axes.set_visible(False)
        scale(figure, image, list(panels), size=6, location="bottom", aspect=40, shrink=0.5)
