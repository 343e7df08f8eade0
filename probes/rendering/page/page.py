"""Writes the HTML page: collects its tables and charts, and fills the templates."""

from __future__ import annotations

import datetime
from collections import ChainMap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from probes import __version__
from probes.boards.claims.claim_reports import NOTE as CLAIMS_NOTE
from probes.boards.claims.claim_reports import Report, make_reports
from probes.boards.comparable import SAME_VECTORS, twins_of
from probes.boards.groups import Group, TaskResults, corpus_groups, group, model_labels
from probes.boards.separability import NOTE, finding, separability
from probes.common.errors import printable_lines
from probes.common.files import published
from probes.measurements.columns import values
from probes.measurements.measurement import LOCALISATION, probe_measurements
from probes.records.charts import Curves, Grid
from probes.records.record import Record, model_title
from probes.records.result import Result
from probes.records.table import Table, legend
from probes.rendering.page import page_charts, tables
from probes.rendering.page.measurements import parts
from probes.rendering.page.page_charts import MOST_DRAWN, shown_models
from probes.rendering.page.tables import sources
from probes.rendering.palette import css, distinct

Measure = tuple[Curves, Table, list[str]]
"""Curves, the table of their numbers, and levels as text."""


@dataclass(frozen=True)
class UnitView:
    """One task in one setting, as the templates read it.

    Attributes:
        scores: curves of scores, the table of their numbers, and levels.
        measures: those of the evidence.
        mixes: those of localisation.
        groups: the breakdown.
    """

    unit: TaskResults
    scores: Measure
    measures: list[Measure]
    mixes: list[Measure]
    estimates: Table
    groups: Table


@dataclass(frozen=True)
class GroupView:
    """Results that may share charts, as the templates read them.

    Attributes:
        findings: by model, each task with what was found; of models that were trained.
        separability: of layers.
        alone: tasks without a random twin.
        claims: outcomes by model, or why there are none.
    """

    id: str
    group: Group
    leaderboard: Table
    findings: dict[str, list[tuple[TaskResults, str]]]
    heat_maps: dict[str, Table]
    separability: Grid
    units: list[UnitView]
    alone: list[str]
    claims: dict[str, Report | str]


def write_page(
    found: Mapping[Path, Result],
    path: Path,
    name: str,
    others: Mapping[Path, Record] = MappingProxyType({}),
    home: str = "",
) -> Path:
    """Write the page of results and of records of other measurements; see `page`."""
    with published(path) as temporary:
        temporary.write_text(page(found, name, others, home), encoding="utf-8")
    return path


