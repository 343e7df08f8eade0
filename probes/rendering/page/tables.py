"""The tables of the page, also of provenance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from types import MappingProxyType
from typing import NamedTuple

from probes.boards.groups import Group, TaskResults
from probes.boards.layer_tables import count_row, floor_row, layer_rows
from probes.measurements.cells import (
    estimate_text,
    group_cell,
    group_metric_title,
    n_of,
    score_cell,
)
from probes.measurements.measurement import LOCALISATION
from probes.records.charts import Curves, Grid, Point
from probes.records.header import CorpusRecord
from probes.records.record import Record
from probes.records.result import Result
from probes.records.table import NOTHING, Cell, Table, TableRow
from probes.rendering.drawing.lines import digits_of
from probes.statistics.metrics import shown

NO_RESULT = Cell(NOTHING, note="no result")


def leaderboard(group: Group) -> Table:
    """Each model's best layer by task."""
    rows = [
        TableRow.of(
            model,
            *(_best(unit, model) if model in unit.results else NO_RESULT for unit in group.units),
            model=model,
        )
        for model in group.models
    ]
    return Table(group.title, ("model", *(unit.title for unit in group.units)), tuple(rows))


def _best(unit: TaskResults, model: str) -> Cell:
    result = unit.floored[model]
    best, metric = result.best_layer, result.task.metric
    layer = f"layer {best} of {result.model.n_layers}"
    marks = ["no best layer" if result.best_number is None else layer]
    floored = result.is_floored(best)
    marks += ["not above the floor"] * floored + [f"n = {n_of([result])}"]
    value, note = result.score(best), ", ".join(marks)
    return score_cell(value, result.interval(best), metric, note=note, value=value, floored=floored)


def heat_map(group: Group, model: str) -> Table:
    """Test scores, a row per layer and a column per task; the floor, and the number of examples."""
    units = [unit for unit in group.units if model in unit.results]
    among = [list(unit.results.values()) for unit in units]
    results = [unit.floored[model] for unit in units]
    rows = [*layer_rows(results, among), floor_row(results), count_row(results)]
    return Table(
        f"{model}: test scores by layer", ("layer", *(unit.title for unit in units)), tuple(rows)
    )


def numbers(curves: Curves, best: Mapping[str, int | None] = MappingProxyType({})) -> Table:
    """The numbers of a chart: a row per model and line, a column per x, such as a layer.

    Args:
        best: the x that is the best, by model.
    """
    every = sorted({p.x for points in curves.models.values() for p in points})
    heads = [f"{x:,}" for x in every]
    rows = []
    for model, line in product(curves.models, curves.lines):
        given = {point.x: point for point in curves.models[model] if point.line == line}
        cells = [
            replace(_number(given[x], curves), best=x == best.get(model))
            if x in given
            else NO_RESULT
            for x in every
        ]
        rows.append(TableRow.of(f"{model}, {line}" if line else model, *cells, model=model))
    return Table(
        f"{curves.title}, {curves.axis}", (f"model, by {curves.what}", *heads), tuple(rows)
    )


def best_layers(unit: TaskResults) -> dict[str, int | None]:
    """The best layer of each model on dev, None if its score is not above the floor."""
    return {
        model: None if result.is_floored(result.best_layer) else result.best_number
        for model, result in unit.floored.items()
    }


def _number(point: Point, curves: Curves) -> Cell:
    if curves.metric:
        return score_cell(point.value, point.interval, curves.metric, floored=point.floored)
    digits, scale = digits_of(curves), curves.scale
    if point.value is None:
        return NO_RESULT
    half = scale * (point.interval[1] - point.interval[0]) / 2 if point.interval else None
    return Cell(f"{scale * point.value:.{digits}f}", "" if half is None else f"{half:.{digits}f}")


def grids(grid: Grid) -> dict[str, Table]:
    """Each panel of a grid as a heat map, by its label: a row per row, the last of them first."""
    found = {}
    for label, panel in grid.panels.items():
        rows = [
            TableRow.of(name, *(Cell(grid.text(x) or NOTHING, place=grid.place(x)) for x in values))
            for name, values in zip(panel.rows, panel.values, strict=True)
        ]
        found[label] = Table(label, (grid.down, *panel.columns), tuple(rows))
    return found


