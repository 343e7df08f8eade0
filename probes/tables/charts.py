"""Charts: functions of a long frame that return Vega-Lite specifications.

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
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from probes.common.arrays import Floats
from probes.extraction.models.model_names import pretrained_name
from probes.records.values import span_of
from probes.tables.colours import COLOURS, colours_of, distinct_colours, model_colours

Chart = Any
"""A `Spec`, or a chart of Altair that a plug-in has made."""


class Spec(dict[str, Any]):
    """A Vega-Lite specification, which a notebook shows as a chart.

    `altair.Chart.from_dict` makes a chart of it that can be changed.
    """

    def to_dict(self) -> dict[str, Any]:
        """The specification, as charts of Altair give theirs."""
        return self

    def _repr_mimebundle_(self, *args: Any, **more: Any) -> Any:
        import altair

        return altair.Chart.from_dict(self)._repr_mimebundle_(*args, **more)


MARKS = {
    "best on dev": "M0,-1L.24,-.31L.95,-.31L.38,.12L.59,.81L0,.4L-.59,.81L-.38,.12L-.95,-.31"
    "L-.24,-.31Z",
    "not significantly worse": "circle",
    "worse than another": "cross",
    "not significantly above the floor": "triangle-down",
}
"""Marks of layers as shapes, since a chart cannot rely on a font that has ★, ☆ and ▽."""

SOLID, DOTTED, DASHED = [1, 0], [1, 1.5], [3, 2]

INCH = 72
"""Units of a drawing: points on paper, pixels on a page."""

WIDTHS = {"one": 3.03, "two": 6.3}
"""Inches of one column and of both in the style of the ACL."""

DEPTH = "relative depth"
"""Title of the axis of layer / number of layers."""

FLOOR = "floor"
"""Name of the dashed lines in the legend of models."""

CLIPPED = "Axes fit trained models; random twins are cut off where they leave them."

FONTS = "Liberation Sans, DejaVu Sans, Arial, sans-serif"
"""The first comes with vl-convert, which draws no text at all in a font that it does not know."""


@dataclass(frozen=True)
class Style:
    """Sizes, fonts and colours; the same chart may be drawn in several looks.

    Attributes:
        width: of the whole, which legends and long names may exceed by a little.
        text: size of letters; other sizes follow from it.
        paper: the ground, None for none.
        titled: whether charts have titles.
        hover: whether marks say their numbers where they are pointed at.
        legends: whether charts say which colours and marks are whose; a page says it once for all.
        models: all models of the page or of the folders, some of which a chart may lack: they
            have their colours.
        n_layers: numbers of layers by model, where curves are by depth; empty for those by layer.
    """

    width: float = WIDTHS["one"] * INCH
    font: str = FONTS
    text: float = 8
    ink: str = "black"
    soft: str = "#6b7280"
    paper: str | None = "white"
    titled: bool = True
    hover: bool = False
    legends: bool = True
    models: tuple[str, ...] = ()
    n_layers: Mapping[str, int] = field(default_factory=dict)

    def columns(self, panels: int, least: float = 13) -> int:
        """Number of panels side by side, each at least `least` letters wide, in even rows."""
        most = max(1, int(self.width // (least * self.text)))
        rows = max(1, math.ceil(panels / most))
        return max(1, math.ceil(panels / rows))

    def panel(self, columns: int, margin: float = 5) -> float:
        """Width of a panel; the axis and the gap beside it take `margin` letters."""
        return max(self.width / columns - margin * self.text, 3 * self.text)

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
            "legend": {**words, **sizes, **legend, "gradientThickness": size - 1, "offset": 6,
                       "rowPadding": 1, "symbolOpacity": 1,
                       "layout": {"bottom": {"direction": "vertical", "anchor": "start"}}},
            "title": {"color": self.ink, "fontSize": size + 1, "fontWeight": "normal", "offset": 4},
            "line": {"strokeWidth": size / 6},
            "point": {"size": size, "strokeWidth": size / 9, "opacity": 1},
            "rule": {"strokeWidth": size / 9},
            "text": {"color": self.ink, "fontSize": small},
        }  # fmt: skip


PAPER = Style()

PAGE = Style(
    width=760,
    font="system-ui, sans-serif",
    text=12,
    ink="var(--ink)",
    soft="var(--soft)",
    paper=None,
    titled=False,
    hover=True,
    legends=False,
)
"""Colours are the page's own, which follow the reader's scheme, and print."""


# Parts of charts.


def rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """A frame as data; numbers that JSON does not have become null."""
    plain = frame.round(6).replace([math.inf, -math.inf], None).astype(object)
    with_nulls: Any = plain.where(plain.notna(), None)
    records: list[dict[str, Any]] = with_nulls.to_dict("records")
    return records


def _channel(column: str, kind: str = "nominal", **more: Any) -> dict[str, Any]:
    """A column that a channel of marks shows."""
    return {"field": column, "type": kind, **more}


def _number_channel(column: str, **more: Any) -> dict[str, Any]:
    return _channel(column, "quantitative", **more)


def _mark_layer(
    mark: str, encoding: Mapping[str, Any], row_filter: Any = None, **style: Any
) -> dict[str, Any]:
    """Marks of one kind.

    Args:
        encoding: by channel, what it shows.
        row_filter: which rows have a mark, if not all.
    """
    transform = {} if row_filter is None else {"transform": [{"filter": row_filter}]}
    return {**transform, "mark": {"type": mark, **style}, "encoding": dict(encoding)}


def titled(chart: dict[str, Any], title: str, style: Style, below: str = "") -> Spec:
    """The chart with its title, in lines of about the look's width, and what stands below it."""
    width = max(20, int(style.width / (0.5 * style.text)))
    lines = textwrap.wrap(title, width) if style.titled else []
    lines += below.split("\n") if below else []
    return Spec(chart, title={"text": lines, "anchor": "middle"}) if lines else Spec(chart)


