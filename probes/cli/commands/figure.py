"""`python -m probes figure`: figures for papers, one or two columns wide."""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path

from probes.boards.shown_together import corpus_records_of
from probes.cli.arguments import add_folders, add_places, names, path_argument
from probes.cli.chart_files import figure, figures_table
from probes.cli.results import only, records_below
from probes.common.errors import UserError, names_in
from probes.frames.joined_results import results_with_evidence
from probes.measurements.catalogue import registered_commands
from probes.tables.figures import FORMATS
from probes.tables.printing import printer


class _List(argparse.Action):
    """`--list`: it needs none of the other arguments."""

    def __call__(self, parser: argparse.ArgumentParser, *values: object) -> None:
        printer.show([figures_table()])
        parser.exit()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add = parser.add_argument
    family_figures = registered_commands("figures")
    add("--list", action=_List, nargs=0, help="list the figures and exit")
    add("kind", metavar="FIGURE", help="a figure of --list, such as curves")
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
    size.add_argument("--wide", action="store_true", help="the same as --width two")
    size.add_argument(
        "--width",
        type=inches,
        metavar="W",
        help="one or two columns (3.03 or 6.3 inches; default: one), or a number of inches",
    )
    x_help = "curves by layer (the default), or by depth: layer / number of layers of the model"
    add("--x", choices=("layer", "depth"), default="layer", help=x_help)
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
    # The drawing library is slow to import.
    from probes.tables import figures
    from probes.tables.charts import INCH, WIDTHS, Style

    if reason := figures.no_room():
        raise UserError(f"{options.output}: not drawn, since {reason}; lift the limit.")
    width = options.width or WIDTHS["two" if options.wide else "one"]
    font = figures.font_of(options.font, options.fonts)
    style = Style(width * INCH, font, titled=not options.no_title)
    where = ", ".join(map(str, options.folders))
    if options.kind in family_figures:
        _, measurement, module = family_figures[options.kind]
        records = records_below(options.folders, measurements=[measurement])
        records = only(records, model=options.model)
        for flag, chosen in (("--task", options.task), ("--x depth", options.x == "depth")):
            if chosen:
                raise UserError(f"{flag}: does not apply to {options.kind}; omit it.")
        chart = importlib.import_module(module).draw(records, options, style, where)
    else:
        records = records_below(options.folders)
        corpora, task = names_in(",".join(options.corpus)), options.task
        all_records = {**results_with_evidence(records), **corpus_records_of(records)}
        chosen_records = only(all_records, corpus=corpora, task=task, model=options.model)
        about = options.kind, chosen_records, where, style, options.probe, options.measurement
        among, depth = all_records.values(), options.x == "depth"
        chart = figure(*about, by_task=bool(task), depth=depth, among=among)
    figures.save(chart, options.output, style)
    print(options.output)
    return 0


def inches(text: str) -> float:
    """A width of one or two columns, or of 1 to 40 inches."""
    from probes.tables.charts import WIDTHS

    if text in WIDTHS:
        return WIDTHS[text]
    try:
        width = float(text)
    except ValueError:
        width = 0.0
    if not 1 <= width <= 40:
        raise argparse.ArgumentTypeError(f"{text}: not a number of inches from 1 to 40, one or two")
    return width
