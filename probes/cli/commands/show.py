"""`python -m probes show`: shows scores by layer, breakdowns, and evidence."""

from __future__ import annotations

import argparse

from probes.boards.breakdown_tables import MOST_LABELS, group_table, label_table, tables_by_unit
from probes.boards.decodable_and_used import use_tables
from probes.boards.floors import with_floor
from probes.boards.layer_tables import model_tables
from probes.boards.recipes import recipe_tables
from probes.boards.shown_together import corpus_records_of
from probes.cli.arguments import add_format, add_recipes, names, path_argument
from probes.cli.results import find_recipes, only, records_below, results_below, results_in_order
from probes.common.errors import UserError
from probes.common.registry import did_you_mean
from probes.frames.joined_results import read_result
from probes.measurements.measurement import (
    EVIDENCE,
    ON_REQUEST,
    corpus_measurements,
    probe_measurements,
)
from probes.records.result import Result
from probes.tables.printing import printer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add = parser.add_argument
    add(
        "paths",
        nargs="+",
        type=path_argument,
        metavar="RESULTS",
        help="results (.json), or folders of them",
    )
    add(
        "--by",
        metavar="WHAT",
        default="layer",
        help="layer (the default), use (and what the model uses), group, label, or evidence: "
        f"{', '.join((*EVIDENCE, *ON_REQUEST))}",
    )
    add("--task", type=names, default=(), metavar="T,…", help="only these tasks")
    add("--probe", metavar="P", help="only this probe family, such as linear or mlp (default: all)")
    add("--all", action="store_true", help=f"all labels, not only the {MOST_LABELS} most frequent")
    add_recipes(parser, "means over seeds, and what varies")
    add_format(parser)


def run(options: argparse.Namespace) -> int:
    """Print the tables.

    Raises:
        UserError: a path does not exist, or there are no results of this task or probe family.
    """
    choices = ("layer", "use", "group", "label", *(x.name for x in probe_measurements()))
    if options.by not in choices:
        raise UserError(f"--by {options.by}: unknown. {did_you_mean(options.by, choices)}")
    for path in options.paths:
        if not path.exists():
            raise UserError(f"{path}: there is no such file or folder.")
    folders = [path for path in options.paths if path.is_dir()]
    # `results_below` refuses to find nothing, as it would if only files are named.
    results = results_below(folders) if folders else {}
    results |= {path: read_result(path) for path in options.paths if path not in folders}
    results = only(results, task=options.task, probe=[options.probe] if options.probe else ())
    if options.recipes is not None:
        if options.by != "layer":
            raise UserError(f"--recipes: not with --by {options.by}; leave one out.")
        printer.show(recipe_tables(find_recipes(results, options)))
    elif options.by == "layer":
        printer.show(model_tables(results))
    elif options.by == "use":
        measurement_names = [x.name for x in corpus_measurements() if x.use_columns]
        corpus_records = corpus_records_of(records_below(folders, measurements=measurement_names))
        tables_of_use = list(use_tables(results, corpus_records, options.probe or "linear"))
        if not tables_of_use:
            raise UserError(
                "--by use: there is nothing but scores; measure --evidence lens, or "
                "--measurements erasure, interchange or steering, and name both folders."
            )
        printer.show(tables_of_use)
    elif options.by in ("group", "label"):
        for result in results.values():
            _show_breakdown(with_floor(result, results.values()), options.by, options.all)
    else:
        for title, tables in tables_by_unit(results_in_order(results).values(), options.by):
            if not tables:
                printer.say(f"{title}: no {options.by}.")
            printer.show(tables)
    return 0


def _show_breakdown(result: Result, by: str, all_labels: bool) -> None:
    most = None if all_labels else MOST_LABELS
    table = group_table(result) if by == "group" else label_table(result, most)
    if table is None:
        task = f"{result.task.name}, {result.probe.family} probe"
        printer.say(f"{task}: no breakdown by {by}.")
    printer.show([table] if table else [])
