"""Writes charts as PDF, SVG and PNG files, by vl-convert."""

from __future__ import annotations

import re
import resource
from html import escape
from pathlib import Path
from typing import Any

from probes.common.errors import UserError, printable_lines
from probes.common.files import published
from probes.tables.charts import FONTS, INCH, Chart, Style

FORMATS = (".pdf", ".svg", ".png")
"""Formats of figures, as their files' names end."""

ADDRESSES = 128 << 30
"""Bytes of addresses that drawing may reserve; 67 GB were measured."""


def svg(chart: Chart, style: Style) -> str:
    """A chart as SVG, which holds no address of the network."""
    return drawn({**chart.to_dict(), "config": style.config})


def drawn(specification: dict[str, Any]) -> str:
    """A specification of Vega-Lite as SVG."""
    import vl_convert

    spec = printable_spec(specification)
    text, numbers = vl_convert.vegalite_to_svg(spec, allowed_base_urls=[]), dict[str, str]()
    # The process counts clips through all charts, and equal charts are to be equal files.
    return re.sub(
        r'((?:clip-path="url\(#|<clipPath id=")clip)(\d+)',
        lambda clip: clip[1] + numbers.setdefault(clip[2], str(len(numbers))),
        text,
    )


def save(chart: Chart, path: Path, style: Style) -> None:
    """Write a chart in the format that the file's name ends in; none is wider than the style."""
    drawing = svg(chart, style)
    width, height = (float(x) for x in re.findall(r'(?:width|height)="([\d.]+)"', drawing)[:2])
    if width > style.width:  # Axes and legends took more than they were given.
        size = f'width="{style.width}" height="{height * style.width / width}"'
        drawing = re.sub(r'width="[\d.]+" height="[\d.]+"', size, drawing, count=1)
    write(path, drawing)


def write(path: Path, svg_text: str, dpi: int = 300) -> None:
    """Write an SVG in the format that the file's name ends in."""
    import vl_convert

    match path.suffix.lower():
        case ".pdf":
            data = vl_convert.svg_to_pdf(svg_text)
        case ".png":
            data = vl_convert.svg_to_png(svg_text, scale=dpi / INCH, ppi=INCH)
        case _:
            # Units are points.
            data = re.sub(r'(width|height)="([\d.]+)"', r'\1="\2pt"', svg_text, count=2).encode()
    with published(path) as temporary:
        temporary.write_bytes(data)


def printable_spec(spec: Any) -> Any:
    """A specification in whose texts control characters are escaped."""
    match spec:
        case str():
            return printable_lines(spec)
        case dict():
            return {name: printable_spec(x) for name, x in spec.items()}
        case list() | tuple():
            return list(map(printable_spec, spec))
    return spec


def no_room() -> str:
    """The reason why nothing can be drawn in this process; empty if something can.

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
    fallback = _font_in_pdf("no font is called this")
    if (font := _font_in_pdf(name)) == fallback and _font_key(name) not in _font_key(font):
        raise UserError(
            f"--font {name}: no such font is installed; name its family as the system does, or "
            "its folder by --fonts."
        )
    return f"{name}, {FONTS}"


def _font_in_pdf(family: str) -> str:
    """The name of the font that a letter is drawn in, as the PDF file has it."""
    import vl_convert

    text = f'<text y="9" font-family="{escape(family)}">a</text>'
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9">{text}</svg>'
    match = re.search(rb"/BaseFont\s*/(?:[A-Z]{6}\+)?([^\s/]+)", vl_convert.svg_to_pdf(svg))
    return match[1].decode() if match else ""


def _font_key(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
