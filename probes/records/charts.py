"""Charts in plain types: a measurement describes them, `probes.rendering` draws them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from probes.records.curves import Curves
from probes.records.gallery import Gallery, Picture
from probes.records.values import is_shaped, span_of


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


LEFT_OUT = -2
"""In the place of a head in a predicted tree: a word that is in none, such as punctuation."""


@dataclass(frozen=True)
class PredictedTree:
    """A sentence's dependency tree, and the tree that a structural probe finds in its vectors.

    Attributes:
        gold: index of each word's head, or `ROOT`.
        predicted: the same, or `LEFT_OUT`.
    """

    title: str
    words: tuple[str, ...]
    gold: tuple[int, ...]
    predicted: tuple[int, ...]

    @property
    def gold_edges(self) -> set[tuple[int, int]]:
        """Undirected edges, the lower index first, between words of the predicted tree."""
        edges = _edges(self.gold)
        return {x for x in edges if all(self.predicted[word] != LEFT_OUT for word in x)}

    @property
    def other_gold_edges(self) -> set[tuple[int, int]]:
        """Those of words that the predicted tree leaves out, which cannot be right or wrong."""
        return _edges(self.gold) - self.gold_edges

    @property
    def predicted_edges(self) -> set[tuple[int, int]]:
        """Undirected edges, the lower index first."""
        return _edges(self.predicted)


def _edges(heads: tuple[int, ...]) -> set[tuple[int, int]]:
    return {(min(i, head), max(i, head)) for i, head in enumerate(heads) if head >= 0}


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
