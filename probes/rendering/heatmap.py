"""Layer × task tables as heat maps."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from probes.boards.layer_tables import layer_rows
from probes.measurements.cells import metric_name
from probes.records.result import Result
from probes.records.titles import limit_mark, model_title

_MARK = "#ff5a36"


def draw_heat_map(path: Path, results: Sequence[Result]) -> None:
    """Draw one panel per probe family, coloured from each task's worst layer to its best."""
    families = list(dict.fromkeys(result.probe.family for result in results))
    n_layers = max(len(result.layers) for result in results)
    n_tasks = max(sum(r.probe.family == f for r in results) for f in families)
    figure = Figure(
        figsize=(2.0 + len(families) * (0.6 + 1.15 * n_tasks), 1.9 + 0.42 * n_layers),
        layout="constrained",
    )
    panels = figure.subplots(1, len(families), squeeze=False)[0]
    for axes, family in zip(panels, families, strict=True):
        chosen = [result for result in results if result.probe.family == family]
        image = panel(axes, chosen)
        axes.set_title(f"{family} probe", fontsize=11)
    panels[0].set_ylabel("layer")
    scale(figure, image, list(panels))
    first = results[0]
    figure.suptitle(
        f"{model_title(first)} on {first.corpus.name}{limit_mark(first)}: test scores by layer "
        "(framed: best on dev; ▽ not above the floor)",
        fontsize=12,
        parse_math=False,
    )
    with warnings.catch_warnings():
        # Letters of a model's name that are not in the font are drawn as boxes.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure.savefig(path, dpi=150)


def scale(figure: Figure, image: Any, panels: list[Any], size: float = 8, **where: Any) -> None:
    """Add the colour scale; `size` is that of its text, in points."""
    bar = figure.colorbar(image, ax=panels, pad=0.02, **{"shrink": 0.8, **where})
    bar.set_ticks([0, 1], labels=["task's worst", "task's best"])
    bar.ax.tick_params(labelsize=size)
    bar.outline.set_visible(False)


def panel(
    axes: Any,
    results: Sequence[Result],
    size: float = 10,
    among: Sequence[Sequence[Result]] = (),
) -> Any:
    """One family's scores: a row per layer, a column per task.

    Args:
        size: of the text, in points.
        among: the results whose scores span the colours of each column; see `layer_rows`.
    """
    rows = layer_rows(results, among)
    places = [[cell.place or 0.0 for cell in row.cells[1:]] for row in rows]
    image = axes.imshow(places, cmap="viridis", vmin=0, vmax=1, aspect="auto")
    for y, row in enumerate(rows):
        for x, cell in enumerate(row.cells[1:]):
            colour = "black" if places[y][x] > 0.6 else "white"
            weight = "bold" if cell.best else "normal"
            font = {"color": colour, "weight": weight, "size": size}
            axes.text(x, y, cell.text + "▽" * cell.floored, ha="center", va="center", **font)
            if cell.best:
                axes.add_patch(_frame(x, y, size / 5))
    names = [
        f"{r.task.name.replace('$', chr(92) + '$')}\n{metric_name(r).replace(', ', chr(10))}"
        for r in results
    ]
    axes.set_xticks(range(len(results)), names)
    axes.set_yticks(range(len(rows)), [row.cells[0].text for row in rows])
    axes.tick_params(length=0, labelsize=0.9 * size)
    axes.spines[:].set_visible(False)
    return image


def _frame(x: int, y: int, width: float) -> Rectangle:
    corner = (x - 0.48, y - 0.47)
    return Rectangle(corner, 0.96, 0.94, fill=False, edgecolor=_MARK, linewidth=width)
