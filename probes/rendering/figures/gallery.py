"""Small pictures in rows and columns, such as attention maps: a panel for each model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.colors import PowerNorm
from matplotlib.patches import Rectangle
from matplotlib.patheffects import withStroke

from probes.records.gallery import Gallery, GalleryPanel, Picture
from probes.rendering.figures.style import COLUMN, saved
from probes.rendering.palette import distinct

_HIGHEST, _MOST = 8.0, 0.6
"""Height of a panel, and side of a picture, in inches at most."""

_GAP = 0.18
"""Between pictures, relative to the distance of their centres."""


def draw(path: Path, gallery: Gallery, width: float) -> None:
    """Draw a panel for each model, all of one scale."""
    n_columns = min(len(gallery.panels), 1 if width == COLUMN else 2)
    n_rows = -(-len(gallery.panels) // n_columns)
    down = max(len(panel.rows) for panel in gallery.panels.values())
    across = max(len(panel.columns) for panel in gallery.panels.values())
    side = min((width / n_columns - 0.4) / across, _HIGHEST / down, _MOST)
    low, high = gallery.span
    scale = {"cmap": "viridis", "norm": PowerNorm(0.5, low, high), "interpolation": "nearest"}
    frames = distinct(gallery.key)
    in_legend = int(width / 1.3)
    height = 0.95 + n_rows * (1.02 * side * down + 0.5) + 0.14 * -(-len(frames) // in_legend)
    with saved(path, width, height) as figure:
        places = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
        images: list[Any] = []
        for axes, (label, panel) in zip(places, gallery.panels.items(), strict=False):
            images += _panel(axes, panel, side, frames, scale)
            axes.set_title(label)
            axes.set_xlabel(gallery.across)
            axes.set_ylabel(gallery.down)
        for axes in places[len(gallery.panels) :]:
            axes.set_visible(False)
        figure.suptitle(gallery.title, fontsize=8)
        if images:
            at: dict[str, Any] = {
                "ax": list(places),
                "location": "bottom",
                "aspect": 40,
                "shrink": 0.6,
            }
            bar = figure.colorbar(images[0], **at)
            bar.set_label("square-root scale", fontsize=6)
            bar.outline.set_visible(False)
            bar.ax.tick_params(labelsize=6)
        if frames:
            handles = [
                Rectangle((0, 0), 1, 1, fill=False, edgecolor=frames[group], label=label)
                for group, label in _labels(gallery).items()
            ]
            figure.legend(
                handles=handles, loc="outside lower center", ncols=in_legend, frameon=False
            )


def _labels(gallery: Gallery) -> dict[str, str]:
    """Each group's name, with its mark."""
    return {group: f"{group} ({mark})" if mark else group for group, mark in gallery.key.items()}


def _panel(
    axes: Any, panel: GalleryPanel, side: float, frames: dict[str, str], scale: dict[str, Any]
) -> list[Any]:
    """Draw the pictures of one model, centred on whole numbers; return their images."""
    images = []
    for y, row in enumerate(panel.pictures):
        for x, picture in enumerate(row):
            if picture is not None:
                images.append(_picture(axes, picture, x, y, scale))
                _decorate(axes, picture, x, y, 72 * side, frames)
    axes.set_xlim(-0.5, len(panel.columns) - 0.5)
    axes.set_ylim(-0.5, len(panel.rows) - 0.5)
    axes.set_aspect("equal")
    axes.set_xticks(range(len(panel.columns)), panel.columns)
    axes.set_yticks(range(len(panel.rows)), panel.rows)
    axes.tick_params(length=0, labelsize=min(6.5, 72 * side * 0.5))
    axes.spines[:].set_visible(False)
    return images


def _picture(axes: Any, picture: Picture, x: int, y: int, scale: dict[str, Any]) -> Any:
    values = [[float("nan") if v is None else v for v in row] for row in picture.values]
    half = 0.5 - _GAP / 2
    # The first row is at the top, although rows of pictures go up.
    return axes.imshow(values, extent=(x - half, x + half, y - half, y + half), **scale)


def _decorate(
    axes: Any, picture: Picture, x: int, y: int, side: float, frames: dict[str, str]
) -> None:
    """Draw the frame and the mark of a picture whose side is given in points."""
    half = 0.5 - _GAP / 2
    if picture.group:
        # Around the picture, of which the outermost rows and columns matter as much as others.
        line = min(0.9, 0.45 * _GAP * side)
        out = half + 0.4 * line / side
        frame = Rectangle((x - out, y - out), 2 * out, 2 * out, fill=False, linewidth=line)
        frame.set_edgecolor(frames[picture.group])
        axes.add_patch(frame)
    if picture.mark:
        size = min(5.5, 0.38 * side)
        axes.text(
            x + half - 0.06,
            y + half - 0.06,
            picture.mark,
            ha="right",
            va="top",
            size=size,
            color="white",
            path_effects=[withStroke(linewidth=size / 5, foreground="black")],
        )
