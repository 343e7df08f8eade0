"""Charts in plain types: curves, grids and galleries.

A measurement describes them, `probes.rendering` draws them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

from probes.records.values import Interval, is_shaped, span_of


class Picture(NamedTuple):
    """Numbers as colours, such as the mean attention map of a head.

    Attributes:
        values: the first row is drawn at the top; None where there is no number. Shape (height,
            width).
        mark: a letter or two, drawn into a corner.
        group: what its frame is coloured by; empty for no frame.
    """

    values: tuple[tuple[float | None, ...], ...]
    mark: str = ""
    group: str = ""

    @property
    def is_empty_or_ragged(self) -> bool:
        """Whether it cannot be drawn."""
        width = len(self.values[0]) if self.values else 0
        return width == 0 or not is_shaped(self.values, len(self.values), width)


class GalleryPanel(NamedTuple):
    """The pictures of one model.

    Attributes:
        rows, columns: their names, such as layers and heads; the first row is drawn at the bottom.
        pictures: None where there is none. Shape (rows, columns).
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    pictures: tuple[tuple[Picture | None, ...], ...]


@dataclass(frozen=True)
class Gallery:
    """Small pictures in rows and columns, all of one colour scale.

    Colours are by the square root of the place between both ends, so that faint structure shows.

    Attributes:
        name: identifies it on a page: letters and underscores.
        down, across: titles of the axes of rows and of columns.
        panels: one for each model, by label.
        low, high: ends of the colour scale; None for the least and the greatest value.
        missing: why a model has no panel, by model.
        order: groups in the order of their colours, which are then the same in every chart; others
            follow.
    """

    name: str
    title: str
    note: str
    down: str
    across: str
    panels: dict[str, GalleryPanel] = field(default_factory=dict)
    low: float | None = None
    high: float | None = None
    missing: dict[str, str] = field(default_factory=dict)
    order: tuple[str, ...] = ()

    @property
    def pictures(self) -> list[Picture]:
        """The pictures of all panels."""
        return [
            picture
            for panel in self.panels.values()
            for row in panel.pictures
            for picture in row
            if picture is not None
        ]

    @property
    def span(self) -> tuple[float, float]:
        """The ends of the colour scale; 0 and 1 if there is no number."""
        values = (x for picture in self.pictures for row in picture.values for x in row)
        return span_of(values, self.low, self.high)

    @property
    def fault(self) -> str:
        """What does not fit, as "the chart has …"; empty if everything does."""
        for panel in self.panels.values():
            shape = len(panel.rows), len(panel.columns)
            if 0 in shape or not is_shaped(panel.pictures, *shape):
                return "a panel whose pictures are none, or not as many as its rows and columns"
        if any(picture.is_empty_or_ragged for picture in self.pictures):
            return "a picture that has no values, or rows of different lengths"
        return ""

    @property
    def key(self) -> dict[str, str]:
        """The marks of each group's pictures, as text."""
        found: dict[str, dict[str, None]] = {group: {} for group in self.order}
        for picture in self.pictures:
            if picture.group:
                found.setdefault(picture.group, {}).update({picture.mark: None})
        return {group: " ".join(filter(None, marks)) for group, marks in found.items()}


class Point(NamedTuple):
    """One point of a curve, with its value and interval.

    Attributes:
        x: a layer, the last layer of a mix, or what else `Curves.what` says.
        line: which curve it is on where a model has several.
        panel: which panel it is in where a chart has several.
        floored: whether it is a score that is not above its floor, and set back for that.
    """

    x: int
    value: float | None
    interval: Interval = None
    line: str = ""
    panel: str = ""
    floored: bool = False


