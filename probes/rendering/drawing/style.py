"""Sizes, fonts and colours of all charts, and what their encodings have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from probes.common.errors import printable_lines
from probes.rendering.palette import css
from probes.rendering.text_width import wrapped

INCH = 72
"""Units of a drawing: points on paper, pixels on a page."""

COLUMN, WIDE = 3.3, 6.8
"""Widths in inches: of a column, and of a page of two."""

FONTS = "Liberation Sans, DejaVu Sans, Arial, sans-serif"
"""The first comes with vl-convert; letters that it lacks are drawn in another installed font."""

SOLID, DASHED, DOTTED = [1.0, 0.0], [3.0, 2.0], [1.0, 1.5]

VIRIDIS = [css(i / 16) for i in range(17)]

Drawing = Any
"""A chart of Altair, whose kinds share no class that has what all of them have."""


@dataclass(frozen=True)
class Style:
    """How large and in which colours something is drawn.

    Attributes:
        width: of the whole drawing.
        title, text, small: sizes of letters.
        paper: fills open markers.
        titled: whether the drawing has a title.
        hover: whether marks say their numbers.
    """

    width: float = COLUMN * INCH
    font: str = FONTS
    title: float = 8
    text: float = 6.8
    small: float = 5.8
    line: float = 1.2
    marker: float = 3.2
    ink: str = "black"
    soft: str = "#6b7280"
    paper: str = "white"
    titled: bool = True
    hover: bool = False

    @property
    def config(self) -> dict[str, Any]:
        """The configuration of Vega-Lite."""
        words = {"labelColor": self.ink, "titleColor": self.ink, "titleFontWeight": "normal"}
        return {
            "font": self.font,
            "background": None,
            # Descriptions of marks would be expressions with titles in them.
            "aria": False,
            "padding": 2,
            "view": {"stroke": None},
            "title": {
                "fontSize": self.text + 0.4,
                "fontWeight": "normal",
                "color": self.ink,
                "offset": 3,
                "limit": 0,
            },
            "axis": {
                **words,
                "labelFontSize": self.text - 0.3,
                "titleFontSize": self.text,
                "labelLimit": 0,
                "titleLimit": 0,
                "titlePadding": 3,
                "labelPadding": 2,
                "tickSize": 3,
                "tickWidth": 0.6,
                "domainWidth": 0.6,
                "tickColor": self.soft,
                "domainColor": self.soft,
                "grid": False,
            },
            "legend": {
                **words,
                "labelFontSize": self.small,
                "titleFontSize": self.small,
                "titleLimit": 0,
                "labelLimit": 0,
                "gradientThickness": self.text - 1,
                "offset": 6,
                "titlePadding": 2,
            },
            "concat": {"spacing": 8},
            "line": {"strokeWidth": self.line},
            "point": {"size": self.marker**2, "strokeWidth": 0.8, "filled": False, "opacity": 1},
            "text": {"fontSize": self.small, "color": self.ink},
            "rule": {"color": self.soft, "strokeWidth": 0.7},
        }

    def columns(self, panels: int, least: float) -> int:
        """How many panels of such a width stand beside each other."""
        return max(1, min(panels, int(self.width // least)))


SAID = alt.ExprRef("datum.said")
"""The tooltip of a mark: names and values in a column, not titles, which would be expressions."""


def table(rows: Sequence[dict[str, Any]]) -> alt.InlineData:
    """Rows as data. A tuple is not copied whenever a chart is changed, as a list would be."""
    return alt.InlineData(values=tuple(rows))


def filled(column: str) -> alt.Fill:
    """Colours of texts that stand in the data."""
    return alt.Fill(f"{column}:N", scale=None)


def stroked(column: str) -> alt.Stroke:
    """Colours of lines that stand in the data."""
    return alt.Stroke(f"{column}:N", scale=None)


def dashes(column: str) -> alt.StrokeDash:
    """Dashes that stand in the data."""
    return alt.StrokeDash(f"{column}:N", scale=None)


def layered(
    layers: Sequence[alt.Chart], title: str, width: float, height: Any, style: Style, **more: Any
) -> Drawing:
    """A panel of marks over each other, with its title in lines that fit."""
    if title:
        more["title"] = wrapped(title, max(width, 100), style.text + 0.4)
    return alt.layer(*layers).properties(width=width, height=height, **more)


def viridis(
    field: str,
    span: tuple[float, float],
    title: str,
    style: Style,
    kind: Any = "linear",
    **more: Any,
) -> alt.Color:
    """A colour scale, with its bar below the drawing.

    Args:
        kind: Vega's name of the scale.
        more: of the bar.
    """
    low, high = span
    length = min(0.5 * style.width, 20 * style.text)
    lines = wrapped(title, max(length, 90), style.small) if title else None
    legend = {"orient": "bottom", "direction": "horizontal", "title": lines}
    return alt.Color(
        f"{field}:Q",
        scale=alt.Scale(
            type=kind, domain=[low, high if high > low else low + 1], range=VIRIDIS, clamp=True
        ),
        legend=alt.Legend(**legend, gradientLength=length, **more),  # type: ignore[arg-type]
    )


def printable_spec(spec: Any) -> Any:
    """A drawing's specification in whose texts control characters are escaped."""
    match spec:
        case str():  # U+200B is what distinguishes names that are equal
            return "\u200b".join(map(printable_lines, spec.split("\u200b")))
        case dict():
            return {name: printable_spec(x) for name, x in spec.items()}
        case list() | tuple():
            return list(map(printable_spec, spec))
    return spec
