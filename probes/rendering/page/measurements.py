"""The parts of the page that measurements of a corpus describe themselves, plug-ins among them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby
from typing import Any, NamedTuple

from jinja2 import Environment
from markupsafe import Markup

from probes.boards.groups import CorpusGroup, Group
from probes.common.terminal import progress
from probes.measurements.measurement import get_measurement
from probes.measurements.plugin_keys import plugin_failure
from probes.records.charts import Card, Chart, Curves, Gallery, Grid, Picture
from probes.records.table import Table
from probes.rendering.page import page_charts, tables
from probes.rendering.page.page_charts import Shown, significant


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


@dataclass(frozen=True)
class PagePart:
    """A measurement's part of the page.

    Attributes:
        charts: their data, by the identifiers that `html` names.
        cards: the data of cards and pictures, which `html` numbers.
    """

    id: str
    title: str
    html: Markup
    charts: dict[str, dict[str, Any]]
    cards: dict[str, list[Any]]


class ShownChart(NamedTuple):
    """A chart, as the template reads it.

    Attributes:
        kind: name of the macro that draws it.
        tables: by label: of a grid, its panels. Of curves, their numbers.
        cards: the numbers of cards by label, in rows and columns.
        levels: of curves.
    """

    id: str
    kind: str
    chart: Chart
    tables: dict[str, Table]
    cards: dict[str, list[list[int | None]]]
    levels: list[str]


class RecordsView(NamedTuple):
    """Records that share charts, as the template reads them.

    Attributes:
        scores: identifiers of the results on the same text, by which the page is filtered.
        models: how each record is shown, by its label.
        lacking: the charts with no task, which say what was not measured.
        tables: of each record.
    """

    title: str
    scores: list[str]
    models: dict[str, Shown]
    charts: list[ShownChart]
    lacking: list[tuple[str, Chart]]
    tables: dict[str, list[Table]]


def parts(
    groups: Sequence[CorpusGroup],
    scored: Mapping[str, Group],
    models: Mapping[str, Shown],
    environment: Environment,
) -> Iterator[PagePart]:
    """A part for each measurement; that of a plug-in that fails is left out with a message.

    Args:
        groups: in order of their measurements.
        scored: the groups of scores on the page, by identifier.
    """
    for name, given in groupby(groups, key=lambda group: group.measurement.name):
        title = name.replace("_", " ").capitalize()
        template = environment.get_template("measurement.html")
        try:
            cards = Cards()
            views = [
                _view(f"of-{name}-{i}", group, scored, models, cards)
                for i, group in enumerate(given)
            ]
            data: dict[str, dict[str, Any]] = {}
            for view in views:
                for each in view.charts:
                    if isinstance(each.chart, Curves) and each.chart.models:
                        data[each.id] = page_charts.line_chart(each.chart, list(models))
            html = template.render(
                summary=get_measurement(name).summary,
                views=views,
                models=models,
            )
            yield PagePart(f"of-{name}", title, Markup(html), data, cards.data)
        except Exception as error:
            if not (why := plugin_failure(error, name, None, "")):
                raise
            progress.say(f"left out of the page: {name}: {why}")


def _view(
    id: str,
    group: CorpusGroup,
    scored: Mapping[str, Group],
    models: Mapping[str, Shown],
    cards: Cards,
) -> RecordsView:
    text = group.first.corpus.fingerprint
    tables_of = group.measurement.tables
    charts = list(group.charts())
    return RecordsView(
        group.title,
        [name for name, each in scored.items() if each.units[0].first.corpus.fingerprint == text],
        {label: models[label] for label in group.records},
        [_chart(f"{id}-{i}", x, cards) for i, x in enumerate(chain(*map(_parts, charts)))],
        [("", chart) for chart in charts],
        {label: list(tables_of([record])) for label, record in group.records.items()},
    )


def _parts(chart: Chart) -> Sequence[Chart]:
    """The chart, or, if it has panels, each as a chart of its own."""
    if not isinstance(chart, Curves) or chart.panels == [chart]:
        return [chart]
    return [replace(part, title=f"{chart.title} · {part.title}") for part in chart.panels]


def _chart(id: str, chart: Chart, cards: Cards) -> ShownChart:
    match chart:
        case Curves():
            numbers = {"": tables.numbers(chart)}
            return ShownChart(id, "curves", chart, numbers, {}, tables.levels(chart))
        case Grid():
            numbered = {label: cards.numbers(each) for label, each in chart.cards.items()}
            return ShownChart(id, "grid", chart, tables.grids(chart), numbered, [])
        case Gallery():
            numbered = {label: cards.numbers(cards_of(chart, label)) for label in chart.panels}
            return ShownChart(id, "gallery", chart, {}, numbered, [])