def levels(curves: Curves) -> list[str]:
    """Baselines and references, as text."""
    return [
        f"{name} {shown(value, curves.metric) if curves.metric else f'{curves.scale * value:.2f}'}"
        for name, value in curves.levels.items()
    ]


def estimates(unit: TaskResults) -> Table:
    """Where a task becomes decodable: a row per model that was localised."""
    rows = []
    for model, result in unit.results.items():
        found = result.found(LOCALISATION)
        if found is None:
            continue
        metrics = "expected_layer", "centre_of_gravity", "kl", "total_gain"
        weights = (
            found.at("mix_weight", result.model.n_layers, "train", of=layer)
            for layer in result.layers
        )
        texts = [
            *(estimate_text(found.at(metric)) for metric in metrics),
            " ".join(shown(row.value, row.metric) for row in weights if row),
        ]
        rows.append(TableRow.of(model, *texts, model=model))
    heads = (
        "model",
        "expected layer",
        "centre of gravity",
        "KL from uniform, bits",
        "gain over layer 0",
        "weights of layers 0 to L",
    )
    return Table(f"{unit.title}: estimates, with 95 % intervals", heads, tuple(rows))


def breakdown(unit: TaskResults) -> Table:
    """Scores by group of examples at each model's best layer."""
    first = unit.first
    groups = {name: n for name, n in first.examples.groups.items() if n}
    rows = []
    for model, result in unit.results.items():
        best = result.best_layer
        cells = (group_cell(result, best, name) for name in groups)
        rows.append(TableRow.of(f"{model}, layer {best}", *cells, model=model))
    return Table(
        f"{unit.name}: {group_metric_title(first)}",
        ("model", *(f"{name}, n = {n:,}" for name, n in groups.items())),
        tuple(rows),
    )


class Run(NamedTuple):
    """Results of one command on one machine."""

    n: int
    models: list[str]
    facts: dict[str, str]


class Made(NamedTuple):
    """One result, with what it was computed from."""

    model: str
    corpus: str
    what: str
    examples: str
    seconds: str
    key: str
    marks: str


class Sources(NamedTuple):
    """Corpora, runs and results behind the page's numbers."""

    corpora: list[CorpusRecord]
    runs: list[Run]
    results: list[Made]


def sources(records: Sequence[Record]) -> Sources:
    """Collect the sources of results, and of records of other measurements."""
    corpora = {record.corpus.digest: record.corpus for record in records}
    grouped: dict[tuple[tuple[str, str], ...], list[Record]] = {}
    for record in records:
        said = record.provenance.items() - {("written", record.provenance.get("written"))}
        grouped.setdefault(tuple(sorted(said)), []).append(record)
    runs = [
        Run(len(made), list(Counter(r.model.name for r in made)), dict(facts))
        for facts, made in grouped.items()
    ]
    return Sources(list(corpora.values()), runs, list(map(_made, records)))


def _made(record: Record) -> Made:
    marks = {
        "silver": record.silver,
        "limited": record.corpus.limited,
        "random": record.model.random_seed is not None,
    }
    what = f"{record.measurement} v{record.measurement_version}"
    if isinstance(record, Result):
        task = record.task
        what = f"{task.name} v{task.version}, {record.probe.family}, {record.view} view"
    return Made(
        record.model.name + (f" against {record.base.name}" if record.base else ""),
        f"{record.corpus.name} {record.corpus.version}",
        f"{what}, {record.pooling} pooling, {record.dtype}",
        _examples(record) if isinstance(record, Result) else "–",
        f"{sum(record.seconds.values()):.1f}",
        record.key[:8],
        ", ".join(mark for mark, is_so in marks.items() if is_so),
    )


def _examples(result: Result) -> str:
    n = result.examples.n
    excluded = sum(result.examples.excluded.get("test", {}).values())
    examples = " / ".join(f"{n[split]:,}" for split in ("train", "dev", "test") if split in n)
    return examples + f"; {excluded:,} of test left out" * bool(excluded)
