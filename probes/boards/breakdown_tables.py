"""Tables behind scores: by group of examples, by label, and of the evidence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from probes.common.grouping import grouped
from probes.frames.measurement_tables import measurement_tables
from probes.measurements.measurement import Measurement, get_measurement, probe_measurements
from probes.measurements.table_cells import (
    group_cell,
    group_metric_title,
    interval_note,
    ranking_name,
    score_cell,
    starred,
    task_head,
)
from probes.records.record import subject_title
from probes.records.result import Result
from probes.tables.table import Cell, Table, TableRow

MOST_LABELS = 20


def group_table(result: Result) -> Table | None:
    """A row per layer, a column per group of examples; None if the task has no groups."""
    groups = {name: n for name, n in result.examples.groups.items() if n}
    if not groups:
        return None
    rows = (
        TableRow.of(starred(result, layer), *(group_cell(result, layer, name) for name in groups))
        for layer in result.layers
    )
    return Table(
        _breakdown_title(result, f"{group_metric_title(result)}, by group"),
        ("layer", *(f"{name}\nn = {n:,}" for name, n in groups.items())),
        tuple(rows),
        notes=(f"★ best layer on dev, if above the floor · {interval_note([result])}",),
    )


def label_table(result: Result, most: int | None = MOST_LABELS) -> Table | None:
    """F1 of each label by layer, and its precision and recall at the best layer.

    None for a regression.

    Args:
        most: how many labels, the most frequent ones; None for all.
    """
    counts = {str(row.axes["label"]): row.n or 0 for row in result.rows.along("label")}
    if not counts:
        return None
    order = sorted(counts, key=lambda name: (-counts[name], name))
    shown_labels = order[:most]
    n_hidden = len(order) - len(shown_labels)
    best = result.best_layer

    def cell(metric: str, layer: int, name: str) -> Cell:
        row = result.at(metric, layer, label=name)
        # Whatever the task's metric is, these three are in percent.
        return score_cell(row.value if row else None, None, "accuracy")

    rows = [
        TableRow.of(
            name,
            f"{counts[name]:,}",
            cell("precision", best, name),
            cell("recall", best, name),
            *(cell("f1", layer, name) for layer in result.layers),
        )
        for name in shown_labels
    ]
    return Table(
        _breakdown_title(result, "F1 by label and layer"),
        ("label", "n", "P", "R", *(starred(result, layer) for layer in result.layers)),
        tuple(rows),
        notes=(
            "★ best layer on dev, if above the floor; P and R are those of the best layer"
            + (f" · {n_hidden} more with --all" if n_hidden else ""),
        ),
        repeated=4,
    )


def _breakdown_title(result: Result, breakdown: str) -> str:
    parts = (subject_title(result), task_head(result), f"{result.probe.family} probe", breakdown)
    return " · ".join(parts)


def evidence_tables(results: Sequence[Result]) -> dict[str, Sequence[Table]]:
    """The tables of one model, corpus and probe family, by measurement.

    Measurements that no result has are left out, and from their tables results that lack them.
    """
    return {x.name: tables for x in probe_measurements() if (tables := _tables_of(x, results))}


def _tables_of(measurement: Measurement, results: Sequence[Result]) -> Sequence[Table]:
    having = [x for x in results if measurement.own_record(x)]
    by_ranking = grouped(having, lambda x: x.task.ranking)
    return [
        replace(table, title=f"{table.title} · {ranking_name(like[0])}")
        if len(by_ranking) > 1
        else table
        for like in by_ranking.values()
        for table in measurement_tables(measurement, like)
    ]


def tables_by_unit(results: Iterable[Result], name: str) -> Iterator[tuple[str, Sequence[Table]]]:
    """Tables of one measurement, by model, corpus and probe family, which are the title."""

    def unit(result: Result) -> tuple[str, str]:
        return subject_title(result), result.probe.family

    for names, unit_results in sorted(grouped(results, unit).items()):
        title = f"{' · '.join(names)} probe"
        tables = _tables_of(get_measurement(name), unit_results)
        yield title, [replace(table, title=f"{title} · {table.title}") for table in tables]
