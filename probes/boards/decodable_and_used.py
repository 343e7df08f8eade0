"""Decodable and used: scores of probes beside what other measurements say of the same layers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from probes.boards.floors import with_floor
from probes.boards.overview import layer_lines
from probes.boards.shown_together import model_key, model_labels
from probes.common.errors import UserError
from probes.measurements.measurement import UseColumn, get_measurement, probe_measurements
from probes.measurements.row_filters import interval_of_row, rows_in, rows_where
from probes.measurements.table_cells import metric_name, score_cell
from probes.records.record import Record, corpus_name, task_marks
from probes.records.result import Result
from probes.records.values import ends
from probes.statistics.metrics import is_percent, label_of
from probes.tables.table import NOTHING, Cell, Table, TableRow

if TYPE_CHECKING:
    from probes.boards.score_charts import Drawn
    from probes.tables.charts import Style

DECODABLE = "decodable"


class Column(NamedTuple):
    """A column of a printed table: one metric by layer, with its heading.

    Attributes:
        name: what they say of a layer, such as ``decodable``.
        corpus: the corpus, with the mark of a limit.
        unit: the metric.
        what: the metric in words.
        n: number of examples; where it differs by layer, the least and the greatest.
        note: a sentence that explains them; may be empty.
        cells: by layer.
    """

    name: str
    corpus: str
    unit: str
    what: str
    n: str
    note: str
    cells: Mapping[int, Cell]


def columns_by_task(
    results: Mapping[Path, Result], others: Mapping[Path, Record], family: str
) -> dict[tuple[str, str], list[Column]]:
    """Columns by model and task: the scores, then what stands beside them.

    Tasks with nothing beside their scores are left out.

    Args:
        others: records of measurements of a corpus.
        family: of probes.

    Raises:
        UserError: two records have the same numbers of one model, task and corpus.
    """
    results = {path: x for path, x in results.items() if x.probe.family == family}
    labels = model_labels({**results, **others})
    of: dict[tuple[str, str], list[Result]] = {}
    for result in results.values():
        of.setdefault((labels[model_key(result)], result.task.name), []).append(result)
    found: dict[tuple[str, str], list[Column]] = {}
    for (model, task), given in of.items():
        evidence = [y for x in given for each in probe_measurements() if (y := each.own(x))]
        same_model = [x for x in others.values() if labels[model_key(x)] == model]
        if beside := [x for record in (*evidence, *same_model) for x in _use_columns(record, task)]:
            scores = [_decodable(with_floor(x, results.values())) for x in given]
            found[model, task] = [*scores, *beside]
    for (model, task), own in found.items():
        heads = [(x.name, x.corpus) for x in own]
        if twice := {x for x in heads if heads.count(x) > 1}:
            name, corpus = min(twice)
            raise UserError(
                f"{model}, {task}: several records have numbers called {name} on {corpus}; name "
                "the folders or files of one."
            )
    return found


def _decodable(result: Result) -> Column:
    """The scores of a result that was compared with its floor.

    If other answers to the same examples stand beside them, but not to all, the probe's accuracy on
    those that have an answer takes the place of scores: on others it may be better or worse.
    """
    metric, n = result.task.metric, result.examples.n["test"]
    for each in probe_measurements():
        for beside in each.use_columns:
            probe = beside._replace(name=DECODABLE, metric=beside.decodable)
            record = each.own(result)
            column = _evidence_column(record, probe, result.task.name) if record else None
            if column and (column.n != f"{n:,}" or metric not in _ACCURACIES):
                note = (
                    f"It is on the {column.n} of {n:,} test examples that are {beside.name}; "
                    "marks, which belong to the score on all, are not shown."
                )
                accuracy = label_of(metric if metric in _ACCURACIES else "accuracy")
                what = ", ".join([accuracy, *task_marks(result)])
                return column._replace(what=what, note=note)
    cells = {
        x.layer: score_cell(x.value, x.interval, metric, **x.marks) for x in layer_lines(result)
    }
    return Column(DECODABLE, corpus_name(result), metric, metric_name(result), f"{n:,}", "", cells)


def _use_columns(record: Record, task: str) -> Iterator[Column]:
    """The columns of a record that say something of a task."""
    for each in get_measurement(record.measurement).use_columns:
        if each.task in ("", task) and (column := _evidence_column(record, each, task)):
            yield column


def _evidence_column(record: Record, beside: UseColumn, task: str) -> Column | None:
    """A column of a record; None if it has no such rows."""
    from probes.frames.long_frame import long_frame

    metric, where = beside.metric, {**beside.where, **({beside.axis: task} if beside.axis else {})}
    rows = rows_in(rows_where(long_frame([record]), [metric], where))
    if not rows:
        return None
    cells = {x["layer"]: score_cell(x["value"], interval_of_row(x), metric) for x in rows}
    counts = sorted({x["n"] for x in rows} - {None})
    n = "–".join(f"{x:,.0f}" for x in dict.fromkeys((*counts[:1], *counts[-1:])))
    corpus = corpus_name(record)
    return Column(beside.name, corpus, metric, label_of(metric), n, beside.note, cells)


_ACCURACIES = "accuracy", "balanced_accuracy"

_NOTE = "Decodable: the score of the layer's probe. "

_OTHERS = (
    " Columns with another n are on other examples: compare at which layers they rise and fall, "
    "not their values."
)


def use_tables(
    results: Mapping[Path, Result], others: Mapping[Path, Record], family: str
) -> Iterator[Table]:
    """A table for each model and task: a row per layer, a column for each kind of number.

    Raises:
        UserError: see `columns_by_task`.
    """
    for (model, task), own in columns_by_task(results, others, family).items():
        notes = dict.fromkeys(x.note for x in own if x.note)
        elsewhere = _OTHERS * (len({(x.n, x.corpus) for x in own}) > 1)
        layers = sorted({layer for x in own for layer in x.cells})
        yield Table(
            f"{model} · {task} · {family} probe · decodable and used",
            ("layer", *map(_head, own)),
            tuple(
                TableRow.of(str(i), *(x.cells.get(i, Cell(NOTHING)) for x in own)) for i in layers
            ),
            notes=(_NOTE + " ".join(notes) + elsewhere,),
        )


def _head(column: Column) -> str:
    counted = [f"n = {column.n}"] * bool(column.n)
    return "\n".join(dict.fromkeys([column.name, column.what, column.corpus, *counted]))


def use_chart(
    results: Mapping[Path, Result],
    others: Mapping[Path, Record],
    family: str,
    style: Style,
) -> Drawn:
    """Curves of all kinds of numbers, a panel for each model and task.

    Raises:
        UserError: see `columns_by_task`.
    """
    import pandas as pd

    from probes.boards.score_charts import Drawn
    from probes.tables import charts

    drawn: list[dict[str, Any]] = []
    units = set()
    for (model, name), own in columns_by_task(results, others, family).items():
        corpora = {x.corpus for x in own}
        for column in own:
            units.add(column.unit)
            line = column.name + f" ({column.corpus})" * (len(corpora) > 1)
            about = {"panel": f"{model} · {name}", "model": model, "line": line}
            for layer, cell in column.cells.items():
                if cell.value is not None:
                    low, high = (None if x is None else 100 * x for x in ends(cell.interval))
                    numbers = {"x": layer, "value": 100 * cell.value, "low": low, "high": high}
                    drawn.append({**about, **numbers})
    if not drawn:
        return Drawn(None)
    y = "%" if all(map(is_percent, units)) else "times 100"
    return Drawn(charts.lines(pd.DataFrame(drawn), style, y=y, by="line", one_scale=True))
