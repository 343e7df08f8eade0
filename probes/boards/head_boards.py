"""Tables of attention heads: entropy and class of every one, and those chosen on dev."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from probes.boards.groups import model_order
from probes.common.terminal import progress
from probes.measurements.head_rows import CLASSES, WHERE_BOUNDS, HeadRows, counted_classes
from probes.measurements.head_tables import choice_tables
from probes.records.record import Record, corpus_title, model_title
from probes.tables.table import Table, TableRow

ATTENTION = "attention"
"""Name of the measurement."""


def head_tables(by: str, records: Mapping[Path, Record], all_choices: bool = False) -> list[Table]:
    """The tables of every record of attention, twins after their models.

    By relation, records without relations, roles and trees are named in messages.

    Args:
        by: "entropy", "pattern" or "relation".
        all_choices: whether rare relations are listed too.
    """
    ordered = sorted(records, key=lambda path: model_order(model_title(records[path])))
    if by == "entropy":
        return [entropy_table(records[path]) for path in ordered]
    if by == "pattern":
        return [table for path in ordered for table in pattern_tables(records[path])]
    tables = []
    for path in ordered:
        made = choice_tables(_title(records[path]), records[path], every=all_choices)
        if not made:
            progress.say(f"left out {path}: it has no relations, roles or trees")
        tables += made
    return tables


def entropy_table(record: Record) -> Table:
    """The entropy of every head, as a share of the greatest possible."""
    found = HeadRows(record.rows)
    entropy = found.of("entropy")
    assert entropy is not None
    rows = tuple(
        TableRow.of(str(layer), *(f"{100 * x:.0f}" for x in (*values, values.mean())))
        for layer, values in zip(found.layers, entropy.values, strict=True)
    )
    note = (
        "Mean over test texts, by head; uniform attention has 100. Intervals, and all other "
        "numbers of heads, are in heads.csv."
    )
    heads = ("layer", *_numbers(found), "mean")
    return Table(f"{_title(record)} · entropy, %", heads, rows, notes=(note,))


def pattern_tables(record: Record) -> list[Table]:
    """The class of every head by its sign, and how many heads have each class."""
    found = HeadRows(record.rows)
    title = f"{_title(record)} · patterns"
    signs = ", ".join(f"{sign} {name}" for name, sign in CLASSES.items())
    note = f"By head: {signs}. By a rule on mean masses; these are in heads.csv."
    rows = tuple(
        TableRow.of(
            str(layer), *(CLASSES[found.classes[layer, int(head)]] for head in _numbers(found))
        )
        for layer in found.layers
    )
    heads = ("layer", *_numbers(found))
    last = len(found.layers) - 1
    counts = tuple(
        TableRow.of(*cells, ends_section=place == last)
        for place, cells in enumerate(counted_classes(found))
    )
    by_pattern = f"{_title(record)} · heads by pattern"
    return [
        Table(title, heads, rows, notes=(note,)),
        Table(by_pattern, ("layer", *CLASSES), counts, notes=(WHERE_BOUNDS,)),
    ]


def _title(record: Record) -> str:
    segments = " · pairs of sentences" * (record.settings["segments"] == "two")
    return f"{model_title(record)} · {corpus_title(record)}{segments}"


def _numbers(found: HeadRows) -> tuple[str, ...]:
    return tuple(str(head) for head in range(1, found.n_heads + 1))
