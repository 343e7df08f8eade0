"""Sizes, fonts and colours of all charts, and what their encodings have in common.

The width of text is estimated here, since nothing measures it before a chart is drawn.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import altair as alt

from probes.common.errors import printable_lines
from probes.extraction.model_names import pretrained_name
from probes.rendering.palette import COLOURS, SYMBOLS, css

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

    width: float = 237.6
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


_NARROW = frozenset("fijlrtI.,:;!'|()[]{}-/\\ \"`")
_BROAD = frozenset("mwMWQ@%—…&")


def text_width(text: str, size: float) -> float:
    """The width of a line of text; rather too much than too little.

    Args:
        size: height of the letters; the width has its unit.
    """
    return size * sum(map(_letter, text))


def _letter(letter: str) -> float:
    if unicodedata.combining(letter):
        return 0.0
    if unicodedata.east_asian_width(letter) in "WF":
        return 1.05
    if letter in _NARROW:
        return 0.4
    if letter in _BROAD:
        return 1.0
    return 0.72 if letter.isupper() or not letter.isascii() else 0.58


def wrapped(text: str, width: float, size: float) -> list[str]:
    """The text in lines of such a width; a word that is longer is broken."""
    lines = [""]
    for word in text.split():
        if lines[-1]:
            if text_width(f"{lines[-1]} {word}", size) <= width:
                lines[-1] += f" {word}"
                continue
            lines.append("")
        for letter in word:
            if lines[-1] and text_width(lines[-1] + letter, size) > width:
                lines.append("")
            lines[-1] += letter
    return lines


class Looks(NamedTuple):
    """How the series of a chart are told apart, by the names of models or of lines.

    Attributes:
        by: the column of the names, "model" or "line".
        dashes: of the names in the column `dashed`.
        open: names whose markers are not filled.
    """

    by: str
    names: list[str]
    colours: list[str]
    shapes: list[str]
    dashed: str
    dashes: dict[str, list[float]]
    open: frozenset[str] = frozenset()

    def marks(self) -> list[Mark]:
        """Each name as it stands in the key."""
        return [
            Mark(
                name,
                colour,
                self.dashes.get(name, SOLID) if self.dashed == self.by else SOLID,
                shape,
                filled=name not in self.open,
            )
            for name, colour, shape in zip(self.names, self.colours, self.shapes, strict=True)
        ]


def looks_of_models(models: Sequence[str]) -> Looks:
    """How models are drawn: random twins in their model's colour, dotted, with open markers."""
    bases = list(dict.fromkeys(map(pretrained_name, models)))
    places = [bases.index(pretrained_name(model)) for model in models]
    random = [model for model in models if model != pretrained_name(model)]
    return Looks(
        "model",
        list(models),
        [COLOURS[place % len(COLOURS)] for place in places],
        [list(SYMBOLS)[place // len(COLOURS) % len(SYMBOLS)] for place in places],
        "model",
        {model: DOTTED if model in random else SOLID for model in models},
        frozenset(random),
    )


class Mark(NamedTuple):
    """An entry of a key: a line, a marker, both, or a frame around a mark's letters."""

    name: str
    colour: str
    dash: list[float] | None = None
    shape: str = ""
    filled: bool = True


def key(marks: Sequence[Mark], width: float, style: Style) -> Drawing:
    """The names of what is drawn, in as many columns as fit.

    Vega-Lite would place them by the width of letters that it does not know.
    """
    sample, gap, size = 14.0, 8.0, style.text
    longest = max(text_width(mark.name, size) for mark in marks) + sample + gap
    columns = max(1, min(len(marks), int(width // longest)))
    rows, y = [], 0.0
    for start in range(0, len(marks), columns):
        lines = 1
        for i, mark in enumerate(marks[start : start + columns]):
            words = wrapped(mark.name, max(width - sample, 20), size)
            lines = max(lines, len(words))
            x = i * longest
            rows.append(
                {
                    "x": x,
                    "end": x + sample - 3,
                    "middle": x + (sample - 3) / 2,
                    "text": x + sample,
                    "y": y + 0.7 * size,
                    "name": words,
                    "colour": mark.colour,
                    "dash": mark.dash,
                    "shape": mark.shape,
                    "fill": mark.colour if mark.filled else style.paper,
                }
            )
        y += 1.45 * size * lines
    base = alt.Chart().encode(y=_at("y"))
    drawn = [
        base.properties(data=table([row for row in rows if row["dash"]]))
        .mark_rule(strokeWidth=style.line)
        .encode(_at("x"), x2="end", stroke=stroked("colour"), strokeDash=dashes("dash")),
        base.properties(data=table([row for row in rows if row["shape"]]))
        .mark_point(size=1.6 * style.marker**2)
        .encode(
            _at("middle", "x"),
            stroke=stroked("colour"),
            fill=filled("fill"),
            shape=alt.Shape("shape:N", scale=None),
        ),
        base.properties(data=table(rows))
        .mark_text(align="left", baseline="middle", fontSize=size, lineHeight=1.2 * size)
        .encode(_at("text", "x"), text="name:N"),
    ]
    return alt.layer(*drawn).properties(width=width, height=y)


def _at(name: str, channel: str = "") -> Any:
    """A position that is given in units of the drawing."""
    kind = alt.X if (channel or name) == "x" else alt.Y
    return kind(f"{name}:Q", scale=None, axis=None)


def stacked(
    panels: Sequence[Drawing],
    columns: int,
    title: str,
    style: Style,
    marks: Sequence[Mark] = (),
    room: float = 0,
    *,
    one_scale: bool = False,
) -> Drawing:
    """Panels in rows, with the title over them and the key of their marks below.

    Args:
        one_scale: whether the panels share their axis of values.
    """
    found: Drawing = alt.concat(*panels, columns=columns) if len(panels) > 1 else panels[0]
    if one_scale and len(panels) > 1:
        found = found.resolve_scale(y="shared")
    if marks:
        found = alt.vconcat(found, key(marks, room, style))
    if title and style.titled:
        lines = wrapped(title, style.width - 8, style.title)
        found = alt.vconcat(found).properties(
            title=alt.Title(lines, fontSize=style.title, anchor="middle", offset=4)
        )
    return found


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
