"""Decodable and used: scores of probes beside what other measurements say of the same layers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from probes.boards.floors import with_floor
from probes.boards.overview import layer_lines
from probes.boards.score_charts import Plot
from probes.boards.shown_together import model_key, model_labels
from probes.common.errors import UserError
from probes.common.grouping import grouped
from probes.frames.long_frame import long_frame
from probes.measurements.measurement import UseColumn, get_measurement, probe_measurements
from probes.measurements.row_filters import interval_of_row, rows_in, rows_where
from probes.measurements.table_cells import metric_name, score_cell
from probes.records.record import Record, corpus_name, task_marks
from probes.records.result import Result
from probes.statistics.metrics import POINTS, is_percent, label_of
from probes.statistics.significance import ALPHA
from probes.tables import charts
from probes.tables.charts import Style
from probes.tables.table import NOTHING, Cell, Table, TableRow

DECODABLE = "decodable"


class Column(NamedTuple):
    """A column of a printed table: one metric by layer, with its heading.

    Attributes:
        name: what the numbers say of a layer, such as ``decodable``.
        corpus: with the mark of a limit.
        unit: the metric.
        metric_label: the metric in words.
        n: number of examples; where it differs by layer, the least and the greatest.
        note: a sentence that explains the numbers; may be empty.
        cells: by layer.
    """

    name: str
    corpus: str
    unit: str
    metric_label: str
    n: str
    note: str
    cells: Mapping[int, Cell]


def columns_by_task(
    results: Mapping[Path, Result], corpus_records: Mapping[Path, Record], family: str
) -> dict[tuple[str, str], list[Column]]:
    """Columns by model and task: scores, then uses; a task with nothing but scores is left out.

    Raises:
        UserError: two records have the same numbers of one model, task and corpus.
    """
    results = {path: x for path, x in results.items() if x.probe.family == family}
    labels = model_labels({**results, **corpus_records})
    of = grouped(results.values(), lambda x: (labels[model_key(x)], x.task.name))
    by_task: dict[tuple[str, str], list[Column]] = {}
    for (model, task), task_results in of.items():
        evidence = [y for x in task_results for m in probe_measurements() if (y := m.own_record(x))]
        same_model = [x for x in corpus_records.values() if labels[model_key(x)] == model]
        if uses := [x for record in (*evidence, *same_model) for x in _use_columns(record, task)]:
            scores = [_decodable(with_floor(x, results.values())) for x in task_results]
            by_task[model, task] = [*scores, *uses]
    for (model, task), task_columns in by_task.items():
        heads = [(x.name, x.corpus) for x in task_columns]
        if twice := {x for x in heads if heads.count(x) > 1}:
            name, corpus = min(twice)
            raise UserError(
                f"{model}, {task}: several records have numbers called {name} on {corpus}; name "
                "the folders or files of one."
            )
    return by_task


def _decodable(result: Result) -> Column:
    """The scores of a result that was compared with its floor.

    If other answers to the same examples stand beside them, but not to all, the probe's accuracy on
    those that have an answer takes the place of scores: on others it may be better or worse.
    """
    metric, n = result.task.metric, result.examples.n["test"]
    for measurement in probe_measurements():
        for use in measurement.use_columns:
            probe = use._replace(name=DECODABLE, metric=use.decodable)
            record = measurement.own_record(result)
            column = _evidence_column(record, probe, result.task.name) if record else None
            if column and (column.n != f"{n:,}" or metric not in _ACCURACIES):
                note = (
                    f"It is on the {column.n} of {n:,} test examples that are {use.name}; "
                    "marks, which belong to the score on all, are not shown."
                )
                accuracy = label_of(metric if metric in _ACCURACIES else "accuracy")
                metric_label = ", ".join([accuracy, *task_marks(result)])
                return column._replace(metric_label=metric_label, note=note)
    cells = {
        x.layer: score_cell(x.value, x.interval, metric, **x.marks) for x in layer_lines(result)
    }
    return Column(DECODABLE, corpus_name(result), metric, metric_name(result), f"{n:,}", "", cells)


def _use_columns(record: Record, task: str) -> Iterator[Column]:
    """The columns of a record that say something of a task."""
    for use in get_measurement(record.measurement).use_columns:
        if use.task in ("", task) and (column := _evidence_column(record, use, task)):
            yield column


def _evidence_column(record: Record, use: UseColumn, task: str) -> Column | None:
    """A column of a record; None if it has no such rows."""
    metric, where = use.metric, {**use.where, **({use.axis: task} if use.axis else {})}
    rows = rows_in(rows_where(long_frame([record]), [metric], where))
    if not rows:
        return None
    cells = {
        x["layer"]: score_cell(
            x["value"], interval_of_row(x), metric, floored=use.tested and (x["p"] or 0) >= ALPHA
        )
        for x in rows
    }
    counts = sorted({x["n"] for x in rows} - {None})
    n = "–".join(f"{x:,.0f}" for x in dict.fromkeys((*counts[:1], *counts[-1:])))
    return Column(use.name, corpus_name(record), metric, label_of(metric), n, use.note, cells)


_ACCURACIES = "accuracy", "balanced_accuracy"

_NOTE = "Decodable: the score of the layer's probe. "

_OTHERS = (
    " Columns with another n are on other examples: compare at which layers they rise and fall, "
    "not their values."
)


def use_tables(
    results: Mapping[Path, Result], corpus_records: Mapping[Path, Record], family: str
) -> Iterator[Table]:
    """A table for each model and task: a row per layer, a column for each kind of number."""
    for (model, task), columns in columns_by_task(results, corpus_records, family).items():
        notes = dict.fromkeys(x.note for x in columns if x.note)
        elsewhere = _OTHERS if len({(x.n, x.corpus) for x in columns}) > 1 else ""
        layers = sorted({layer for x in columns for layer in x.cells})
        yield Table(
            f"{model} · {task} · {family} probe · decodable and used",
            ("layer", *map(_head, columns)),
            tuple(
                TableRow.of(str(i), *(x.cells.get(i, Cell(NOTHING)) for x in columns))
                for i in layers
            ),
            notes=(_NOTE + " ".join(notes) + elsewhere,),
        )


def _head(column: Column) -> str:
    counted = [f"n = {column.n}"] if column.n else []
    return "\n".join(dict.fromkeys([column.name, column.metric_label, column.corpus, *counted]))


def use_chart(
    results: Mapping[Path, Result], corpus_records: Mapping[Path, Record], family: str, style: Style
) -> Plot:
    """Curves of all kinds of numbers, a panel for each model and task."""
    rows: list[dict[str, Any]] = []
    units = set()
    for (model, name), columns in columns_by_task(results, corpus_records, family).items():
        corpora = {x.corpus for x in columns}
        for column in columns:
            units.add(column.unit)
            line = f"{column.name} ({column.corpus})" if len(corpora) > 1 else column.name
            about = {"panel": f"{model} · {name}", "model": model, "line": line}
            for layer, cell in column.cells.items():
                if cell.value is not None:
                    ends = [POINTS * x for x in cell.interval or ()] or (None, None)
                    numbers = {"value": POINTS * cell.value, "low": ends[0], "high": ends[1]}
                    rows.append({**about, "x": layer, **numbers})
    if not rows:
        return Plot(None)
    y = "%" if all(map(is_percent, units)) else f"times {POINTS}"
    return Plot(charts.lines(pd.DataFrame(rows), style, y=y, by="line", one_scale=True))
