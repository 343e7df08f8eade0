"""Tables of attention heads, and the command `python -m probes heads` that prints them."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from probes.boards.shown_together import model_order
from probes.common.errors import UserError
from probes.common.terminal import progress
from probes.families.attention.heads import (
    BLOCK,
    BOUNDS,
    CLASS,
    CLASSES,
    CLEAR,
    MIXED,
    Choice,
    choices,
    classes,
    grid,
    head_frame,
    masses,
)
from probes.measurements.pivots import notes_of
from probes.measurements.row_filters import metric_heading
from probes.measurements.table_cells import p_cell, score_cell
from probes.records.record import Record, corpus_title, model_title
from probes.records.row import Row
from probes.statistics.metrics import scale_of
from probes.statistics.partition import FEWEST
from probes.tables.table import NOTHING, Cell, Table, TableRow

RELATIONS, TREES, ROLES = "relations", "trees", "roles"
ANTECEDENTS, SUBJECTS = "antecedents", "subjects"

MEASURES = {
    RELATIONS: ("relation",),
    TREES: ("uas", "uuas"),
    ROLES: ("role",),
    ANTECEDENTS: ("antecedent",),
    SUBJECTS: ("subject_share",),
}
"""Measures of the tables of chosen heads, by title."""

FEWEST_LISTED = 100
"""Test words that a relation needs to be listed in tables."""

ATTENDS = {
    "dependent to head": "to head",
    "head to dependent": "to dep.",
    "undirected": "either",
    "argument to predicate": "to pred.",
    "predicate to argument": "to arg.",
    "anaphor to antecedent": "to ante.",
    "verb to noun": "to noun",
}
"""Short names of directions."""

ABOUT = {
    RELATIONS: "For each relation, the head and direction that are best on dev: how often the word "
    "attended to most is the right one. To head: dependents attend to their heads; to dep.: heads "
    "attend to their dependents. Baseline: the best fixed distance on train, in brackets (+1 is "
    "the next word). Chance: any other word of the sentence.",
    TREES: "Maximum spanning trees of a head's attention between words; the root is not given, and "
    "punctuation is not scored. UAS: right heads in arborescences; UUAS: words linked to their "
    "head in undirected trees. Baseline: the better chain on train. Chance: a random tree.",
    ROLES: "Greatest attention between words of a core argument (at most 3 words, at least 2 words "
    "from its predicate) and of the predicate, for the head that exceeds its baseline most on dev. "
    "Baseline: other places of the sentence at the same distance. Chance: uniform attention.",
    ANTECEDENTS: "How often a mention's head word attends more to that of an antecedent than to "
    "those of other earlier mentions, for the best head on dev. Baseline: the nearest mention with "
    "the same head word, or else the nearest. Chance: any earlier mention.",
    SUBJECTS: "Subject's share of the attention of a verb (or reflexive) to its subject and to "
    "another noun, for the head with the greatest share on dev. Attractor: a noun between them of "
    "another number. Baseline: uniform attention to tokens.",
}
"""Notes of the tables of chosen heads."""

SIGNS = f"Heads by class: {', '.join(f'{sign} {name}' for name, sign in CLASSES.items())}"


def head_tables(record: Record, by: str, *, with_rare: bool = False) -> list[Table]:
    """The tables of a record; none by relation if it has no relations.

    Args:
        by: "entropy", "pattern" or "relation".
        with_rare: list rare relations too.
    """
    title = f"{model_title(record)} · {corpus_title(record)}"
    if by == "relation":
        return list(choice_tables(title, record, with_rare=with_rare))
    heads, more = head_frame(record.rows), []
    if by == "entropy":
        name = metric_heading("entropy")
        percents = scale_of("entropy") * grid(heads, "entropy").astype(float)
        values = percents.assign(mean=percents.mean(axis=1)).map("{:.0f}".format)
        note = (
            "Mean over test texts, by head; uniform attention has 100. heads.csv has intervals and "
            "all other numbers."
        )
    else:
        name = "patterns"
        values = grid(heads, CLASS, "feature", feature=...).map(CLASSES.__getitem__)
        note = f"{SIGNS}, by a rule on mean masses, which are in heads.csv."
        more = [pattern_table(f"{title} · heads by pattern", record.rows)]
    rows = tuple(TableRow.of(str(layer), *texts) for layer, texts in values.iterrows())
    heading = "layer", *map(str, values)
    return [Table(f"{title} · {name}", heading, rows, notes=(note,)), *more]


def choice_tables(title: str, record: Record, *, with_rare: bool = False) -> Iterator[Table]:
    """Tables of relations and trees with the head chosen for each; empty ones are left out."""
    all_choices = choices(record.rows.along("chosen"))
    for name, measures in MEASURES.items():
        of_measures = [choice for choice in all_choices if choice.test.metric in measures]
        if not of_measures:
            continue
        fewest = FEWEST_LISTED if name == RELATIONS and not with_rare else 0
        listed = [choice for choice in of_measures if (choice.test.n or 0) >= fewest]
        n = sum(choice.difference.p is not None for choice in of_measures)
        notes = [
            ABOUT[name],
            f"★: above the baseline. p: two-sided, corrected for {n} tests; head and baseline must "
            f"differ in at least {FEWEST} {record.facts['resampled']}.",
        ]
        if len(of_measures) > len(listed):
            notes.append(f"{len(of_measures) - len(listed)} rarer relations are in heads.csv.")
        notes += notes_of(record.notes, name)
        heads = (name[:-1], "n", "head", "attends", "test", "baseline", "chance", "difference", "p")
        rows = tuple(map(_choice_row, listed))
        yield Table(f"{title} · {name} · test, %", heads, rows, notes=tuple(notes))


def _choice_row(choice: Choice) -> TableRow:
    test, baseline = choice.test, score_cell(choice.baseline.value, None, choice.test.metric)
    _, _, offset = choice.kind.partition("offset ")
    offset = f" ({offset})".replace("-", "−") if offset else ""
    above = choice.difference
    difference = score_cell(above.value, above.interval, above.metric)
    if above.value is not None and not difference.text.startswith("−"):
        difference = replace(difference, text=f"+{difference.text}")
    return TableRow.of(
        choice.feature.replace("at most", "≤") or test.metric.upper(),
        f"{test.n:,}",
        choice.name,
        ATTENDS[str(test.axes["direction"])],
        score_cell(test.value, test.interval, test.metric, best=choice.is_better),
        replace(baseline, text=baseline.text + offset),
        score_cell(choice.chance.value, None, test.metric),
        difference,
        p_cell(above.p),
    )


def pattern_table(title: str, rows: Iterable[Row]) -> Table:
    """Masses of patterns and number of heads of each class, by layer and then for all heads."""
    of_heads = masses(rows)
    of_pairs = BLOCK in of_heads
    kinds = {**CLASSES, BLOCK: "B"} if of_pairs else CLASSES
    means = of_heads.groupby("layer").mean()
    lines = []
    by_layer = zip(classes(of_heads).groupby("layer"), means.to_numpy().tolist(), strict=True)
    for (layer, names), layer_means in by_layer:
        lines.append((str(layer), [score_cell(x, None, "pattern") for x in layer_means], names))
    # The bound decides how many heads have a class, so the counts with other bounds follow.
    for bound in BOUNDS:
        cells = [Cell(NOTHING)] * len(of_heads.columns)
        lines.append((f"all, {bound:.1f}".replace("0.", "."), cells, classes(of_heads, bound)))
    note = (
        f"{SIGNS}{', B block' * of_pairs}. "
        f"Layers: with a bound of {CLEAR}; last rows: all heads with other bounds, too. "
        "Masses: mean share of attention beyond uniform, in %; columns are chosen and measured on "
        "different rows. By a rule, as the network of Kovaleva et al. (2019) was never published: "
        f"VD if both masses are at least {MIXED} and their sum at least {CLEAR}; else the class of "
        f"the greatest mass if that is at least {CLEAR}; else H."
    )
    return Table(
        title,
        ("layer", *(f"{name}\nmass" for name in of_heads), *kinds.values()),
        tuple(
            TableRow.of(
                first,
                *cells,
                *(str((names == name).sum() or NOTHING) for name in kinds),
                ends_section=number == len(means),
            )
            for number, (first, cells, names) in enumerate(lines, start=1)
        ),
        notes=(note,),
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument(
        "--by",
        choices=("entropy", "pattern", "relation"),
        default="relation",
        help="entropy or pattern of all heads, or the best heads by relation (the default) and "
        "tree",
    )
    parser.add_argument(
        "--all",
        action="store_true",
        help=f"also relations with fewer than {FEWEST_LISTED} words in test",
    )


def tables(records: Mapping[Path, Record], options: argparse.Namespace, where: str) -> list[Table]:
    """The tables of all models; twins come after their models.

    Raises:
        UserError: no record has the requested table.
    """
    all_tables = []
    for path, record in sorted(records.items(), key=lambda x: model_order(model_title(x[1]))):
        try:
            record_tables = head_tables(record, options.by, with_rare=options.all)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            progress.say(f"left out {path}: its rows are not those of heads ({error!r:.80})")
            continue
        if not record_tables:
            progress.say(f"left out {path}: it has no relations or trees")
        all_tables += record_tables
    if not all_tables:
        raise UserError(
            f"{where}: no heads were chosen by {options.by}; this needs a corpus with heads."
        )
    return all_tables
