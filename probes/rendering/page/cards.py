"""The data of cards and pictures, which the page draws itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from probes.records.charts import Card
from probes.records.gallery import Gallery, Picture
from probes.rendering.page.page_charts import significant


class Cards:
    """The cards of one part of the page, each of them and each picture once.

    Attributes:
        data: what the page needs: cards, with the number of their picture; and pictures.
    """

    def __init__(self) -> None:
        self._cards: dict[Card, int] = {}
        self._pictures: dict[tuple[tuple[float | None, ...], ...], int] = {}
        self.data: dict[str, list[Any]] = {"cards": [], "pictures": []}

    def number(self, card: Card | None) -> int | None:
        """The place of a card among all; None for no card."""
        if card is None:
            return None
        if card not in self._cards:
            self._cards[card] = len(self._cards)
            picture = None if card.picture is None else self._picture(card.picture)
            lines = [[name, value] for name, value in card.lines]
            self.data["cards"].append({"title": card.title, "lines": lines, "picture": picture})
        return self._cards[card]

    def numbers(self, cards: Sequence[Sequence[Card | None]]) -> list[list[int | None]]:
        """The places of cards in rows and columns."""
        return [[self.number(card) for card in row] for row in cards]

    def _picture(self, picture: Picture) -> int:
        # Three digits are more than a colour shows.
        values = tuple(tuple(significant(x, 3) for x in row) for row in picture.values)
        if values not in self._pictures:
            self._pictures[values] = len(self._pictures)
            self.data["pictures"].append(values)
        return self._pictures[values]


def cards_of(gallery: Gallery, label: str) -> list[list[Card | None]]:
    """A card with each picture of a model, by which the page shows it and enlarges it."""
    panel = gallery.panels[label]
    return [
        [
            _card(f"{gallery.down} {row}, {gallery.across} {column}", picture)
            for column, picture in zip(panel.columns, pictures, strict=True)
        ]
        for row, pictures in zip(panel.rows, panel.pictures, strict=True)
    ]


def _card(title: str, picture: Picture | None) -> Card | None:
    if picture is None:
        return None
    return Card(title, (("kind", picture.group),) if picture.group else (), picture)
