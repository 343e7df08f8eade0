"""`python -m probes figure`: figures for papers, one or two columns wide."""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path

from probes.boards.shown_together import corpus_records_of
from probes.cli.arguments import add_folders, add_places, names, path_argument
from probes.cli.chart_files import figure, figure_names
from probes.cli.results import only, records_below
from probes.common.errors import UserError, names_in
from probes.common.registry import did_you_mean
from probes.frames.joined_results import results_with_evidence
from probes.measurements.catalogue import registered_commands
from probes.tables.figures import FORMATS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add = parser.add_argument
    family_figures = registered_commands("figures")
    add("kind", metavar="FIGURE", help=", ".join([*figure_names(), *family_figures]))
    add_folders(parser)
    add(
        "-o",
        "--output",
        type=path_argument,
        required=True,
        metavar="FILE",
        help="a .pdf, .svg or .png file",
    )
    size = parser.add_mutually_exclusive_group()
    size.add_argument(
        "--wide", action="store_true", help="6.8 inches wide, for two columns, instead of 3.3"
    )
    size.add_argument("--width", type=inches, metavar="W", help="width in inches")
    add("--no-title", action="store_true", help="leave the title to the paper's caption")
    add("--font", default="", metavar="NAME", help="a font family (default: Liberation Sans)")
    add("--fonts", type=Path, metavar="DIR", help="a folder with more fonts than the system's")
    add("--probe", default="linear", metavar="P", help="probe family (default: linear)")
    add(
        "--measurement",
        default="",
        metavar="M",
        help="the measurement, if several have such a figure",
    )
    add("--task", type=names, default=(), metavar="T,…", help="only these tasks")
    add("--model", type=names, default=(), metavar="M,…", help="only these models")
    # Also separated by blanks: the corpus of a tree may be several files.
    add("--corpus", nargs="+", default=(), metavar="C", help="only these; for tree: its corpus")
    for command in family_figures.values():
        importlib.import_module(command.module).add_arguments(parser)
    add_places(parser)


def run(options: argparse.Namespace) -> int:
    """Draw the figure and print its path.

    Raises:
        UserError: the format or the figure is unknown, or a flag does not apply to it.
    """
    if options.output.suffix.lower() not in FORMATS:
        raise UserError(f"{options.output}: the name must end in one of {', '.join(FORMATS)}.")
    family_figures = registered_commands("figures")
    if options.kind not in (kinds := [*figure_names(), *family_figures]):
        raise UserError(
            f"No figure is called {options.kind!r}. {did_you_mean(options.kind, kinds)} Figures of "
            "a plug-in need its file with --include."
        )
    # The drawing library is slow to import.
    from probes.tables import figures
    from probes.tables.charts import COLUMN, INCH, WIDE, Style

    if reason := figures.no_room():
        raise UserError(f"{options.output}: not drawn, since {reason}; lift the limit.")
    width = options.width or (WIDE if options.wide else COLUMN)
    font = figures.font_of(options.font, options.fonts)
    style = Style(width * INCH, font, titled=not options.no_title)
    where = ", ".join(map(str, options.folders))
    if options.kind in family_figures:
        _, measurement, module = family_figures[options.kind]
        records = records_below(options.folders, measurements=[measurement])
        records = only(records, model=options.model)
        if options.task:
            raise UserError(f"--task: does not apply to {options.kind}; omit it.")
        chart = importlib.import_module(module).draw(records, options, style, where)
    else:
        records = records_below(options.folders)
        corpora, task = names_in(",".join(options.corpus)), options.task
        all_records = only(
            {**results_with_evidence(records), **corpus_records_of(records)},
            corpus=corpora,
            task=task,
        )
        model_records = only(all_records, model=options.model)
        about = options.kind, model_records, where, style, options.probe, options.measurement
        chart = figure(*about, by_task=bool(task), among=all_records.values())
    figures.save(chart, options.output, style)
    print(options.output)
    return 0


def inches(text: str) -> float:
    """A width of 1 to 40 inches."""
    try:
        width = float(text)
    except ValueError:
        width = 0.0
    if not 1 <= width <= 40:
        raise argparse.ArgumentTypeError(f"{text}: not a number of inches from 1 to 40")
    return width
