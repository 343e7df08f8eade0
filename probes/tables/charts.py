"""Charts: functions of a long frame that return Altair charts.

A page, a notebook and a paper show the same chart in different looks. Columns have fixed names, and
what users have named (models, words, labels) stands in the data alone: Vega would read it as an
expression in titles of tooltips and in descriptions of marks.
"""

from __future__ import annotations

import base64
import math
import struct
import textwrap
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from probes.common.arrays import Floats
from probes.extraction.model_names import pretrained_name
from probes.records.values import span_of
from probes.tables.colours import COLOURS, colours_of, distinct

Chart = Any
"""A chart of Altair, whose kinds share no class that has what all of them have."""

MARKS = {
    "best on dev": "M0,-1L.24,-.31L.95,-.31L.38,.12L.59,.81L0,.4L-.59,.81L-.38,.12L-.95,-.31"
    "L-.24,-.31Z",
    "not significantly worse": "circle",
    "worse than another": "cross",
    "not above the floor": "triangle-down",
}
"""Marks of layers as shapes, since a chart cannot rely on a font that has ★, ☆ and ▽."""

SOLID, DOTTED, DASHED = [1, 0], [1, 1.5], [3, 2]

INCH = 72
"""Units of a drawing: points on paper, pixels on a page."""

COLUMN, WIDE = 3.3, 6.8
"""Widths in inches: of a column, and of a page of two."""

FONTS = "Liberation Sans, DejaVu Sans, Arial, sans-serif"
"""The first comes with vl-convert, which draws no text at all in a font that it does not know."""


