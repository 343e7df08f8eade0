"""Layer × task tables of one model on one corpus."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from probes.boards.comparable import SAME_LAYER_TABLE, SAME_MODEL, groups_by, select_like, twins_of
from probes.boards.floors import with_floor
from probes.boards.overview import layer_lines
from probes.common.errors import listed
from probes.common.grouping import grouped
from probes.measurements.table_cells import (
    interval_note,
    metric_name,
    n_of,
    score_cell,
    why_not_resampled,
)
from probes.records.header import TaskRecord
from probes.records.record import subject_title
from probes.records.result import Result
from probes.records.row import Row
from probes.records.values import ends
from probes.statistics.metrics import label_of, quantity
from probes.statistics.ranking_metrics import RANKING, RATE, RATES, recall_name
from probes.tables.table import NOTHING, Cell, Table, TableRow
from probes.tasks.builtin import table_order
from probes.tasks.morphology import is_morphological
from probes.tasks.task import plain_name

_TOGETHER = 5
"""Number of tasks up to which features of morphology share a table with others."""


def layer_frame(results: Iterable[Result]) -> pd.DataFrame:
    """Headline test scores of one probe family: a row per layer, a column per task."""
    columns = {x.task.name: pd.Series(x.headline, dtype=float) for x in results}
    return pd.DataFrame(columns).sort_index().rename_axis("layer")


def interval_frame(results: Sequence[Result]) -> pd.DataFrame:
    """Headline test scores: a row per layer; per task and probe family the score, low and high."""
    columns = {}
    for result in results:
        name = f"{result.task.name} ({result.probe.family})"
        columns[name] = pd.Series(result.headline, dtype=float)
        for end, which in enumerate(("low", "high")):
            by_layer = {layer: ends(result.interval(layer))[end] for layer in result.layers}
            columns[f"{name} {which}"] = pd.Series(by_layer, dtype=float)
    return pd.DataFrame(columns).sort_index().rename_axis("layer")


def layer_frames(results: Sequence[Result]) -> dict[str, pd.DataFrame]:
    """`layer_frame` by probe family."""
    families = grouped(results, lambda x: x.probe.family)
    return {family: layer_frame(of_family) for family, of_family in families.items()}


def with_stored(stored: Mapping[Path, Result], results: Sequence[Result]) -> list[Result]:
    """The results of this run, and stored ones that may stand in one table with them.

    For a task and probe of this run, its own result is taken, with evidence of earlier runs.
    """
    evidence = {result.key: result.evidence.values() for result in stored.values()}
    table = {
        (x.task.name, x.probe.family): x
        for x in select_like(stored, results[0], SAME_LAYER_TABLE).values()
        if x.model.digest == results[0].model.digest
    }
    for result in results:
        earlier = (x for x in evidence.get(result.key, ()) if x.measurement not in result.evidence)
        table[result.task.name, result.probe.family] = result.with_evidence(*earlier)
    return _sorted_results(table.values())


def model_tables(results: Mapping[Path, Result]) -> Iterator[Table]:
    """`score_tables` of every model on every corpus, random twins among the baselines.

    Twins that are not among the results are looked for in the folders beside them.
    """
    groups = groups_by(results, (*SAME_MODEL, *SAME_LAYER_TABLE))
    firsts = [next(iter(group.values())) for group in groups]
    twins = [select_like(twins_of(x, results), x, SAME_LAYER_TABLE) for x in firsts]
    shown_beside = {path for of_model in twins for path in of_model}
    for group in groups:
        if not group.keys() <= shown_beside:
            floored = [with_floor(x, results.values()) for x in _sorted_results(group.values())]
            yield from score_tables(floored)


def _sorted_results(results: Iterable[Result]) -> list[Result]:
    return sorted(results, key=lambda r: (r.probe.family, table_order(r.task.name)))


def score_tables(results: Sequence[Result]) -> Iterator[Table]:
    """`score_table` for each probe family; many features of morphology have one, feature × layer.

    Up to five tasks, which fit one column of a paper, share a table.
    """
    for family_results in grouped(results, lambda x: x.probe.family).values():
        features = [x for x in family_results if is_morphological(x.task.name)]
        if len(family_results) <= _TOGETHER:
            features = []
        if other_results := [result for result in family_results if result not in features]:
            yield score_table(other_results)
        if features:
            table = score_table(features).turned
            yield replace(table, title=f"{table.title} · morphology")


def score_table(results: Sequence[Result]) -> Table:
    """The scores of one probe family: layers, what the best adds, floor, baselines, references."""
    first = results[0]
    layers = layer_rows(results)
    layers[-1] = replace(layers[-1], ends_section=True)
    return Table(
        f"{subject_title(first)} · {first.probe.family} probe · test",
        ("layer", *(f"{result.task.name}\n{metric_name(result)}" for result in results)),
        (*layers, *_other_rows(results)),
        notes=(interval_note(results), *floor_notes(results), *task_notes(results)),
    )


def task_notes(results: Sequence[Result]) -> Iterator[str]:
    """Notes of the results; one that is the same at several sites of a task names them all."""
    same: dict[tuple[str, str], list[TaskRecord]] = defaultdict(list)
    for task, note in ((result.task, note) for result in results for note in result.notes):
        same[plain_name(task.name), note.removeprefix(f"{task.name}: ")].append(task)
    for (name, note), tasks in same.items():
        sites = listed([task.site or "block" for task in tasks], "and")
        yield f"{name} at {sites}: {note}" if len(tasks) > 1 else f"{tasks[0].name}: {note}"


def layer_rows(results: Sequence[Result]) -> list[TableRow]:
    """Test scores: a row per layer with its number and a cell per result."""
    points = [_points(result) for result in results]
    most = max((x for by_layer in points for x in by_layer.values()), default=0.0)
    columns = [_score_cells(result, most) for result in results]
    return [
        # A layer that was not probed has an empty place.
        TableRow.of(str(layer), *(cells.get(layer, Cell(NOTHING)) for cells in columns))
        for layer in sorted({layer for cells in columns for layer in cells})
    ]


def _points(result: Result) -> dict[int, float]:
    """Points of each layer above the floor; 0 if it is below, or there is none."""
    floor = result.floor[1] if result.floor else math.inf
    scores = {layer: value for layer, value in result.headline.items() if value is not None}
    return {layer: max(0.0, value - floor) for layer, value in scores.items()}


def _score_cells(result: Result, most: float) -> dict[int, Cell]:
    """The scores of a result by layer, coloured by points above the floor, up to `most`."""
    points, metric = _points(result), result.task.metric
    places = {layer: x / most if most else 0.0 for layer, x in points.items()}
    return {
        x.layer: score_cell(x.value, x.interval, metric, **x.marks, place=places.get(x.layer))
        for x in layer_lines(result)
    }


def _other_rows(results: Sequence[Result]) -> Iterator[TableRow]:
    """Rows below the layers: ranking metrics, gain over layer 0, floor, baselines, references, n.

    Each has a cell per result.
    """
    named_scores = [{**result.baselines, **result.references} for result in results]
    for name, metric_rows in _rows_below(results):
        if any(metric_rows):
            cells = (NOTHING if x is None else _cell_below(x) for x in metric_rows)
            yield TableRow.of(f"{name}, best layer", *cells, faint=True)
    gains = [r.row("conditional_probing", "added_points", r.best_layer) for r in results]
    if any(gains):
        cells = (
            score_cell(gain.value, gain.interval, result.task.metric) if gain else NOTHING
            for gain, result in zip(gains, results, strict=True)
        )
        yield TableRow.of("adds to layer 0", *cells, faint=True)
    floors = ((result.floor, result.task.metric) for result in results)
    cells = (score_cell(x[1], None, metric, note=x[0]) if x else NOTHING for x, metric in floors)
    yield TableRow.of("floor", *cells, faint=True)
    for name in dict.fromkeys(name for scores in named_scores for name in scores):
        cells = (
            score_cell(
                scores[name].get(result.task.metric),
                None,
                result.task.metric,
                note="reference" if name in result.references else "",
            )
            if name in scores
            else ""  # A dash is for what is undefined.
            for result, scores in zip(results, named_scores, strict=True)
        )
        yield TableRow.of(name, *cells, faint=True)
    yield TableRow.of("n", *(n_of([result]) for result in results), faint=True)


_AT_THRESHOLD = ("false_positive_rate", "hit_rate")

_OF_RANKED_TASKS = (
    *(recall_name(rate) for rate in RATES if rate != RATE),
    *(*_AT_THRESHOLD, "balanced_accuracy", "accuracy"),
)
"""Further metrics of tasks whose headline metric is a ranking."""


def _rows_below(results: Sequence[Result]) -> Iterator[tuple[str, list[Row | None]]]:
    """Names of the metrics below the layers, those at a threshold with its rate; and their rows."""
    for metric in (*RANKING, *_OF_RANKED_TASKS):
        if metric not in _AT_THRESHOLD:
            yield label_of(metric), [_row_below(x, metric) for x in results]
            continue
        for rate in sorted({x.task.fpr for x in results if x.task.fpr is not None}):
            name = f"{label_of(metric)} for {100 * rate:g} %"
            yield name, [_row_below(x, metric) if x.task.fpr == rate else None for x in results]


def _row_below(result: Result, metric: str) -> Row | None:
    """The row of the best layer, if it stands below the layers."""
    stands_there = result.task.fpr is not None or metric in RANKING
    is_headline = metric == result.task.metric
    if result.best_number is None or not stands_there or is_headline:
        return None
    return result.at(metric, result.best_number)


def _cell_below(row: Row) -> Cell:
    """A number of the best layer, or why it is missing."""
    note, brackets = "" if row.value is not None else row.why, quantity(row.metric).skewed
    return score_cell(row.value, row.interval, row.metric, brackets=brackets, note=note)


def floor_notes(results: Sequence[Result]) -> Iterator[str]:
    """Notes on best layers without a star, and on how layers were compared with the floor."""
    ranked = [x for x in results if any(_row_below(x, metric) for metric in RANKING)]
    best = {x.task.name: x.best_number for x in ranked if x.is_floored(x.best_number or 0)}
    if best:  # rows below the layers are about them
        layers = ", ".join(f"{task} {layer}" for task, layer in best.items())
        yield f"Best layer on dev, without ★ since not above the floor: {layers}."
    compared = {result.task.name: result for result in results if result.floor}
    tests = {name: result.floor_test for name, result in compared.items()}
    kinds: dict[str, list[str]] = defaultdict(list)
    for name, test in tests.items():
        kind = "the interval compared with the floor as a plain number"
        if why_not_resampled(compared[name]):
            kind = "or, where there are no intervals, not above it"
        if test:
            kind = "paired test, p ≥ .05, corrected over layers"
            kind += "" if test.knows_training else ", without training variance"
        kinds[kind].append(name)
    for kind, names in kinds.items():
        where = f": {', '.join(names)}" if len(kinds) > 1 else ""
        yield f"▽ not significantly above the floor ({kind}){where}."
    if any(name.startswith("random twin") for result in results for name in result.baselines):
        yield "A random twin counts here at its best layer on test, in comparing models on dev."
    if fixed := dict.fromkeys(name for test in tests.values() if test for name in test.fixed):
        yield (
            f"Of {listed(fixed, 'and')} no predictions are stored, so layers are compared with "
            "their scores alone."
        )
