"""One result's test scores by group of examples and by label, layer by layer."""

from __future__ import annotations

from probes.measurements.cells import (
    group_cell,
    group_metric_title,
    interval_note,
    score_cell,
    starred,
    task_head,
)
from probes.records.result import Result
from probes.records.table import Cell, Table, TableRow
from probes.records.titles import limit_mark, model_title

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
        _title(result, f"{group_metric_title(result)}, by group"),
        ("layer", *(f"{name}\nn = {n:,}" for name, n in groups.items())),
        tuple(rows),
        notes=(f"★ best layer on dev · {interval_note([result])}",),
    )


def label_table(result: Result, most: int | None = MOST_LABELS) -> Table | None:
    """F1 of each label by layer, and its precision and recall at the best layer.

    None for a regression.

    Args:
        most: how many labels, the most frequent ones; None for all.
    """
    labelled = result.rows.along("label")
    counts = {str(row.axes["label"]): row.n or 0 for row in labelled}
    if not counts:
        return None
    order = sorted(counts, key=lambda name: (-counts[name], name))
    chosen = order[:most]
    rest = len(order) - len(chosen)
    best = result.best_layer

    def cell(metric: str, layer: int, name: str) -> Cell:
        row = result.at(metric, layer, label=name)
        return score_cell(row.value if row else None, None, "accuracy")

    rows = [
        TableRow.of(
            name,
            f"{counts[name]:,}",
            cell("precision", best, name),
            cell("recall", best, name),
            *(cell("f1", layer, name) for layer in result.layers),
        )
        for name in chosen
    ]
    return Table(
        _title(result, "F1 by label and layer"),
        ("label", "n", "P", "R", *(starred(result, layer) for layer in result.layers)),
        tuple(rows),
        notes=("★ best layer on dev; P and R are its" + f" · {rest} more with --all" * bool(rest),),
        repeated=4,
    )


def _title(result: Result, what: str) -> str:
    corpus = result.corpus.name + limit_mark(result)
    parts = (model_title(result), corpus, task_head(result), f"{result.probe.family} probe", what)
    return " · ".join(parts)
