"""`python -m probes show`: breakdowns of the scores, and the evidence behind them, by layer."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import groupby
from typing import TypeVar

from rich.console import Console
from rich.table import Table
from rich.text import Text

from probes.boards.evidence_tables import measures
from probes.cli.arguments import place
from probes.cli.commands.leaderboard import load
from probes.common.terminal import output_console
from probes.records.files import read_result
from probes.records.payload import LayerResult
from probes.records.result import Result
from probes.records.titles import METRIC_NAMES, limit_mark, task_head
from probes.statistics.formatting import shown
from probes.statistics.metrics import lower_is_better

SUMMARY = "Show breakdowns of scores, selectivity, compression and localisation by layer."

T = TypeVar("T")

MOST_LABELS = 20

GROUP_WIDTH, SCORE_WIDTH, LABEL_WIDTH = 14, 7, 40
"""Width in characters of a column of groups, of a column of scores, and of the columns before the
layers in a table of labels."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add = parser.add_argument
    add("path", type=place, help="a result (.json), or a folder of results")
    add(
        "--by",
        choices=("group", "label", "selectivity", "compression", "mix"),
        default="group",
        help="what to show (default: group)",
    )
    add("--all", action="store_true", help=f"all labels, not only the {MOST_LABELS} most frequent")


def run(options: argparse.Namespace) -> int:
    """Print the tables.

    Raises:
        UserError: there are no results.
    """
    path = options.path
    found = load([path]) if path.is_dir() else {path: read_result(path)}
    console = output_console()
    results = list(found.values())
    if options.by in ("group", "label"):
        for result in results:
            _show_breakdown(console, result, options.by, options.all)
    else:
        _show_measure(console, results, options.by)
    return 0


def _show_breakdown(console: Console, result: Result, by: str, all_labels: bool) -> None:
    if by == "group":
        tables = list(group_tables(result, console.width))
    else:
        tables = list(label_tables(result, console.width, all_labels=all_labels))
    for table in tables:
        console.print(table)
    if not tables:
        task = f"{result.task.name}, {result.probe.family} probe"
        console.print(f"{task}: no breakdown by {by}.", highlight=False)


def _show_measure(console: Console, results: list[Result], name: str) -> None:
    """One table for each model, corpus and probe family."""

    def unit(result: Result) -> tuple[str, str, str]:
        corpus = result.corpus.name + limit_mark(result)
        return result.model.name, corpus, result.probe.family

    for names, chosen in groupby(sorted(results, key=unit), key=unit):
        found = [measure for measure in measures(list(chosen)) if measure.name == name]
        for measure in found:
            table = Table(
                title=Text(f"{' · '.join(names)} probe · {measure.title}"), caption=measure.note
            )
            table.add_column("layer", justify="right")
            for head in measure.heads:
                table.add_column(Text(head), justify="right")
            for row, texts in measure.rows.items():
                table.add_row(row, *map(Text, texts))
            console.print(table)
        if not found:
            console.print(f"{' · '.join(names)} probe: no {name}.", highlight=False)


def group_tables(result: Result, width: int) -> Iterator[Table]:
    """A row per layer, a column per group; several tables if they are wider than `width`."""
    metric = result.group_metric
    unit = METRIC_NAMES.get(metric, metric) + ", lower is better" * lower_is_better(metric)
    names = [name for name, n in result.examples.groups.items() if n]
    for part in _parts(names, (width - 8) // GROUP_WIDTH):
        table = Table(title=_title(result, f"{unit}, by group"), caption="★ best layer on dev")
        table.add_column("layer", justify="right", no_wrap=True)
        for name in part:
            head = Text(f"{name}\nn = {result.examples.groups[name]:,}")
            table.add_column(head, justify="right", max_width=GROUP_WIDTH - 3)
        for layer in result.layers:
            scores = layer.cells[0].groups
            cells = [shown(scores.get(name), metric) for name in part]
            table.add_row(_number(result, layer), *cells)
        yield table


def label_tables(result: Result, width: int, *, all_labels: bool) -> Iterator[Table]:
    """A row per label, by frequency: F1 for each layer, precision and recall for the best one."""
    best = result.best_layer.labels
    names = {name: score.n for layer in result.layers for name, score in layer.labels.items()}
    order = sorted(names, key=lambda name: (-names[name], name))
    chosen = order if all_labels else order[:MOST_LABELS]
    rest = len(order) - len(chosen)
    caption = "★ best layer on dev, which P and R are of" + f" · {rest} more with --all" * bool(
        rest
    )
    layers = result.layers if names else ()
    for part in _parts(list(layers), (width - LABEL_WIDTH) // SCORE_WIDTH):
        table = Table(title=_title(result, "F1 by label and layer"), caption=caption)
        table.add_column("label", overflow="fold")
        for head in ("n", "P", "R", *(_number(result, layer) for layer in part)):
            table.add_column(head, justify="right", no_wrap=True)
        for name in chosen:
            score = best.get(name)
            given = (score.precision, score.recall) if score else (None, None)
            cells = [_percent(value) for value in given]
            found = [x.labels[name].f1 if name in x.labels else None for x in part]
            table.add_row(Text(name), f"{names[name]:,}", *cells, *map(_percent, found))
        yield table


def _parts(items: list[T], size: int) -> Iterator[list[T]]:
    """Items in parts of at most `size`, as equal as possible."""
    n_parts = max(1, -(-len(items) // max(1, size)))
    size = max(1, -(-len(items) // n_parts))
    return (items[first : first + size] for first in range(0, len(items), size))


def _title(result: Result, what: str) -> Text:
    corpus = result.corpus.name + limit_mark(result)
    parts = (result.model.name, corpus, task_head(result), f"{result.probe.family} probe", what)
    return Text(" · ".join(parts))


def _number(result: Result, layer: LayerResult) -> str:
    return f"{layer.layer}★" if layer.layer == result.best_number else f"{layer.layer}"


def _percent(value: float | None) -> str:
    return shown(value, "accuracy")