def legend_below(names: Iterable[str], style: Style, **more: Any) -> dict[str, Any]:
    """A legend below the chart, in as many columns as will fit by the number of letters."""
    longest = max(map(len, names), default=0)
    columns = max(1, int(style.width / (style.text * (3 + 0.55 * longest))))
    return {"orient": "bottom", "columns": columns, "title": None, **more}


def _by(column: str) -> dict[str, str]:
    """An order by numbers, since a list of names would become an expression."""
    return {"field": column, "op": "min"}


def in_panels(
    panel: dict[str, Any],
    frame: pd.DataFrame,
    style: Style,
    columns: int,
    title: str,
    sizes: Sequence[tuple[float, float]] = (),
    domains: Sequence[tuple[float, float]] = (),
    **scales: Any,
) -> Spec:
    """The chart, or one beside the other for each place in the column `panel`.

    Args:
        sizes: width and height of each panel; empty if `panel` has both.
        domains: ends of each panel's axis of y; empty where they follow from the numbers.
        scales: which of the panels' scales are "shared" or "independent".
    """
    names = list(frame["panel"].unique())
    panels = [panel] * max(1, len(names))
    if sizes:
        panels = [{**panel, "width": width, "height": height} for width, height in sizes]
    if domains:
        y = panel["encoding"]["y"]
        scaled = ({**y, "scale": {**y["scale"], "domain": [*ends]}} for ends in domains)
        panels = [{**x, "encoding": {"y": y}} for x, y in zip(panels, scaled, strict=True)]
    placed = frame.assign(place=frame["panel"].map(names.index))
    data: dict[str, Any] = {"data": {"name": "rows"}, "datasets": {"rows": rows(placed)}}
    if len(names) < 2:
        return titled({**panels[0], **data}, title, style, *names)
    grid = [
        {
            **panel,
            "transform": [{"filter": {"field": "place", "equal": i}}],
            "title": {"text": name.split("\n"), "fontSize": 0.92 * style.text, "offset": 3},
        }
        for i, (name, panel) in enumerate(zip(names, panels, strict=True))
    ]
    layout = {"columns": columns, "spacing": 1.4 * style.text, "resolve": {"scale": scales}}
    return titled({**data, "concat": grid, **layout}, title, style)


