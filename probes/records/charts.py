"""Charts in plain types: a measurement describes them, `probes.rendering` draws them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from probes.records.curves import Curves


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

    @property
    def span(self) -> tuple[float, float]:
        """The ends of the colour scale; of panels without any number 0 and 1."""
        known = [
            value
            for panel in self.panels.values()
            for row in panel.values
            for value in row
            if value is not None
        ]
        low = min(known, default=0.0) if self.low is None else self.low
        high = max(known, default=1.0) if self.high is None else self.high
        return low, high

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


Chart = Curves | Grid