def templates(*packages: str) -> Environment:
    """The templates of the page, and of other packages, in which everything is escaped."""
    return Environment(
        loader=ChoiceLoader(list(map(PackageLoader, ("probes.rendering.page", *packages)))),
        autoescape=True,
        finalize=lambda x: printable_lines(x) if type(x) is str else x,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def table_html(table: Table) -> str:
    """A table by itself, with its notes and a legend of its marks."""
    table = replace(table, notes=(*table.notes, *table.legend))
    return str(templates().get_template("tables.html").module.plain(table))  # type: ignore[attr-defined]


def page(
    found: Mapping[Path, Result],
    name: str,
    others: Mapping[Path, Record] = MappingProxyType({}),
    home: str = "",
) -> str:
    """The page as HTML.

    Args:
        found: results by their paths.
        name: its title.
        others: records of measurements of a corpus; see `probes.boards.groups.of_corpora`.
        home: the address of a page that it belongs to; empty for none.
    """
    every = {**found, **others}
    models = shown_models(every)
    groups, left_out = group(found, others)
    corpora, also_left_out = corpus_groups(others, model_labels(every))
    views = {f"g{i}": _group_view(f"g{i}", each, others) for i, each in enumerate(groups)}
    environment = templates()
    environment.globals.update(
        shades_of=page_charts.shades_of,
        grids=tables.grids,
        not_measured=page_charts.not_measured,
        distinct=distinct,
    )
    scored = {id: view.group for id, view in views.items()}
    own = {part.id: part for part in parts(corpora, scored, models, environment)}
    drawn = [_charts(views.values(), list(models)), *(part.charts for part in own.values())]
    return environment.get_template("page.html").render(
        name=name,
        home=home,
        date=datetime.datetime.now(datetime.UTC).date().isoformat(),
        version=__version__,
        models=models,
        most_drawn=MOST_DRAWN,
        groups=list(views.values()),
        has_evidence=any(
            view.separability.panels or any(each.measures for each in view.units)
            for view in views.values()
        ),
        has_localisation=any(each.mixes for view in views.values() for each in view.units),
        overview_note=NOTE,
        legend=legend(table for view in views.values() for table in view.heat_maps.values()),
        parts=own,
        own_tabs=[(part.id, part.title) for part in own.values()],
        left_out=left_out + also_left_out,
        tasks=list(dict.fromkeys(unit.name for each in groups for unit in each.units)),
        claims_without_scores=_claims_without_scores(found, others),
        claims_note=CLAIMS_NOTE,
        sources=sources(list(every.values())),
        data=page_charts.packed(
            {
                "models": page_charts.model_names(models),
                "charts": dict(ChainMap(*drawn)),
                "config": page_charts.PAGE.config,
                "cards": {part.id: part.cards for part in own.values()},
                "shades": [css(i / 255) for i in range(256)],
            }
        ),
        script=page_charts.script(),
    )


def _group_view(name: str, given: Group, others: Mapping[Path, Record]) -> GroupView:
    return GroupView(
        id=name,
        group=given,
        leaderboard=tables.leaderboard(given),
        findings={model: _findings(given, model) for model in given.models},
        separability=separability(given.paths),
        heat_maps={model: tables.heat_map(given, model) for model in given.models},
        units=[_unit_view(unit) for unit in given.units],
        alone=[
            unit.title
            for unit in given.units
            if all(x.model.random_seed is None for x in unit.results.values())
        ],
        claims={model: _claims(paths, given, others) for model, paths in given.paths.items()},
    )


def _findings(given: Group, model: str) -> list[tuple[TaskResults, str]]:
    """What was found in each task, unless the model was never trained: it is a floor of others."""
    own = [unit for unit in given.units if model in unit.results]
    trained = [unit for unit in own if unit.results[model].model.random_seed is None]
    return [(unit, finding(unit.floored[model])) for unit in trained]


def _unit_view(unit: TaskResults) -> UnitView:
    scores = replace(unit.score_curves, title=f"{unit.title}, n = {unit.n}", note="")
    return UnitView(
        unit,
        (scores, tables.numbers(scores, tables.best_layers(unit)), tables.levels(scores)),
        *_evidence(unit),
        tables.estimates(unit),
        tables.breakdown(unit),
    )


def _evidence(unit: TaskResults) -> tuple[list[Measure], list[Measure]]:
    """The curves of the evidence that some model of the unit has, and those of localisation."""
    found: tuple[list[Measure], list[Measure]] = ([], [])
    for each in probe_measurements():
        if any(map(each.own, unit.results.values())):
            own = (x for x in each.charts(unit.results) if isinstance(x, Curves))
            measures = ((x, tables.numbers(x), tables.levels(x)) for x in own)
            found[each.name == LOCALISATION].extend(measures)
    return found


def _claims(
    paths: Mapping[Path, Result], given: Group, others: Mapping[Path, Record]
) -> Report | str:
    """The outcomes on one model, or why there are none."""
    first = next(iter(paths.values()))
    every = {path: result for found in given.paths.values() for path, result in found.items()}
    twins = twins_of(first, every)
    subjects = {values(result, SAME_VECTORS) for result in (*paths.values(), *twins.values())}
    beside = {path: each for path, each in others.items() if values(each, SAME_VECTORS) in subjects}
    reports = make_reports({**paths, **twins}, given.probe, beside)
    own = [report for report in reports if report.model == model_title(first)]
    return own[0] if own else "made by another version of its tasks or probe"


def _claims_without_scores(
    found: Mapping[Path, Result], others: Mapping[Path, Record]
) -> list[Report]:
    """The outcomes on models and corpora that there are no scores of."""
    subjects = {values(result, SAME_VECTORS) for result in found.values()}
    alone = {
        path: each for path, each in others.items() if values(each, SAME_VECTORS) not in subjects
    }
    return make_reports({}, "", alone)


def _charts(views: Iterable[GroupView], models: Sequence[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for view in views:
        located = page_charts.expected_layer_chart(view.group)
        if located:
            found[f"{view.id}-located"] = located
        for place, each in enumerate(view.units):
            for curves, _, _ in (each.scores, *each.measures, *each.mixes):
                if curves.models:
                    chart = page_charts.line_chart(curves, models)
                    found[f"{view.id}-{place}-{curves.name}"] = chart
    return found