def _has_marks(frame: pd.DataFrame) -> bool:
    return "mark" in frame and bool(frame["mark"].isin([*MARKS]).any())


def _marks(frame: pd.DataFrame, style: Style) -> dict[str, Any]:
    """Shapes of the marks that occur; the legend says what they mean."""
    used = [mark for mark in MARKS if mark in set(frame["mark"])]
    scale = {"domain": used, "range": [MARKS[mark] for mark in used]}
    symbols = legend_below(used, style, symbolStrokeColor=style.soft, symbolFillColor="transparent")
    return _channel("mark", scale=scale, legend=symbols if style.legends else None)


_MARKED = {"field": "mark", "oneOf": [*MARKS]}


def series(
    names: Sequence[str], style: Style, by: str = "model"
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Scales of the colours and dashes of models: random twins are dotted in their model's colour.

    Other lines have colours in their order; many lines have shades.
    """
    colours = model_colours([*style.models, *names]) if by == "model" else distinct_colours(names)
    dashes = [SOLID if pretrained_name(name) == name else DOTTED for name in names]
    return (
        {"domain": [*names], "range": [colours[name] for name in names]},
        {"domain": [*names], "range": dashes},
    )


def lines(
    frame: pd.DataFrame,
    style: Style,
    *,
    x: str = "layer",
    y: str = "",
    title: str = "",
    log: bool = False,
    by: str = "model",
    one_scale: bool = False,
    fit_trained: bool = False,
) -> Spec:
    """Curves with their 95 % bands; a single number has an error bar instead.

    Args:
        frame: with the columns panel, model, line, x, value, low, high; `level` in rows of dashed
            lines, whose other numbers are missing; `mark` where marks are shown.
        x, y: titles of the axes.
        log: whether the axis of x is logarithmic.
        by: the column that colours tell apart, "model" or "line".
        one_scale: whether panels share their axis of y.
        fit_trained: whether axes of y fit trained models; curves of random twins are clipped.
    """
    if x == "layer" and style.n_layers:
        x, frame = DEPTH, frame.assign(x=frame["x"] / frame["model"].map(style.n_layers))
    frame = frame.assign(value=frame["value"].astype(float), alone=_alone(frame))
    frame["level"] = frame.get("level", math.nan)
    value_rows = frame[frame["value"].notna()]
    names = list(dict.fromkeys(value_rows[by]))
    domains = _trained_ranges(frame) if fit_trained else []
    colours, dashes = series(names, style, by)
    columns = style.columns(frame["panel"].nunique())
    width = style.panel(columns, 5 if y else 3.6)
    key = None
    # A single curve without a name needs no legend.
    if (len(names) > 1 or any(names)) and (style.legends or by != "model"):
        in_key = [name for name in names if not domains or name in _seen(frame, domains)]
        if by == "model" and "name" not in frame and frame["level"].notna().any():
            in_key.append(FLOOR)
            colours = {"domain": [*names, FLOOR], "range": [*colours["range"], style.soft]}
            dashes = {"domain": [*names, FLOOR], "range": [*dashes["range"], DASHED]}
        symbols = {"symbolSize": 15 * style.text, "symbolStrokeWidth": style.text / 5}
        key = legend_below(in_key, style, values=in_key, symbolType="stroke", **symbols)
    across = {
        "color": _channel(by, scale=colours, legend=key),
        "detail": [_channel("model"), _channel("line")],
    }
    base = {**across, "x": _positions(value_rows["x"], x, width, style, log=log)}
    values = {"zero": False, "nice": False, "padding": 4}
    up = _number_channel("value")
    dashed = _channel(by, scale=dashes, legend=key)
    ends = {**base, "y": _number_channel("low"), "y2": {"field": "high"}}
    level = {**across, "y": _number_channel("level")}
    # Lines that have names belong to no model.
    if has_names := "name" in frame:
        level["color"] = {"value": style.soft}
    valid = "isValid(datum.value)"
    clip = {"clip": True} if domains else {}
    parts = [
        _mark_layer("rule", level, "isValid(datum.level)", strokeDash=DASHED),
        _mark_layer(
            "area", ends, f"{valid} && isValid(datum.low) && !datum.alone", opacity=0.18, **clip
        ),
        _mark_layer("rule", ends, f"{valid} && isValid(datum.low) && datum.alone", **clip),
        _mark_layer("line", {**base, "y": up, "strokeDash": dashed}, valid, **clip),
        _mark_layer("point", {**base, "y": up}, valid, filled=True, **clip),
    ]
    if _has_marks(frame):
        marked = {**base, "y": up, "shape": _marks(frame, style)}
        parts.append(_mark_layer("point", marked, {"and": [valid, _MARKED]}, size=4 * style.text))
    if has_names:
        at_end = {**level, "x": {"value": "width"}, "text": _channel("name")}
        parts.append(
            _mark_layer("text", at_end, "isValid(datum.name)", align="right", baseline="bottom")
        )
    if style.hover:
        lines = ["line"] if value_rows["line"].any() else []
        tips = [*_tips("model", *lines, x=x), *_number_tooltips(frame)]
        # Large and invisible, so that the pointer need not hit a small mark.
        parts.append(
            _mark_layer(
                "point", {**base, "y": up, "tooltip": tips}, valid, size=400, opacity=0, **clip
            )
        )
    axis = {"scale": values, "title": textwrap.wrap(y, 24), "axis": {"tickCount": 5}}
    size = {"width": width, "height": min(0.75 * width, 16 * style.text)}
    panel = {"layer": parts, "encoding": {"y": axis}, **size}
    scale = "shared" if one_scale else "independent"
    title = title or (CLIPPED if domains else "")
    return in_panels(panel, frame, style, columns, title, domains=domains, x="shared", y=scale)


def _trained_ranges(frame: pd.DataFrame) -> list[tuple[float, float]]:
    """The least and the greatest number of trained models, with their floors, in each panel.

    Empty if no random twin leaves them. Where there are only twins, the range is theirs.
    """
    numbers = frame[["value", "low", "high", "level"]].astype(float)
    ends = numbers.agg(["min", "max"], axis=1).assign(panel=frame["panel"])
    trained = ends[[pretrained_name(name) == name for name in frame["model"]]]
    of_all, of_trained = (
        x.groupby("panel", sort=False).agg({"min": "min", "max": "max"}) for x in (ends, trained)
    )
    ranges = of_trained.reindex(of_all.index).fillna(of_all)
    left = not ranges.equals(of_all) and not ranges.isna().any(axis=None)
    return [*ranges.itertuples(index=False, name=None)] if left else []


def _seen(frame: pd.DataFrame, domains: Sequence[tuple[float, float]]) -> set[str]:
    """Models with a curve, or a part of its band, within the axis of a panel."""
    curves = frame.assign(
        low=frame["low"].astype(float).fillna(frame["value"]),
        high=frame["high"].astype(float).fillna(frame["value"]),
    ).groupby(["panel", "model"], sort=False)
    ends = dict(zip(frame["panel"].unique(), domains, strict=True))
    return {
        str(model)
        for (panel, model), curve in curves
        if curve["low"].min() <= ends[panel][1] and curve["high"].max() >= ends[panel][0]
    }


def _alone(frame: pd.DataFrame) -> pd.Series:
    """True for rows that are the only one of their curve."""
    curves = frame.groupby(["panel", "model", "line"], dropna=False)["value"]
    return curves.transform("count").eq(1)


def _positions(
    values: pd.Series, title: str, width: float, style: Style, *, log: bool
) -> dict[str, Any]:
    """The axis of x, with a tick at each number that there is, as far as they fit."""
    numbers = sorted(values.dropna().unique())
    if title == DEPTH:
        numbers = [0, 0.25, 0.5, 0.75, 1]
    step = max(1, math.ceil(len(numbers) * 2.5 * style.text / width)) if not log else 1
    form = ",d" if all(float(x).is_integer() for x in numbers) else ".3~g"  # doses are halves
    form = ".2~s" if values.max() >= 1e5 else form
    ticks = {
        "values": [float(x) for x in numbers[::step]],
        "format": form,
        "labelOverlap": "greedy",
        "labelSeparation": 3,
    }
    kind: dict[str, Any] = {"type": "log", "base": 2} if log else {"zero": False}
    return _number_channel(
        "x", title=title, axis=ticks, scale={"nice": False, "padding": 5, **kind}
    )


def _tips(*columns: str, **titles: str) -> list[dict[str, Any]]:
    """Tooltips of columns, and of further ones by other titles, which are the suite's own."""
    title_by_column = {**dict(zip(columns, columns, strict=True)), **titles}
    return [_channel(column, title=title) for column, title in title_by_column.items()]


def _number_tooltips(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Tooltips of a value and its interval, with as many digits as it takes to tell them apart."""
    form = ".1f" if frame["value"].abs().max() > 10 else ".3f"
    return [_number_channel(x, format=form) for x in ("value", "low", "high")]


def heat_map(
    frame: pd.DataFrame,
    style: Style,
    *,
    down: str,
    across: str,
    legend_title: str,
    title: str = "",
    low: float | None = None,
    high: float | None = None,
    diverging: bool = False,
) -> Spec:
    """Numbers as colours, the first row at the bottom: names in their order, then whole numbers.

    Args:
        frame: with the columns panel, row, column, value, text; `mark` where marks are shown. The
            colour is that of `value`, and cells without one have their text alone; `said` where
            tooltips have texts of their own, by name.
        down, across: titles of the axes.
        legend_title: title of the colour legend.
        low, high: ends of its scale; None for the least and the greatest value.
        diverging: whether numbers below 0 are orange; both ends are then as far from it.
    """
    frame, upright, along = _placed(frame.assign(value=frame["value"].astype(float)))
    of_panels = frame.groupby("panel", sort=False)["column"].nunique()
    marked = _has_marks(frame)
    columns = style.columns(len(of_panels), 28)
    if marked and style.panel(columns, _axis_letters(upright)) < 3.5 * style.text * of_panels.max():
        columns = 1  # numbers and marks would lie on each other
    step = style.panel(columns, _axis_letters(upright)) / of_panels.max()
    heads = _column_heads(along, step, style)
    frame["column"] = frame["column"].map(heads)
    tall = max(0.5 * style.text, min(2 * style.text, 72 * style.text / len(upright)))
    if diverging:
        high = span_of(frame["value"].abs(), 0, None)[1]
        low = -high
    ends = span_of(frame["value"], low, high)
    pale = 0 if diverging else ends[0]
    dark = f"isValid(datum.value) && abs(datum.value - {pale}) > {0.75 * (ends[1] - pale)}"
    ink = {"condition": {"test": dark, "value": "white"}, "value": "black"}
    scheme = {"name": "blueorange", "extent": [0, 1 if diverging else 0.5]}
    colour = _number_channel(
        "value",
        title=textwrap.wrap(legend_title, min(60, int(style.width / (0.6 * style.text)))),
        scale={"scheme": scheme, "domain": [*ends], "reverse": True, "clamp": True},
        legend={
            "orient": "bottom",
            "gradientLength": 20 * style.text,
            "tickCount": 5,
            "direction": "horizontal",
        },
    )
    base = {
        "x": _name_axis("column", [*heads.values()], across, step, style),
        "y": _name_axis("row", upright, down, tall, style),
    }
    rectangle: dict[str, Any] = {"stroke": "white", "strokeWidth": 0.5}
    cells: dict[str, Any] = {**base, "color": colour}
    if style.hover and "said" in frame:
        rectangle["tooltip"] = {"expr": "datum.said"}
    elif style.hover:
        cells["tooltip"] = [*_tips("panel", row=down, column=across), _channel("text")]
    parts = [_mark_layer("rect", cells, **rectangle)]
    longest = frame["text"].astype(str).str.len().max()
    mark_room = min(style.text, 0.3 * step) if marked else 0
    size = min(0.9 * style.text, tall / 1.2, (step - mark_room - 2) / (0.56 * max(longest, 1)))
    if size >= 0.5 * style.text:
        text = {**base, "text": _channel("text"), "color": ink}
        parts.append(_mark_layer("text", text, fontSize=size, xOffset=-mark_room / 2))
    if marked:
        shape = {**base, "shape": _marks(frame, style), "stroke": ink}
        across_cell = (step - mark_room) / 2 - 1
        size = 3 * mark_room**2 / style.text
        parts.append(_mark_layer("point", shape, _MARKED, size=size, xOffset=across_cell))
    return _grids(parts, frame, style, columns, title, (step, tall))


def _grids(
    parts: Sequence[dict[str, Any]],
    frame: pd.DataFrame,
    style: Style,
    columns: int,
    title: str,
    cell: tuple[float, float],
) -> Spec:
    """Panels of rows and columns, in each of which a cell has this width and height."""
    shapes = frame.groupby("panel", sort=False)[["column", "row"]].nunique().to_numpy().tolist()
    sizes = [(cell[0] * across, cell[1] * down) for across, down in shapes]
    own = "independent"
    return in_panels({"layer": parts}, frame, style, columns, title, sizes, x=own, y=own)


def _column_heads(names: Sequence[str], step: float, style: Style) -> dict[str, str]:
    """Heads of columns: in lines that are as wide as a column, or all in lines to be turned."""
    width = max(int(step / (0.55 * style.text)), 1)
    wrapped = {name: _wrapped(name, width) for name in names}
    if all(len(line) <= width for head in wrapped.values() for line in head.split("\n")):
        return wrapped
    two = step > 2.6 * style.text
    return {name: name if two else name.replace("\n", ", ") for name in names}


def _wrapped(text: str, width: int) -> str:
    """A text in lines of so many letters, broken between words."""
    lines = (textwrap.wrap(x, width, break_long_words=False) for x in text.split("\n"))
    return "\n".join(line for wrapped in lines for line in wrapped)


def _axis_order(values: pd.Series) -> list[Any]:
    """Distinct values in their order: names as they come, then whole numbers ascending."""
    unique_values = list(dict.fromkeys(values))
    numbers = [x for x in unique_values if isinstance(x, Real)]
    return [x for x in unique_values if x not in numbers] + sorted(numbers, key=float)


def _axis_letters(names: Iterable[str]) -> float:
    """Letters that an axis of names takes, and its title."""
    return 2.5 + 0.52 * min(max(map(len, names), default=0), 40)


def _name_axis(
    column: str, names: list[str], title: str, step: float, style: Style
) -> dict[str, Any]:
    """An axis of names, in the order of the numbers in the column `<column>_at`."""
    longest = max((len(line) for name in names for line in name.split("\n")), default=1)
    turned = column == "column" and 0.52 * style.text * longest > step
    axis = {
        "labelAngle": -90 if turned else 0,
        "labelOverlap": "greedy",
        "ticks": False,
        "domain": False,
    }
    lines = textwrap.wrap(title, max(20, int(len(names) * step / (0.5 * style.text))))
    return _channel(column, sort=_by(f"{column}_at"), title=lines or None, axis=axis)


def _placed(frame: pd.DataFrame) -> tuple[pd.DataFrame, list[str], list[str]]:
    """The frame with numbers for the order of its rows and columns, and the names of both."""
    down, along = _axis_order(frame["row"])[::-1], _axis_order(frame["column"])
    placed = frame.assign(
        row_at=frame["row"].map(down.index),
        column_at=frame["column"].map(along.index),
        row=frame["row"].astype(str),
        column=frame["column"].astype(str),
    )
    return placed, [*map(str, down)], [*map(str, along)]


def points(
    frame: pd.DataFrame, style: Style, *, across: str, title: str = "", longest: float
) -> Spec:
    """Numbers with their intervals, a line of marks for each name and model.

    Args:
        frame: with the columns name, model, kind, value, low, high; kinds differ in their shapes.
        across: title of the axis of numbers.
        longest: the end of that axis, which begins at 0.
    """
    order, models = list(dict.fromkeys(frame["name"])), list(dict.fromkeys(frame["model"]))
    kinds = list(dict.fromkeys(frame["kind"]))
    colours, dashes = series(models, style)
    frame = frame.assign(value=frame["value"].astype(float), place=frame["model"].map(models.index))
    key = legend_below(models, style) if style.legends else None
    base = {
        "y": _channel("name", title=None, scale={"domain": order, "paddingInner": 0.3}),
        "yOffset": _channel("place", "ordinal", sort="ascending"),
        "color": _channel("model", scale=colours, legend=key),
    }
    along = {"scale": {"domain": [0, longest], "nice": False, "clamp": True}, "title": across}
    ends = {
        **base,
        "x": _number_channel("low", **along),
        "x2": {"field": "high"},
        "strokeDash": _channel("model", scale=dashes, legend=key),
    }
    shapes = {"domain": kinds, "range": ["circle", "diamond", "square"][: len(kinds)]}
    marks: dict[str, Any] = {
        **base,
        "x": _number_channel("value", axis={"format": "d", "tickMinStep": 1}, **along),
        "shape": _channel("kind", scale=shapes, legend=legend_below(kinds, style)),
    }
    if style.hover:
        marks["tooltip"] = [*_tips("name", "model", "kind"), *_number_tooltips(frame)]
    # What has no number has no place on the axis; its text stands at the right end.
    texts = {**base, "x": {"value": "width"}, "text": _channel("text")}
    thick = style.text / 6
    chart = {
        "data": {"name": "rows"},
        "datasets": {"rows": rows(frame)},
        "layer": [
            _mark_layer("rule", ends, "isValid(datum.low)", strokeWidth=thick),
            _mark_layer("point", marks, size=3 * style.text, strokeWidth=thick),
            _mark_layer("text", texts, "!isValid(datum.value)", align="right", baseline="middle"),
        ],
        "width": style.panel(1, _axis_letters(order)),
        "height": {"step": 1.4 * style.text, "for": "offset"},
    }
    return titled(chart, title, style)


def pictures(
    frame: pd.DataFrame,
    style: Style,
    *,
    down: str,
    across: str,
    kinds: Mapping[str, str],
    title: str = "",
) -> Spec:
    """Small pictures in rows and columns, the first row at the bottom.

    Args:
        frame: with the columns panel, row, column, kind and url.
        kinds: in the order of their colours, each with the sign that pictures have.
    """
    frame, upright, along = _placed(frame)
    frame = frame.assign(sign=frame["kind"].map(kinds).fillna(""), least=0.0)
    columns = style.columns(frame["panel"].nunique(), 28)
    step = min(style.panel(columns, _axis_letters(upright)) / len(along), 6 * style.text)
    all_kinds = [*kinds, *(x for x in dict.fromkeys(frame["kind"]) if x not in kinds)]
    used = [kind for kind in all_kinds if kind in set(frame["kind"])]
    colours = distinct_colours(all_kinds)
    scale = {"domain": used, "range": [colours[kind] for kind in used]}
    base = {
        "x": _name_axis("column", along, across, step, style),
        "y": _name_axis("row", upright, down, step, style),
    }
    maps: dict[str, Any] = {**base, "url": _channel("url")}
    if style.hover:
        maps["tooltip"] = _tips("panel", "kind", row=down, column=across)
    frames = {**base, "stroke": _channel("kind", scale=scale, legend=legend_below(used, style))}
    shades = _number_channel(
        "least",
        title="value, on a square-root scale",
        scale={"scheme": "viridis", "type": "sqrt", "domain": [0, 1]},
        legend={"orient": "bottom", "direction": "horizontal", "tickCount": 4},
    )
    inner = 0.82 * step
    corner = {"xOffset": inner / 2 - 1, "yOffset": 1 - inner / 2}
    parts = [
        _mark_layer("image", maps, width=inner, height=inner, smooth=False, aspect=False),
        _mark_layer("point", frames, shape="square", size=inner**2, strokeWidth=step / 20),
        _mark_layer("text", {**base, "text": _channel("sign")}, align="right", baseline="top",
               color="white", fontSize=min(0.35 * step, style.text), **corner),
        # These marks are invisible; they give the chart its colour legend.
        _mark_layer("point", {**base, "color": shades}, opacity=0, size=0),
    ]  # fmt: skip
    return _grids(parts, frame, style, columns, title, (step, step))


def arcs(words: Sequence[str], edges: pd.DataFrame, style: Style, *, title: str = "") -> Spec:
    """Edges between the words of a sentence as arcs, above or below them.

    A long sentence is wider than the look.

    Args:
        edges: with the columns first, last (indices of words; -1 for the root, which stands
            outside), kind, and `below`, whether it is drawn below the words.
    """
    size = style.text
    # Letters of the fonts are about half as wide as they are high.
    wide = [0.56 * size * len(word) + 0.8 * size for word in words]
    ends = [sum(wide[: i + 1]) for i in range(len(wide))]
    centres = [end - w / 2 for end, w in zip(ends, wide, strict=True)]
    levels = edges.assign(level=0)
    for _, same in edges.groupby("below"):
        level_by_arc = heights(
            [(a, b) for a, b in zip(same["first"], same["last"], strict=True) if a >= 0]
        )
        top = 1 + max(level_by_arc.values(), default=0)
        levels.loc[same.index, "level"] = [
            level_by_arc.get((a, b), top) for a, b in zip(same["first"], same["last"], strict=True)
        ]
    step = min(1.7 * size, 17 * size / levels["level"].max())
    curve_points = []
    columns = ["first", "last", "kind", "below", "level"]
    for number, edge in enumerate(levels[columns].to_numpy().tolist()):
        first, last, kind, below, level = edge
        start = centres[last if first < 0 else first]
        middle, half = (start + centres[last]) / 2, (centres[last] - start) / 2
        for i in range(33):
            angle = math.pi * (i / 32 if half else 0.5 * i / 32)
            up = size + step * level * math.sin(angle)
            point = middle - half * math.cos(angle), -up if below else up
            curve_points.append((number, i, *point, kind))
    at = {
        "x": _number_channel("x", axis=None, scale={"domain": [0, ends[-1]]}),
        "y": _number_channel("y", axis=None, scale={"nice": False}),
    }
    kinds = [kind for kind in EDGES if kind in set(edges["kind"])]
    colours, dashes = ([EDGES[kind][i] for kind in kinds] for i in (0, 1))
    key = legend_below(kinds, style, symbolType="stroke", symbolSize=120, symbolStrokeWidth=1.5)
    curves = {
        **at,
        "detail": _channel("edge"),
        "order": _number_channel("i"),
        "color": _channel("kind", scale={"domain": kinds, "range": colours}, legend=key),
        "strokeDash": _channel("kind", scale={"domain": kinds, "range": dashes}, legend=key),
    }
    texts = {**at, "text": _channel("word")}
    tall = 2 * size + sum(step * level for level in levels.groupby("below")["level"].max())
    chart = {
        "datasets": {
            "edges": rows(pd.DataFrame(curve_points, columns=["edge", "i", "x", "y", "kind"])),
            "words": rows(pd.DataFrame({"x": centres, "y": 0.0, "word": words})),
        },
        "layer": [
            {"data": {"name": "edges"}, **_mark_layer("line", curves, strokeWidth=size / 8)},
            {"data": {"name": "words"},
             **_mark_layer("text", texts, baseline="middle", fontSize=size)},
        ],
        "width": max(ends[-1], 20 * size),
        "height": tall,
    }  # fmt: skip
    return titled(chart, title, style)


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
    # Eight bits each for red, green, blue and opacity (6); lines begin with their filter, none (0).
    head = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    png = b"\x89PNG\r\n\x1a\n"
    for kind, data in ((b"IHDR", head), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b"")):
        check = zlib.crc32(kind + data)
        png += struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)
    return "data:image/png;base64," + base64.b64encode(png).decode()
