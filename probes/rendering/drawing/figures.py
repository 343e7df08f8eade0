"""Writes charts as PDF, SVG and PNG files of a given width, by vl-convert."""

from __future__ import annotations

import re
import resource
from collections.abc import Callable, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

from probes.boards.groups import Group
from probes.common.errors import UserError
from probes.common.files import published
from probes.records.charts import Chart, Curves, Gallery, Grid, PredictedTree
from probes.records.result import Result
from probes.rendering.drawing import arcs, grids, heat_maps, lines
from probes.rendering.drawing.style import FONTS, INCH, Style, printable_spec

OF_GROUPS: dict[str, Callable[[Group, Style, float], Any]] = {
    "heatmap": heat_maps.of_group,
    "expected-layers": heat_maps.of_localisation,
    "curves": lines.of_group,
}
"""Figures of scores."""

ADDRESSES = 128 << 30
"""What a process may reserve, at the least, if it is to draw; 67 GB were measured."""


def draw(path: Path, kind: str, chosen: Group | Chart | PredictedTree, style: Style) -> None:
    """Write the drawing of `drawn` to a file."""
    write(path, drawn(kind, chosen, style))


def drawn(kind: str, chosen: Group | Chart | PredictedTree, style: Style) -> str:
    """A figure of scores, a chart of models, or a tree as SVG, at the style's width."""
    match chosen:
        case Group():
            make: Callable[[Any, Style, float], Any] = OF_GROUPS[kind]
        case Curves():
            make = lines.of_curves
        case Grid():
            make = grids.of_grid
        case Gallery():
            make = grids.of_gallery
        case PredictedTree():
            make = arcs.of_tree
            style = replace(style, width=arcs.width_of(chosen, style.width))
    return fitted(lambda room: make(chosen, style, room), style)


def draw_layers(path: Path, results: Sequence[Result]) -> None:
    """Draw one model's scores on a corpus: the picture in a run's folder."""
    style = Style(width=60 + 62 * len(results))
    make = heat_maps.of_results
    svg = fitted(lambda room: make(results, style, room), style)
    write(path, svg, form=".png", dpi=150)


def no_room() -> str:
    """Why nothing can be drawn in this process; empty if it can.

    V8, which is in vl-convert, reserves many more addresses than it uses memory, and ends the
    process where it does not get them.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY or limit >= ADDRESSES:
        return ""
    return (
        f"drawing takes {ADDRESSES >> 30} GB of addresses (not of memory), and this process is "
        f"limited to {limit / 2**30:.1f} GB (ulimit -v)"
    )


def fitted(make: Callable[[float], Any], style: Style) -> str:
    """An SVG of exactly the style's width.

    Only Vega knows how much of it axes and titles take: what is left to the plots is found by
    drawing it.

    Args:
        make: gives the drawing for the room that its plots have together.
    """
    import vl_convert

    taken, svg = 40.0, ""
    for _ in range(4):
        spec = make(max(style.width - taken, 20)).to_dict(validate=False)
        drawn = printable_spec({**spec, "config": style.config})
        svg = vl_convert.vegalite_to_svg(drawn, allowed_base_urls=[])
        width, _ = _size(svg)
        if abs(width - style.width) <= 1:
            break
        taken += width - style.width
    return _widened(svg, style.width)


_SIZE = re.compile(r'width="([\d.]+)" height="([\d.]+)" viewBox="[^"]*"')


def _size(svg: str) -> tuple[float, float]:
    found = _SIZE.search(svg)
    assert found
    return float(found[1]), float(found[2])


def _widened(svg: str, width: float) -> str:
    """The same drawing on a white area that is a little wider, or as wide as what is drawn."""
    drawn, height = _size(svg)
    # Vega rounds to whole units, less than the margin.
    width = width if drawn <= width + 1 else drawn
    left = (drawn - width) / 2
    box = f'width="{width:g}" height="{height:g}" viewBox="{left:g} 0 {width:g} {height:g}"'
    area = f'<rect x="{left:g}" width="{width:g}" height="{height:g}" fill="white"/>'
    return re.sub(rf"{_SIZE.pattern}>", lambda _: f"{box}>{area}", svg, count=1)


def write(path: Path, svg: str, form: str = "", dpi: int = 300) -> None:
    """Write a drawing in the format that the file's name, or `form`, ends in."""
    import vl_convert

    match form or path.suffix.lower():
        case ".pdf":
            data = vl_convert.svg_to_pdf(svg)
        case ".png":
            data = vl_convert.svg_to_png(svg, scale=dpi / INCH, ppi=INCH)
        case _:
            # Units are points.
            data = re.sub(r'(width|height)="([\d.]+)"', r'\1="\2pt"', svg, count=2).encode()
    with published(path) as temporary:
        temporary.write_bytes(data)


def font_of(name: str, folder: Path | None) -> str:
    """The families to draw in: the one asked for, and others for letters that it lacks.

    Args:
        folder: with more fonts than those of the system.

    Raises:
        UserError: no such font is installed, or the folder is not there.
    """
    import vl_convert

    if folder is not None:
        if not folder.is_dir():
            raise UserError(f"--fonts {folder}: there is no such folder.")
        vl_convert.register_font_directory(str(folder.resolve()))
    if not name:
        return FONTS
    other = _drawn_in("no font is called this")
    if (found := _drawn_in(name)) == other and _plain(name) not in _plain(found):
        raise UserError(
            f"--font {name}: no such font is installed; name its family as the system does, or "
            "its folder by --fonts."
        )
    return f"{name}, {FONTS}"


def _drawn_in(family: str) -> str:
    """The name of the font that a letter is drawn in, as the PDF file has it."""
    import vl_convert

    text = f'<text y="9" font-family="{escape(family)}">a</text>'
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9">{text}</svg>'
    found = re.search(rb"/BaseFont\s*/(?:[A-Z]{6}\+)?([^\s/]+)", vl_convert.svg_to_pdf(svg))
    return found[1].decode() if found else ""


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
