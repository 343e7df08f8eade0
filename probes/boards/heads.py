"""Tables of attention heads: entropy and class of every one, and those chosen on dev."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from probes.boards.chosen_heads import BeyondTwin, ChosenHeads, chosen_heads, twin_of
from probes.boards.groups import model_order
from probes.common.terminal import progress
from probes.measurements.attention.gold import FEWEST_TESTED
from probes.measurements.attention.patterns import CLASSES
from probes.measurements.attention.payload import Choice, Findings
from probes.measurements.attention.tables import (
    ATTENDS,
    baseline_text,
    choice_name,
    is_better,
    percent_cell,
)
from probes.records.files import if_readable
from probes.records.record import AnyRecord
from probes.records.table import NOTHING, Cell, Row, Table
from probes.records.titles import corpus_title, model_title
from probes.records.values import Estimate
from probes.statistics.formatting import shown_p

MEASURES = {"relation": ("relation",), "role": ("role",), "tree": ("uas", "uuas")}
"""What is chosen by, a table each; differences are tested together within a table."""

_SCORES = {
    "relation": "Test: how often the word that is attended to most is the right one. To head: "
    "dependents attend to their heads; to dep.: heads to their dependents. Baseline: the best "
    "fixed distance on train, +1 being the next word.",
    "role": "Test: the greatest attention from a word of an argument to the predicate, × 100. "
    "Baseline: other places at the same distance.",
    "tree": "Test: right heads in maximum spanning arborescences (UAS), linked words in undirected "
    "trees (UUAS). Baseline: the better chain on train.",
}


def head_tables(
    by: str, records: Mapping[Path, AnyRecord], all_choices: bool = False
) -> list[Table]:
    """The tables of every record of attention, twins after their models.

    By relation, a twin that stands beside its model has no table of its own, and records without
    relations, roles and trees, or whose arrays cannot be read, are named in messages.

    Args:
        by: "entropy", "pattern" or "relation".
        all_choices: whether rare relations and roles are listed too.
    """
    ordered = sorted(records, key=lambda path: model_order(model_title(records[path])))
    if by == "entropy":
        return [entropy_table(records[path]) for path in ordered]
    if by == "pattern":
        return [table for path in ordered for table in pattern_tables(records[path])]
    twins = {twin_of(record, records) for record in records.values()}
    tables = []
    for path in ordered:
        if not records[path].payload.choices:
            progress.say(f"left out {path}: it has no relations, roles or trees")
        elif path not in twins and (heads := if_readable(partial(chosen_heads, path, records))):
            tables += choice_tables(heads, all_choices)
    return tables


def entropy_table(record: AnyRecord) -> Table:
    """The entropy of every head, as a share of the greatest possible."""
    found: Findings = record.payload
    entropy = found.of("entropy")
    assert entropy is not None
    rows = tuple(
        Row.of(str(layer), *map(_whole, values), _whole(_mean(values)))
        for layer, values in zip(found.layers, entropy.values, strict=True)
    )
    note = (
        "Mean over test texts, by head; uniform attention has 100. Intervals, and all other "
        "numbers of heads, are in heads.csv."
    )
    heads = ("layer", *_numbers(found), "mean")
    return Table(f"{_title(record)} · entropy, %", heads, rows, notes=(note,), repeated=1)


def pattern_tables(record: AnyRecord) -> list[Table]:
    """The class of every head by its sign, and how many heads have each class."""
    found: Findings = record.payload
    title = f"{_title(record)} · patterns"
    signs = ", ".join(f"{sign} {name}" for name, sign in CLASSES.items())
    note = f"By head: {signs}. By a rule on mean masses; these are in heads.csv."
    rows = tuple(
        Row.of(str(layer), *(CLASSES[name] for name in names))
        for layer, names in zip(found.layers, found.patterns, strict=True)
    )
    heads = ("layer", *_numbers(found))
    counts = [_counts(str(x), y) for x, y in zip(found.layers, found.patterns, strict=True)]
    counts[-1] = replace(counts[-1], ends_section=True)
    counts.append(_counts("all", [name for names in found.patterns for name in names]))
    return [
        Table(title, heads, rows, notes=(note,), repeated=1),
        Table(
            f"{_title(record)} · heads by pattern", ("layer", *CLASSES), tuple(counts), repeated=1
        ),
    ]


def _counts(first: str, names: Iterable[str]) -> Row:
    counts = Counter(names)
    return Row.of(first, *(str(counts[name] or NOTHING) for name in CLASSES))


def choice_tables(heads: ChosenHeads, all_choices: bool = False) -> list[Table]:
    """Relations, roles and trees with the head chosen for each, beside that of the random twin."""
    return [
        _choice_table(heads, what, places, all_choices)
        for what, measures in MEASURES.items()
        if (places := heads.places(*measures))
    ]


def _choice_table(heads: ChosenHeads, what: str, places: list[int], all_choices: bool) -> Table:
    beyond = heads.beyond_twin(*MEASURES[what])
    choices = heads.found.choices
    listed = [x for x in places if all_choices or choices[x].n_test >= FEWEST_TESTED]
    listed.sort(key=lambda place: -choices[place].n_test)
    notes = [
        f"Of each {what} the head that is best on dev. {_SCORES[what]} ★: above it. p: two-sided, "
        f"corrected for all rows of {FEWEST_TESTED} or more in test.",
        "Twin: what is best on dev in the random twin, chosen in the same way."
        if beyond
        else "There is no random twin of the same texts and layers: run "
        f"random:{heads.record.model.name} too.",
    ]
    if len(listed) < len(places):
        notes.append(f"{len(places) - len(listed)} rarer ones are listed with --all.")
    if what == "relation" and heads.found.rare:
        names = ", ".join(f"{name} {n}" for name, n in heads.found.rare.items())
        notes.append(f"Too rare to be scored, with words in test: {names}.")
    columns = [what, "n", "head", "attends", "test", "baseline", "difference", "p"]
    columns += ["twin's head", "twin's test", "model − twin", "p of twin"] if beyond else []
    rows = (
        Row.of(*_own(choices[place]), *_beside(beyond[place]) if beyond else ()) for place in listed
    )
    title = f"{_title(heads.record)} · {what}s · test, %"
    return Table(title, tuple(columns), tuple(rows), notes=tuple(notes), repeated=1)


def _own(choice: Choice) -> tuple[str | Cell, ...]:
    return (
        choice_name(choice),
        f"{choice.n_test:,}",
        _head(choice),
        ATTENDS[choice.direction],
        percent_cell(choice.test, best=is_better(choice)),
        baseline_text(choice),
        _signed(choice.difference),
        _p(choice.p),
    )


def _beside(beyond: BeyondTwin) -> tuple[str | Cell, ...]:
    return (
        _head(beyond.twin),
        percent_cell(beyond.twin.test),
        _signed(beyond.difference),
        _p(beyond.p),
    )


def _head(choice: Choice) -> str:
    return f"{choice.layer}–{choice.head}"


def _signed(difference: Estimate) -> Cell:
    """A difference of shares in points, with half its interval."""
    if difference.value is None:
        return Cell(NOTHING)
    text = f"{100 * difference.value:+z.1f}".replace("-", "−")
    return Cell(text, percent_cell(difference).half, value=difference.value)


def _p(p: float | None) -> str:
    return NOTHING if p is None else shown_p(p)


def _title(record: AnyRecord) -> str:
    segments = " · pairs of sentences" * (record.payload.segments == "two")
    return f"{model_title(record)} · {corpus_title(record)}{segments}"


def _numbers(found: Findings) -> tuple[str, ...]:
    return tuple(str(head) for head in range(1, found.heads + 1))


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _whole(value: float | None) -> str:
    return NOTHING if value is None else f"{100 * value:.0f}"
