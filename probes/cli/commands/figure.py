"""`python -m probes figure`: figures for papers, one or two columns wide."""

from __future__ import annotations

import argparse
from pathlib import Path

from probes.boards.corpus_groups import CorpusGroup, corpus_groups, of_corpora
from probes.boards.groups import Group, group, model_labels
from probes.boards.separability import separability
from probes.boards.training_steps import steps
from probes.cli.arguments import add_folders, add_places, place
from probes.cli.load_results import records_below
from probes.cli.predicted_tree import predicted_tree
from probes.common.errors import UserError
from probes.common.registry import did_you_mean
from probes.common.terminal import progress
from probes.common.wording import listed
from probes.measurements.joined_results import unique_results
from probes.measurements.measurement import corpus_measurements
from probes.measurements.plugin_keys import plugin_failure
from probes.records.charts import Chart, PredictedTree, models_of
from probes.records.files import or_published

SUMMARY = "Draw a figure for a paper: of scores by layer, or a chart of another measurement."

KINDS = ("heatmap", "expected-layers", "curves")
"""Figures of scores."""

GRIDS = {"separability": lambda group: separability(group.paths), "steps": steps}
"""Figures of scores that are drawn as grids: how well probes tell layers apart, and training."""

TREE = "tree"
"""The figure of one sentence."""

FORMATS = (".pdf", ".svg", ".png")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add = parser.add_argument
    add("kind", metavar="FIGURE", help=", ".join(_known()))
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
    add("--measurement", default="", metavar="M", help="whose, if several have a figure of a name")
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
    if options.kind not in (known := _known()):
        raise UserError(
            f"No figure is called {options.kind!r}. {did_you_mean(options.kind, known)}"
        )
    if options.measurement and options.kind in (*KINDS, *GRIDS, TREE):
        raise UserError(f"--measurement: {options.kind} is of no other measurement; leave it out.")
    chosen: Group | Chart | PredictedTree
    if options.kind in KINDS:
        chosen = _one_group(options.folders, options.probe)
    elif options.kind in GRIDS:
        found = GRIDS[options.kind](_one_group(options.folders, options.probe))
        chosen = _drawable(found, options.kind, ", ".join(map(str, options.folders)))
    elif options.kind == TREE:
        chosen = predicted_tree(
            options.folders,
            options.sentence,
            options.corpus,
            options.data_dir,
            options.cache_dir,
        )
    else:
        chosen = _one_chart(options.folders, options.kind, options.measurement)
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


def _known() -> list[str]:
    """The names of all figures."""
    charts = dict.fromkeys(name for each in corpus_measurements() for name in each.figure_names)
    return [*KINDS, *GRIDS, TREE, *charts]


def _one_chart(folders: list[Path], name: str, measurement: str) -> Chart:
    """The chart of that name, of the records of all models.

    Args:
        measurement: whose chart; may be empty if only one of those that have it has records.
    """
    records = records_below(folders)
    having = [each.name for each in corpus_measurements() if name in each.figure_names]
    if measurement and measurement not in having:
        raise UserError(
            f"--measurement {measurement}: the figure {name} is one of {listed(having)}."
        )
    having = [measurement] if measurement else having
    of_these = {path: record for path, record in records.items() if record.measurement in having}
    measured = sorted({record.measurement for record in of_these.values()}, key=having.index)
    if len(measured) > 1:
        raise UserError(
            f"{name} is a figure of {listed(measured, 'and')}: say whose with --measurement, such "
            f"as --measurement {measured[0]}."
        )
    groups, left_out = corpus_groups(of_corpora(of_these), model_labels(records))
    for each in left_out:
        progress.say(f"left out {each}")
    where = ", ".join(map(str, folders))
    if not groups:
        raise UserError(
            f"{where}: no records of {listed(having)}; measure it with "
            f"--measurements {having[0]}{or_published(*folders)}."
        )
    if len(groups) > 1:
        titles = "; ".join(f"{each.measurement.name}: {each.title}" for each in groups)
        raise UserError(
            f"{where}: these records cannot stand in one figure ({titles}); name the folders of "
            "one corpus, such as results/*/ewt."
        )
    return _drawable(_charts(groups[0]).get(name), name, where)


def _charts(group: CorpusGroup) -> dict[str, Chart]:
    """The charts of a measurement by name; what a plug-in raises is an error for the user."""
    try:
        return {chart.name: chart for chart in group.charts()}
    except Exception as error:
        if why := plugin_failure(error, group.measurement.name, None, ""):
            raise UserError(f"{group.measurement.name}: {why}") from error
        raise


def _drawable(chart: Chart | None, name: str, where: str) -> Chart:
    """The chart, if there is something in it; the models that it lacks are named in messages."""
    missing = chart.missing.items() if chart else ()
    if chart is None or not models_of(chart):
        why = "; ".join(f"{model}: {reason}" for model, reason in missing) or "there are no numbers"
        raise UserError(f"{where}: nothing to draw as {name} ({why}).")
    for model, reason in missing:
        progress.say(f"not drawn: {model} ({reason})")
    return chart


def _one_group(folders: list[Path], family: str) -> Group:
    for folder in folders:
        if not folder.is_dir():
            raise UserError(f"{folder}: there is no such folder.")
    found = unique_results(*folders)
    groups, _ = group({path: r for path, r in found.items() if r.probe.family == family})
    names = ", ".join(map(str, folders))
    if not groups:
        raise UserError(
            f"{names}: no results of {family} probes; run them first{or_published(*folders)}."
        )
    if len(groups) > 1:
        titles = "; ".join(each.title for each in groups)
        raise UserError(
            f"{names}: these results cannot be compared in one figure ({titles}); "
            "name the folders of one corpus, such as results/*/ewt."
        )
    return groups[0]