@dataclass(frozen=True)
class Curves:
    """One measure of one task, for every model that has it.

    Attributes:
        name: identifies it on a page: letters and underscores.
        axis: title of the axis of values.
        metric: the metric that the values are printed as; empty for plain numbers.
        percent: whether values are shares, to be drawn as percentages.
        what: what a point is of: "layer", "layers 0 to k", or another title of the axis of x.
        log: whether the axis of x is logarithmic.
        models: points by model.
        levels: values that are the same at every layer, by name.
        missing: why a model has no curve, by model.
    """

    name: str
    title: str
    note: str
    axis: str
    metric: str = ""
    percent: bool = False
    what: str = "layer"
    log: bool = False
    models: dict[str, list[Point]] = field(default_factory=dict)
    levels: dict[str, float] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)

    @property
    def lines(self) -> list[str]:
        """Names of the curves that a model has; one empty name if it has one."""
        return list(dict.fromkeys(p.line for points in self.models.values() for p in points))

    @property
    def panels(self) -> list[Curves]:
        """A chart for each panel, which has its title; alone if it has no panels."""
        every = dict.fromkeys(p.panel for points in self.models.values() for p in points)
        if set(every) <= {""}:
            return [self]
        return [
            replace(
                self,
                title=panel,
                models={m: [p for p in x if p.panel == panel] for m, x in self.models.items()},
            )
            for panel in every
        ]

    @property
    def scale(self) -> int:
        """Factor of the drawn values."""
        return 100 if self.percent else 1


class Card(NamedTuple):
    """More about a cell, which the page shows where it is asked for.

    Attributes:
        lines: names and values.
    """

    title: str
    lines: tuple[tuple[str, str], ...] = ()
    picture: Picture | None = None


class Panel(NamedTuple):
    """One grid of numbers.

    Attributes:
        rows, columns: their names, such as layers; the first row is drawn at the bottom.
        values: None where there is no number. Shape (rows, columns).
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]


@dataclass(frozen=True)
class Grid:
    """Numbers by row and column, such as similarities of layers.

    Attributes:
        name: identifies it on a page: letters and underscores.
        down, across: titles of the axes of rows and of columns.
        panels: one for each model, or pair of models, by label.
        digits: of the numbers that are written into cells.
        low, high: ends of the colour scale; None for the least and the greatest value.
        missing: why a model has no panel, by model.
        cards: what the page shows of a cell on demand, by label and in the shape of its panel.
    """

    name: str
    title: str
    note: str
    down: str
    across: str
    panels: dict[str, Panel] = field(default_factory=dict)
    digits: int = 2
    low: float | None = None
    high: float | None = None
    missing: dict[str, str] = field(default_factory=dict)
    cards: dict[str, tuple[tuple[Card | None, ...], ...]] = field(default_factory=dict)

    @property
    def span(self) -> tuple[float, float]:
        """The ends of the colour scale; of panels without any number 0 and 1."""
        values = (x for panel in self.panels.values() for row in panel.values for x in row)
        return span_of(values, self.low, self.high)

    @property
    def fault(self) -> str:
        """What does not fit, as "the chart has …"; empty if everything does."""
        for panel in self.panels.values():
            if not is_shaped(panel.values, len(panel.rows), len(panel.columns)):
                return "a panel whose values are not as many as its rows and columns"
        for label, cards in self.cards.items():
            panel = self.panels.get(label, Panel((), (), ()))
            if not is_shaped(cards, len(panel.rows), len(panel.columns)):
                return f"cards of {label} that are not in the shape of its panel"
            pictures = (card.picture for row in cards for card in row if card and card.picture)
            if any(picture.is_empty_or_ragged for picture in pictures):
                return "a card whose picture has no values, or rows of different lengths"
        return ""

    def place(self, value: float | None) -> float | None:
        """The place of a value on the colour scale, from 0 to 1."""
        if value is None:
            return None
        low, high = self.span
        return min(max((value - low) / (high - low), 0.0), 1.0) if high > low else 0.0

    def text(self, value: float | None) -> str:
        """A value as it is written into a cell: ``.98``; nothing for None."""
        if value is None:
            return ""
        text = f"{value:.{self.digits}f}"
        return text.replace("0.", ".", 1) if abs(value) < 1 else text


Chart = Curves | Grid | Gallery

UNMEASURED = "there is no record of it"
"""Why a model has no part of a chart, unless there is more to say."""


def models_of(chart: Chart) -> list[str]:
    """Labels of the models, or pairs of models, that a chart has something of."""
    match chart:
        case Curves():
            return list(chart.models)
        case Grid() | Gallery():
            return list(chart.panels)
