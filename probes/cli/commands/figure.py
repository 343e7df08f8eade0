"""`python -m probes figure`: figures for papers, one or two columns wide."""

from __future__ import annotations

import argparse
from pathlib import Path

from probes.boards.groups import Group, of_corpora
from probes.cli.arguments import add_folders, add_places, place
from probes.cli.figures import chosen_figure, figure_names
from probes.cli.load_results import records_below
from probes.cli.predicted_tree import predicted_tree
from probes.cli.results import FORMATS
from probes.common.errors import UserError
from probes.common.registry import did_you_mean
from probes.measurements.joined_results import joined
from probes.records.charts import Chart, PredictedTree

SUMMARY = "Draw a figure for a paper: of scores by layer, or a chart of another measurement."

TREE = "tree"
"""The figure of one sentence."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add = parser.add_argument
    add("kind", metavar="FIGURE", help=", ".join([*figure_names(), TREE]))
    add_folders(parser)
    add(
        "-o",
        "--output",
        type=place,
        required=True,
        metavar="FILE",
        help="a .pdf, .svg or .png file",
    )
    size = parser.add_mutually_exclusive_group()
    size.add_argument(
        "--wide", action="store_true", help="6.8 inches, for two columns, instead of 3.3"
    )
    size.add_argument("--width", type=inches, metavar="W", help="in inches")
    add("--no-title", action="store_true", help="leave the title to the paper's caption")
    add("--font", default="", metavar="NAME", help="a font family (default: Liberation Sans)")
    add("--fonts", type=Path, metavar="DIR", help="a folder with more fonts than the system's")
    add("--probe", default="linear", metavar="P", help="probe family (default: linear)")
    add(
        "--measurement",
        default="",
        metavar="M",
        help="of several with such a figure",
    )
    add("--task", default="", metavar="T", help="of evidence: whose scores it is behind")
    add("--sentence", type=int, metavar="N", help=f"of {TREE}: which test sentence, from 1")
    add("--corpus", nargs="+", default=(), metavar="C", help=f"of {TREE}: where its words are from")
    add_places(parser)


def run(options: argparse.Namespace) -> int:
    """Draw the figure and print its path.

    Raises:
        UserError: the format or the figure is unknown, or the folders do not hold exactly one group
            of comparable results or records.
    """
    if options.output.suffix.lower() not in FORMATS:
        raise UserError(f"{options.output}: the name must end in one of {', '.join(FORMATS)}.")
    chosen: Group | Chart | PredictedTree
    if options.kind == TREE:
        chosen = predicted_tree(
            options.folders,
            options.sentence,
            options.corpus,
            options.data_dir,
            options.cache_dir,
        )
    elif options.kind not in (known := [*figure_names(), TREE]):
        raise UserError(
            f"No figure is called {options.kind!r}. {did_you_mean(options.kind, known)}"
        )
    else:
        records = records_below(options.folders)
        chosen = chosen_figure(
            options.kind,
            joined(records),
            of_corpora(records),
            ", ".join(map(str, options.folders)),
            options.probe,
            options.measurement,
            options.task,
        )
    # The drawing library is imported once there is something to draw.
    from probes.rendering.drawing import figures
    from probes.rendering.drawing.style import COLUMN, INCH, WIDE, Style

    if why := figures.no_room():
        raise UserError(f"{options.output}: not drawn, since {why}; lift the limit.")
    width = options.width or (WIDE if options.wide else COLUMN)
    font = figures.font_of(options.font, options.fonts)
    style = Style(width * INCH, font, titled=not options.no_title)
    figures.draw(options.output, options.kind, chosen, style)
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