@dataclass(frozen=True)
class Look:
    """Sizes, fonts and colours; the same chart may be drawn in several looks.

    Attributes:
        width: of the whole, which legends and long names may exceed by a little.
        text: size of letters; other sizes follow from it.
        paper: the ground, None for none.
        titled: whether charts have titles.
        hover: whether marks say their numbers where they are pointed at.
        models: all models, where charts that have some of them stand side by side: colours are
            those of all.
    """

    width: float = COLUMN * INCH
    font: str = FONTS
    text: float = 7
    ink: str = "black"
    soft: str = "#6b7280"
    paper: str | None = "white"
    titled: bool = True
    hover: bool = False
    models: tuple[str, ...] = ()

    def columns(self, panels: int, least: float = 15) -> int:
        """How many panels stand beside each other, each at least `least` letters wide."""
        return max(1, min(panels, int(self.width // (least * self.text))))

    def panel(self, columns: int, beside: float = 5) -> float:
        """Width of a panel; the axis and the gap beside it take `beside` letters."""
        return max(self.width / columns - beside * self.text, 3 * self.text)

    @property
    def config(self) -> dict[str, Any]:
        """The configuration of Vega-Lite."""
        size, small = self.text, 0.92 * self.text
        words = {"labelColor": self.ink, "titleColor": self.ink, "titleFontWeight": "normal"}
        sizes = {"labelFontSize": small, "titleFontSize": small}
        thin = {"tickColor": self.soft, "domainColor": self.soft, "tickWidth": 0.6}
        legend = {"labelLimit": self.width - 4 * size, "titleLimit": 0, "symbolSize": 5 * size}
        return {
            "font": self.font,
            "background": self.paper,
            "lineBreak": "\n",
            # Descriptions of marks would be expressions with titles in them.
            "aria": False,
            "padding": 2,
            "view": {"stroke": None},
            "axis": {**words, **sizes, **thin, "domainWidth": 0.6, "tickSize": 3, "grid": False,
                     "labelLimit": 24 * size, "titleLimit": 0, "titlePadding": 3},
            "header": {**words, **sizes, "labelPadding": 3, "labelLimit": 0},
            "legend": {**words, **sizes, **legend, "gradientThickness": size - 1, "offset": 6,
                       "rowPadding": 1, "symbolOpacity": 1,
                       "layout": {"bottom": {"direction": "vertical", "anchor": "start"}}},
            "title": {"color": self.ink, "fontSize": size + 1, "fontWeight": "normal", "offset": 4},
            "facet": {"spacing": 1.4 * size},
            "line": {"strokeWidth": size / 6},
            "point": {"size": size, "strokeWidth": size / 9, "opacity": 1},
            "rule": {"strokeWidth": size / 9},
            "text": {"color": self.ink, "fontSize": small},
        }  # fmt: skip


PAPER = Look()

PAGE = Look(
    width=760,
    font="system-ui, sans-serif",
    text=12,
    ink="var(--ink)",
    soft="var(--soft)",
    paper=None,
    titled=False,
    hover=True,
)
"""Colours are the page's own, which follow the reader's scheme, and print."""


# Parts of charts.


def rows(frame: pd.DataFrame) -> alt.InlineData:
    """A frame as data; numbers that JSON does not have become null."""
    plain = frame.round(6).replace([math.inf, -math.inf], None).astype(object)
    values: Any = plain.where(plain.notna(), None).to_dict("records")
    # A tuple is not copied whenever a chart is changed, as a list would be.
    return alt.InlineData(values=tuple(values))


def titled(chart: Chart, title: str, look: Look, below: str = "") -> Chart:
    """The chart with its title, in lines of about the look's width, and what stands below it."""
    width = max(20, int(look.width / (0.5 * look.text)))
    lines = textwrap.wrap(title, width) if look.titled else []
    lines += below.split("\n") if below else []
    return chart.properties(title=alt.Title(lines, anchor="middle")) if lines else chart


def legend(names: Iterable[str], look: Look, **more: Any) -> alt.Legend:
    """A legend below the chart, in as many columns as will fit by the number of letters."""
    longest = max(map(len, names), default=0)
    columns = max(1, int(look.width / (look.text * (3 + 0.55 * longest))))
    return alt.Legend(orient="bottom", columns=columns, title=None, **more)


STROKES: Any = {"symbolType": "stroke", "symbolSize": 120, "symbolStrokeWidth": 1.5}
"""Lines in legends."""


def _by(column: str) -> alt.EncodingSortField:
    """An order by numbers, since a list of names would become an expression."""
    return alt.EncodingSortField(column, op="min")


def in_panels(
    panel: Chart, frame: pd.DataFrame, look: Look, columns: int, title: str, **scales: Any
) -> Chart:
    """The chart, or one beside the other for each place in the column `panel`.

    Args:
        scales: which of the panels' scales are "shared" or "independent".
    """
    every = list(frame["panel"].unique())
    if len(every) < 2:
        return titled(panel.properties(data=rows(frame)), title, look, "".join(every))
    data = rows(frame.assign(place=frame["panel"].map(every.index)))
    facet = alt.Facet("panel:N", title=None, sort=_by("place"))
    drawn = panel.facet(facet=facet, columns=columns, data=data)
    drawn = drawn.resolve_scale(**scales).resolve_axis(x="independent", y="independent")
    return titled(drawn, title, look)


def _has_marks(frame: pd.DataFrame) -> bool:
    return "mark" in frame and bool(frame["mark"].isin([*MARKS]).any())


def _marks(frame: pd.DataFrame, look: Look) -> alt.Shape:
    """Shapes of the marks that occur; the legend says what they mean."""
    used = [mark for mark in MARKS if mark in set(frame["mark"])]
    scale = alt.Scale(domain=used, range=[MARKS[mark] for mark in used])
    symbols = legend(used, look, symbolStrokeColor=look.soft, symbolFillColor="transparent")
    return alt.Shape("mark:N", scale=scale, legend=symbols)


_MARKED = alt.FieldOneOfPredicate("mark", [*MARKS])


def series(names: Sequence[str], look: Look) -> tuple[alt.Scale, alt.Scale]:
    """Colours and dashes of models: random twins are dotted, in their model's colour.

    Lines of other things have colours of their own; of many, shades that have an order.
    """
    every = look.models if {*names} <= {*look.models} else names
    colours = distinct(dict.fromkeys(map(pretrained_name, every)))
    given = (
        [colours[pretrained_name(name)] for name in names],
        [SOLID if pretrained_name(name) == name else DOTTED for name in names],
    )
    own, dashes = (alt.Scale(domain=[*names], range=each) for each in given)
    return own, dashes


def lines(
    frame: pd.DataFrame,
    look: Look,
    *,
    x: str = "layer",
    y: str = "",
    title: str = "",
    log: bool = False,
    by: str = "model",
    one_scale: bool = False,
) -> Chart:
    """Curves with their 95 % bands; a single number has a bar instead.

    Args:
        frame: with the columns panel, model, line, x, value, low, high; `level` in rows of dashed
            lines, whose other numbers are missing; `mark` where marks are shown.
        x, y: titles of the axes.
        log: whether the axis of x is logarithmic.
        by: the column that colours tell apart, "model" or "line".
        one_scale: whether panels share their axis of y.
    """
    frame = frame.assign(value=frame["value"].astype(float), alone=_alone(frame))
    frame["level"] = frame.get("level", math.nan)
    shown = frame[frame["value"].notna()]
    names = list(dict.fromkeys(shown[by]))
    colours, dashes = series(names, look)
    columns = look.columns(frame["panel"].nunique())
    width = look.panel(columns, 5 if y else 3.6)
    key: dict[str, Any] = {"legend": None}
    if len(names) > 1 or any(names):
        key["legend"] = legend(
            names,
            look,
            symbolType="stroke",
            symbolSize=15 * look.text,
            symbolStrokeWidth=look.text / 5,
        )
    across = alt.Chart().encode(
        color=alt.Color(f"{by}:N", scale=colours, **key), detail=["model:N", "line:N"]
    )
    base = across.encode(x=_positions(shown["x"], x, width, look, log=log))
    height = min(0.75 * width, 16 * look.text)
    values = alt.Scale(zero=False, nice=False, padding=4)
    up = alt.Y("value:Q", scale=values, title=textwrap.wrap(y, 24), axis=alt.Axis(tickCount=5))
    kept = base.transform_filter("isValid(datum.value)")
    of_levels = {"color": alt.value(look.soft)} if "name" in frame else {}
    parts = [
        across.transform_filter("isValid(datum.level)")
        .mark_rule(strokeDash=DASHED)
        .encode(y=alt.Y("level:Q"), **of_levels),
        kept.transform_filter("isValid(datum.low) && !datum.alone")
        .mark_area(opacity=0.18)
        .encode(y=alt.Y("low:Q"), y2="high:Q"),
        kept.transform_filter("isValid(datum.low) && datum.alone")
        .mark_rule()
        .encode(y=alt.Y("low:Q"), y2="high:Q"),
        kept.mark_line().encode(y=up, strokeDash=alt.StrokeDash(f"{by}:N", scale=dashes, **key)),
        kept.mark_point(filled=True).encode(y=up),
    ]
    if _has_marks(frame):
        marked = kept.transform_filter(_MARKED).mark_point(size=4 * look.text)
        parts.append(marked.encode(y=up, shape=_marks(frame, look)))
    if "name" in frame:
        named = base.transform_filter("isValid(datum.name)").mark_text(
            align="right", baseline="bottom"
        )
        at = {"x": alt.XValue("width"), "y": alt.Y("level:Q"), "text": alt.Text("name:N")}
        parts.append(named.encode(**at, **of_levels))
    if look.hover:
        lines = ["line"] if shown["line"].any() else []
        tips = [*_tips("model", *lines, x=x), *_numbers(frame)]
        parts.append(kept.mark_point(size=400, opacity=0).encode(y=up, tooltip=tips))
    drawn = alt.layer(*parts).properties(width=width, height=height)
    return in_panels(drawn, frame, look, columns, title, y="shared" if one_scale else "independent")


def _alone(frame: pd.DataFrame) -> pd.Series:
    """Whether a row is the only one of its curve."""
    each = frame.groupby(["panel", "model", "line"], dropna=False)["value"]
    return each.transform("count").eq(1)


def _positions(values: pd.Series, title: str, width: float, look: Look, *, log: bool) -> alt.X:
    """The axis of x, with a tick at each number that there is, as far as they fit."""
    known = sorted(values.dropna().unique())
    step = max(1, math.ceil(len(known) * 2.5 * look.text / width)) if not log else 1
    form = ".2~s" if values.max() >= 1e5 else ",d"
    shown = [float(x) for x in known[::step]]
    ticks = alt.Axis(values=shown, format=form, labelOverlap="greedy", labelSeparation=3)
    kind: Any = {"type": "log", "base": 2} if log else {"zero": False}
    return alt.X("x:Q", title=title, axis=ticks, scale=alt.Scale(nice=False, padding=5, **kind))


def _tips(*columns: str, **titles: str) -> list[alt.Tooltip]:
    """Tooltips of columns, and of further ones by other titles, which are the suite's own."""
    known = {**dict(zip(columns, columns, strict=True)), **titles}
    return [alt.Tooltip(f"{column}:N", title=title) for column, title in known.items()]


def _numbers(frame: pd.DataFrame) -> list[alt.Tooltip]:
    """Tooltips of a value and its interval, with as many digits as it takes to tell them apart."""
    form = ".1f" if frame["value"].abs().max() > 10 else ".3f"
    return [alt.Tooltip(f"{x}:Q", format=form) for x in ("value", "low", "high")]


def heat_map(
    frame: pd.DataFrame,
    look: Look,
    *,
    down: str,
    across: str,
    bar: str,
    title: str = "",
    low: float | None = None,
    high: float | None = None,
    scheme: Any = "viridis",
) -> Chart:
    """Numbers as colours, the first row at the bottom: names in their order, then whole numbers.

    Args:
        frame: with the columns panel, row, column, value, text; `mark` where marks are shown. The
            colour is that of `value`, and cells without one have their text alone; `said` where
            tooltips have texts of their own, by name.
        down, across: titles of the axes.
        bar: title of the bar of colours.
        low, high: ends of the bar; None for the least and the greatest value. With "blueorange",
            whose middle is 0, both are as far from it.
    """
    frame, upright, along = _placed(frame.assign(value=frame["value"].astype(float)))
    of_panels = frame.groupby("panel", sort=False)["column"].nunique()
    marked = _has_marks(frame)
    columns = look.columns(len(of_panels), 28)
    if marked and look.panel(columns, _beside(upright)) < 3.5 * look.text * of_panels.max():
        columns = 1  # numbers and marks would lie on each other
    step = look.panel(columns, _beside(upright)) / of_panels.max()
    heads = _heads(along, step, look)
    frame["column"] = frame["column"].map(heads)
    tall = max(0.5 * look.text, min(2 * look.text, 72 * look.text / len(upright)))
    diverging = scheme == "blueorange"
    if diverging:
        high = span_of(frame["value"].abs(), 0, None)[1]
        low = -high
    ends = span_of(frame["value"], low, high)
    # Text is white on dark colours: the lower ones of viridis, both ends of a diverging scheme.
    middle = ends[0] + 0.6 * (ends[1] - ends[0])
    dark = f"abs(datum.value) > {0.6 * ends[1]}" if diverging else f"datum.value < {middle}"
    ink = alt.condition(f"isValid(datum.value) && {dark}", alt.value("white"), alt.value("black"))
    colour = alt.Color(
        "value:Q",
        title=textwrap.wrap(bar, 60),
        scale=alt.Scale(scheme=scheme, domain=ends, reverse=diverging, clamp=True),
        legend=alt.Legend(
            orient="bottom", gradientLength=20 * look.text, tickCount=5, direction="horizontal"
        ),
    )
    base = alt.Chart().encode(
        x=_names("column", alt.X, [*heads.values()], across, step, look),
        y=_names("row", alt.Y, upright, down, tall, look),
    )
    cells: dict[str, Any] = {"stroke": "white", "strokeWidth": 0.5}
    tips: dict[str, Any] = {}
    if look.hover and "said" in frame:
        cells["tooltip"] = alt.ExprRef("datum.said")
    elif look.hover:
        tips["tooltip"] = [*_tips("panel", row=down, column=across), "text:N"]
    parts = [base.mark_rect(**cells).encode(color=colour, **tips)]
    longest = frame["text"].astype(str).str.len().max()
    beside = min(look.text, 0.3 * step) if marked else 0
    size = min(0.9 * look.text, tall / 1.2, (step - beside - 2) / (0.56 * max(longest, 1)))
    if size >= 0.5 * look.text:
        text = base.mark_text(fontSize=size, xOffset=-beside / 2)
        parts.append(text.encode(text="text:N", color=ink))
    if marked:
        shape = base.transform_filter(_MARKED).mark_point(
            size=3 * beside**2 / look.text, xOffset=(step - beside) / 2 - 1
        )
        parts.append(shape.encode(shape=_marks(frame, look), stroke=ink))
    drawn = alt.layer(*parts).properties(width=alt.Step(step), height=alt.Step(tall))
    apart = {"x": "independent", "y": "independent"}
    return in_panels(drawn, frame, look, columns, title, **apart)


def _heads(names: Sequence[str], step: float, look: Look) -> dict[str, str]:
    """Heads of columns: in lines that are as wide as a column, or all in lines to be turned."""
    width = max(int(step / (0.55 * look.text)), 1)
    wrapped = {name: _wrapped(name, width) for name in names}
    if all(len(line) <= width for head in wrapped.values() for line in head.split("\n")):
        return wrapped
    two = step > 2.6 * look.text
    return {name: name if two else name.replace("\n", ", ") for name in names}


def _wrapped(text: str, width: int) -> str:
    """A text in lines of so many letters, broken between words."""
    lines = (textwrap.wrap(x, width, break_long_words=False) for x in text.split("\n"))
    return "\n".join(line for wrapped in lines for line in wrapped)


def _ordered(places: pd.Series) -> list[Any]:
    """Places in their order: names as they come, then whole numbers ascending."""
    every = list(dict.fromkeys(places))
    numbers = [x for x in every if isinstance(x, Real)]
    return [x for x in every if x not in numbers] + sorted(numbers, key=float)


def _beside(names: Iterable[str]) -> float:
    """Letters that an axis of names takes, and its title."""
    return 2.5 + 0.52 * min(max(map(len, names), default=0), 40)


def _names(column: str, kind: Any, names: list[str], title: str, step: float, look: Look) -> Any:
    """An axis of names, in the order of the numbers in the column `<column>_at`."""
    longest = max((len(line) for name in names for line in name.split("\n")), default=1)
    turned = kind is alt.X and 0.52 * look.text * longest > step
    axis = alt.Axis(
        labelAngle=-90 if turned else 0, labelOverlap="greedy", ticks=False, domain=False
    )
    return kind(f"{column}:N", sort=_by(f"{column}_at"), title=title or None, axis=axis)


def _placed(frame: pd.DataFrame) -> tuple[pd.DataFrame, list[str], list[str]]:
    """The frame with numbers for the order of its rows and columns, and the names of both."""
    down, along = _ordered(frame["row"])[::-1], _ordered(frame["column"])
    placed = frame.assign(
        row_at=frame["row"].map(down.index),
        column_at=frame["column"].map(along.index),
        row=frame["row"].astype(str),
        column=frame["column"].astype(str),
    )
    return placed, [*map(str, down)], [*map(str, along)]


def points(
    frame: pd.DataFrame, look: Look, *, across: str, title: str = "", longest: float
) -> Chart:
    """Numbers with their intervals, a line of marks for each name and model.

    Args:
        frame: with the columns name, model, kind, value, low, high; kinds differ in their shapes.
        across: title of the axis of numbers.
        longest: the end of that axis, which begins at 0.
    """
    order, models = list(dict.fromkeys(frame["name"])), list(dict.fromkeys(frame["model"]))
    kinds = list(dict.fromkeys(frame["kind"]))
    colours, dashes = series(models, look)
    scale = alt.Scale(domain=[0, longest], nice=False, clamp=True)
    frame = frame.assign(value=frame["value"].astype(float), place=frame["model"].map(models.index))
    base = alt.Chart(rows(frame)).encode(
        y=alt.Y("name:N", title=None, scale=alt.Scale(domain=order, paddingInner=0.3)),
        yOffset=alt.YOffset("place:O", sort="ascending"),
        color=alt.Color("model:N", scale=colours, legend=legend(models, look)),
    )
    x = alt.X("value:Q", scale=scale, title=across, axis=alt.Axis(format="d", tickMinStep=1))
    shapes = alt.Scale(domain=kinds, range=["circle", "diamond", "square"][: len(kinds)])
    shape = alt.Shape("kind:N", scale=shapes, legend=legend(kinds, look))
    tips = [*_tips("name", "model", "kind"), *_numbers(frame)]
    drawn = [
        base.transform_filter("isValid(datum.low)")
        .mark_rule(strokeWidth=look.text / 6)
        .encode(
            x=alt.X("low:Q", scale=scale, title=across),
            x2="high:Q",
            strokeDash=alt.StrokeDash("model:N", scale=dashes, legend=legend(models, look)),
        ),
        base.mark_point(size=3 * look.text, strokeWidth=look.text / 6).encode(
            x=x, shape=shape, **({"tooltip": tips} if look.hover else {})
        ),
        base.transform_filter("!isValid(datum.value)")
        .mark_text(align="right", baseline="middle")
        .encode(x=alt.XValue("width"), text="text:N"),
    ]
    height = alt.Step(1.4 * look.text, **{"for": "offset"})
    return titled(
        alt.layer(*drawn).properties(width=look.panel(1, _beside(order)), height=height),
        title,
        look,
    )


def pictures(
    frame: pd.DataFrame,
    look: Look,
    *,
    down: str,
    across: str,
    kinds: Mapping[str, str],
    title: str = "",
) -> Chart:
    """Small pictures in rows and columns, the first row at the bottom.

    Args:
        frame: with the columns panel, row, column, kind and url.
        kinds: in the order of their colours, each with the sign that pictures have.
    """
    frame, upright, along = _placed(frame)
    frame = frame.assign(
        sign=frame["kind"].map(kinds).fillna(""),
        least=0.0,
    )
    columns = look.columns(frame["panel"].nunique(), 28)
    step = min(look.panel(columns, _beside(upright)) / len(along), 6 * look.text)
    every = [*kinds, *(x for x in dict.fromkeys(frame["kind"]) if x not in kinds)]
    used = [kind for kind in every if kind in set(frame["kind"])]
    colours = distinct(every)
    named = alt.Scale(domain=used, range=[colours[kind] for kind in used])
    base = alt.Chart().encode(
        x=_names("column", alt.X, along, across, step, look),
        y=_names("row", alt.Y, upright, down, step, look),
    )
    inner = 0.82 * step
    parts = [
        base.mark_image(width=inner, height=inner, smooth=False, aspect=False).encode(
            url="url:N", **({"tooltip": _tips("panel", "kind", row=down, column=across)}
                            if look.hover else {})
        ),
        base.mark_point(shape="square", size=inner**2, strokeWidth=step / 20).encode(
            stroke=alt.Stroke("kind:N", scale=named, legend=legend(used, look))
        ),
        base.mark_text(
            align="right", baseline="top", color="white", fontSize=min(0.35 * step, look.text),
            xOffset=inner / 2 - 1, yOffset=1 - inner / 2,
        ).encode(text="sign:N"),
        # Nothing is seen of it but its bar of colours.
        base.mark_point(opacity=0, size=0).encode(
            color=alt.Color(
                "least:Q",
                title="square-root scale",
                scale=alt.Scale(scheme="viridis", type="sqrt", domain=[0, 1]),
                legend=alt.Legend(orient="bottom", direction="horizontal", tickCount=4),
            )
        ),
    ]  # fmt: skip
    # Vega-Lite cannot give pictures in panels a step.
    size = {"width": step * len(along), "height": step * len(upright)}
    drawn = alt.layer(*parts).properties(**size)
    apart = {"x": "independent", "y": "independent"}
    return in_panels(drawn, frame, look, columns, title, **apart)


def arcs(words: Sequence[str], edges: pd.DataFrame, look: Look, *, title: str = "") -> Chart:
    """Edges between the words of a sentence as arcs, above or below them.

    A long sentence is wider than the look.

    Args:
        edges: with the columns first, last (indices of words; -1 for the root, which stands
            outside), kind, and `below`, whether it is drawn below the words.
    """
    size = look.text
    # Letters of the fonts are about half as wide as they are high.
    wide = [0.56 * size * len(word) + 0.8 * size for word in words]
    ends = [sum(wide[: i + 1]) for i in range(len(wide))]
    centres = [end - w / 2 for end, w in zip(ends, wide, strict=True)]
    levels = edges.assign(level=0)
    for _, same in edges.groupby("below"):
        found = heights(
            [(a, b) for a, b in zip(same["first"], same["last"], strict=True) if a >= 0]
        )
        top = 1 + max(found.values(), default=0)
        levels.loc[same.index, "level"] = [
            found.get((a, b), top) for a, b in zip(same["first"], same["last"], strict=True)
        ]
    step = min(1.7 * size, 17 * size / levels["level"].max())
    drawn = []
    columns = ["first", "last", "kind", "below", "level"]
    for number, edge in enumerate(levels[columns].to_numpy().tolist()):
        first, last, kind, below, level = edge
        left = centres[last if first < 0 else first]
        middle, half = (left + centres[last]) / 2, (centres[last] - left) / 2
        for i in range(33):
            angle = math.pi * (i / 32 if half else 0.5 * i / 32)
            up = size + step * level * math.sin(angle)
            place = middle - half * math.cos(angle), -up if below else up
            drawn.append((number, i, *place, kind))
    x = alt.X("x:Q", axis=None, scale=alt.Scale(domain=[0, ends[-1]]))
    y = alt.Y("y:Q", axis=None, scale=alt.Scale(nice=False))
    kinds = [kind for kind in EDGES if kind in set(edges["kind"])]
    colours = alt.Scale(domain=kinds, range=[EDGES[kind][0] for kind in kinds])
    dashes = alt.Scale(domain=kinds, range=[EDGES[kind][1] for kind in kinds])
    key = legend(kinds, look, **STROKES)
    curves = alt.Chart(rows(pd.DataFrame(drawn, columns=["edge", "i", "x", "y", "kind"])))
    texts = alt.Chart(rows(pd.DataFrame({"x": centres, "y": 0.0, "word": words})))
    layers = [
        curves.mark_line(strokeWidth=size / 8).encode(
            x, y, detail="edge:N", order="i:Q",
            color=alt.Color("kind:N", scale=colours, legend=key),
            strokeDash=alt.StrokeDash("kind:N", scale=dashes, legend=key),
        ),
        texts.mark_text(baseline="middle", fontSize=size).encode(x, y, text="word:N"),
    ]  # fmt: skip
    tall = 2 * size + sum(step * level for level in levels.groupby("below")["level"].max())
    chart = alt.layer(*layers).properties(width=max(ends[-1], 20 * size), height=tall)
    return titled(chart, title, look)


EDGES = {
    "gold": ("black", SOLID),
    "gold, of punctuation": ("#9aa1a9", SOLID),
    "predicted": (COLOURS[0], SOLID),
    "wrong": (COLOURS[1], DASHED),
}
"""Kinds of edges, with their colours and dashes."""


def heights(edges: Collection[tuple[int, int]]) -> dict[tuple[int, int], int]:
    """The level of each arc: one above the highest that lies within it."""
    levels: dict[tuple[int, int], int] = {}
    for first, last in sorted(edges, key=lambda edge: (edge[1] - edge[0], edge)):
        inside = [n for (i, j), n in levels.items() if first <= i and j <= last]
        levels[first, last] = 1 + max(inside, default=0)
    return levels


def picture(values: Floats) -> str:
    """A PNG in an address: a pixel for each number from 0 to 1, by the colour of its square root.

    Faint structure shows so.

    Args:
        values: the first row is at the top; NaN has no colour. Shape (height, width).
    """
    pixels = colours_of(np.sqrt(np.clip(values, 0, 1)))
    lines = b"".join(b"\0" + line.tobytes() for line in pixels)
    height, width = values.shape
    head = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    png = b"\x89PNG\r\n\x1a\n"
    for kind, data in ((b"IHDR", head), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b"")):
        check = zlib.crc32(kind + data)
        png += struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)
    return "data:image/png;base64," + base64.b64encode(png).decode()
