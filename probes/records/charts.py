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


Chart = Curves | Grid
