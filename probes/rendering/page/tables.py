"""The page's tables, as rows of texts."""

from __future__ import annotations

from typing import NamedTuple

from probes.boards.curves import Curves, Point, no_localisation
from probes.boards.evidence_tables import estimate_text
from probes.boards.groups import Group, Unit
from probes.boards.layer_tables import layer_entries
from probes.records.payload import Interval
from probes.records.result import Result
from probes.records.titles import METRIC_NAMES
from probes.statistics.formatting import shown
from probes.statistics.metrics import lower_is_better

HEAT_STEPS = 10


class Cell(NamedTuple):
    """A number in a table.

    Attributes:
        half: half its interval, as text.
        note: what else there is to say of it.
        value: to sort by; None sorts last.
        step: of the heat scale; -1 for none.
    """

    text: str
    half: str = ""
    note: str = ""
    value: float | None = None
    best: bool = False
    tied: bool = False
    step: int = -1


NOTHING = Cell("–", note="no result")


class Row(NamedTuple):
    """A row of a table; `model` is empty where it is not one model's."""

    model: str
    head: str
    cells: list[Cell]


class Table(NamedTuple):
    """A table: column heads and rows."""

    heads: list[str]
    rows: list[Row]


def leaderboard(group: Group) -> Table:
    """Each model's best layer by task."""
    rows = [
        Row(model, model, [_best(unit.results.get(model)) for unit in group.units])
        for model in group.models
    ]
    return Table([unit.title for unit in group.units], rows)


def _best(result: Result | None) -> Cell:
    if result is None:
        return NOTHING
    best, metric = result.best_layer, result.task.metric
    value = result.score(best)
    layer = f"layer {best.layer} of {result.model.n_layers}"
    marks = ["no best layer" if result.best_number is None else layer]
    marks += ["quick run"] * result.quick
    half = _half(best.intervals.get(metric), metric)
    return Cell(shown(value, metric), half, ", ".join(marks), value)


def heat_map(group: Group, model: str) -> Table:
    """Test scores, a row per layer and a column per task."""
    units = [unit for unit in group.units if model in unit.results]
    among = [list(unit.results.values()) for unit in units]
    found = layer_entries([unit.results[model] for unit in units], among)
    rows = []
    for layer, entries in found.items():
        cells = [
            Cell(
                e.text,
                e.half,
                best=e.best,
                tied=e.tied,
                step=-1 if e.text == NOTHING.text else round(HEAT_STEPS * e.place),
            )
            for e in entries
        ]
        rows.append(Row("", str(layer), cells))
    return Table([unit.title for unit in units], rows)


def numbers(curves: Curves, unit: Unit) -> Table:
    """What a chart shows: a row per model, a column per layer."""
    layers = sorted({p.layer for points in curves.models.values() for p in points})
    heads = [f"0–{x}" if curves.name == "mix" and x else f"{x}" for x in layers]
    rows = []
    for model, points in curves.models.items():
        best = unit.results[model].best_number if curves.name == "score" else None
        given = {point.layer: point for point in points}
        cells = [
            _number(given[x], curves.metric)._replace(best=x == best) if x in given else NOTHING
            for x in layers
        ]
        rows.append(Row(model, model, cells))
    return Table(heads, rows)


def _number(point: Point, metric: str) -> Cell:
    if metric:
        return Cell(shown(point.value, metric), _half(point.interval, metric))
    text = NOTHING.text if point.value is None else f"{point.value:.2f}"
    low, high = point.interval or (0.0, 0.0)
    return Cell(text, f"{(high - low) / 2:.2f}" if point.interval else "")


def levels(curves: Curves) -> list[str]:
    """Baselines and references, as text."""
    return [
        f"{name} {shown(value, curves.metric) if curves.metric else f'{value:.2f}'}"
        for name, value in curves.levels.items()
    ]


def estimates(unit: Unit) -> Table:
    """Where a task comes to be decodable: a row per model."""
    rows = []
    for model, result in unit.results.items():
        found = result.localisation
        if found is None:
            texts = [f"not measured: {no_localisation(result)}", *["–"] * 4]
        else:
            given = (found.expected_layer, found.centre_of_gravity, found.kl, found.total_gain)
            weights = found.mixes[-1].weights
            texts = [
                *map(estimate_text, given),
                " ".join(f"{weight:.2f}".replace("0.", ".", 1) for weight in weights),
            ]
        rows.append(Row(model, model, [Cell(text) for text in texts]))
    heads = ["expected layer", "centre of gravity", "KL from uniform, bits", "gain over layer 0"]
    return Table([*heads, "weights of layers 0 to L"], rows)


def breakdown(unit: Unit) -> Table:
    """Scores by group at each model's best layer."""
    first = unit.first
    names = [name for name, n in first.examples.groups.items() if n]
    rows = []
    for model, result in unit.results.items():
        best = result.best_layer
        scores = best.cells[0].groups
        cells = [Cell(shown(scores.get(name), result.group_metric)) for name in names]
        rows.append(Row(model, f"{model}, layer {best.layer}", cells))
    return Table([f"{name}, n = {first.examples.groups[name]:,}" for name in names], rows)


def breakdown_unit(unit: Unit) -> str:
    """What a breakdown's numbers are."""
    metric = unit.first.group_metric
    return METRIC_NAMES.get(metric, metric) + ", lower is better" * lower_is_better(metric)


def _half(interval: Interval, metric: str) -> str:
    return "" if interval is None else shown((interval[1] - interval[0]) / 2, metric)
