"""Small pictures in rows and columns, such as an attention map of every head."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from probes.records.values import is_shaped, span_of


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
