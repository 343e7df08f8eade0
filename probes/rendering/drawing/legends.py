"""How series are told apart, the key that says so, and panels with their title and key."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import altair as alt

from probes.extraction.model_names import pretrained_name
from probes.rendering.drawing.style import (
    DOTTED,
    SOLID,
    Drawing,
    Style,
    dashes,
    filled,
    stroked,
    table,
    text_width,
    wrapped,
)
from probes.rendering.palette import COLOURS, SYMBOLS, distinct


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


def looks_of_lines(lines: Iterable[str]) -> Looks:
    """How the lines of one model are drawn: in colours of their own; many, from dark to light."""
    colours = distinct(lines)
    shapes = [list(SYMBOLS)[i % len(SYMBOLS)] for i in range(len(colours))]
    return Looks("line", list(colours), list(colours.values()), shapes, "line", {})


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
