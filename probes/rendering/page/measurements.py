"""The parts of the page that measurements of a corpus describe themselves, plug-ins among them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

from jinja2 import Environment
from markupsafe import Markup

from probes.boards.corpus_groups import CorpusGroup
from probes.boards.groups import Group
from probes.common.terminal import progress
from probes.measurements.measurement import get_measurement
from probes.measurements.plugin_keys import plugin_failure
from probes.records.charts import Chart, Grid
from probes.records.curves import Curves
from probes.records.table import Table
from probes.rendering.page import charts, tables
from probes.rendering.page.models import MOST_DRAWN, Shown

CURVES = "Layer curves"
"""Title of the part in which models are chosen, if there are scores."""


@dataclass(frozen=True)
class Part:
    """A measurement's part of the page.

    Attributes:
        charts: their data, by the identifiers that `html` names.
    """

    id: str
    title: str
    html: Markup
    charts: dict[str, dict[str, Any]]


class ChartView(NamedTuple):
    """A chart, as the template reads it.

    Attributes:
        grids: of a grid, its panels by label.
        numbers, levels: of curves.
    """

    id: str
    chart: Chart
    grids: dict[str, Table]
    numbers: Table | None
    levels: list[str]


class GroupView(NamedTuple):
    """Records that share charts, as the template reads them.

    Attributes:
        scores: identifiers of the results on the same text, by which the page is filtered.
        models: how each record is shown, by its label.
        tables: of each record.
    """

    title: str
    scores: list[str]
    models: dict[str, Shown]
    charts: list[ChartView]
    tables: dict[str, list[Table]]


def parts(
    groups: Sequence[CorpusGroup],
    scored: Mapping[str, Group],
    models: Mapping[str, Shown],
    environment: Environment,
) -> Iterator[Part]:
    """A part for each measurement; that of a plug-in that fails is left out with a message.

    Args:
        groups: in order of their measurements.
        scored: the groups of scores on the page, by identifier.
    """
    picker = CURVES if scored else ""
    for name, given in groupby(groups, key=lambda group: group.measurement.name):
        title = name.replace("_", " ").capitalize()
        template = environment.get_template("measurement.html")
        try:
            views = [
                _view(f"of-{name}-{i}", group, scored, models) for i, group in enumerate(given)
            ]
            data = {
                each.id: charts.line_chart(each.chart, view.models)
                for view in views
                for each in view.charts
                if isinstance(each.chart, Curves) and each.chart.models
            }
            html = template.render(
                summary=get_measurement(name).summary,
                views=views,
                models=models,
                most_drawn=MOST_DRAWN,
                picker=picker,
            )
            yield Part(f"of-{name}", title, Markup(html), data)
            picker = picker or title
        except Exception as error:
            if not (why := plugin_failure(error, name, None, "")):
                raise
            progress.say(f"left out of the page: {name}: {why}")


def _view(
    id: str, group: CorpusGroup, scored: Mapping[str, Group], models: Mapping[str, Shown]
) -> GroupView:
    text = group.first.corpus.fingerprint
    tables_of = group.measurement.tables
    return GroupView(
        group.title,
        [name for name, each in scored.items() if each.units[0].first.corpus.fingerprint == text],
        {label: models[label] for label in group.records},
        [_chart(f"{id}-{i}", chart) for i, chart in enumerate(group.charts())],
        {label: list(tables_of(record)) for label, record in group.records.items()},
    )


def _chart(id: str, chart: Chart) -> ChartView:
    if isinstance(chart, Grid):
        return ChartView(id, chart, tables.grids(chart), None, [])
    return ChartView(id, chart, {}, tables.numbers(chart), tables.levels(chart))
