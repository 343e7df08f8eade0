"""`python -m probes figure`: figures for papers, one or two columns wide."""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path

from probes.boards.groups import Group, group
from probes.cli.arguments import place
from probes.common.errors import UserError
from probes.measurements.results import unique_results
from probes.records.files import or_published

SUMMARY = "Draw a figure for a paper: heat map, expected layers or layer curves."

KINDS = {"heatmap": "heat", "expected-layers": "expected", "curves": "curves"}
"""Each is a module in probes/rendering/figures with `draw`."""

FORMATS = (".pdf", ".svg", ".png")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add = parser.add_argument
    add("kind", choices=tuple(KINDS), metavar="KIND", help=", ".join(KINDS))
    add(
        "folders",
        type=place,
        nargs="+",
        metavar="RESULTS",
        help="folders, such as results/*/ewt",
    )
    add(
        "-o",
        "--output",
        type=place,
        required=True,
        metavar="FILE",
        help="a .pdf, .svg or .png file",
    )
    add("--wide", action="store_true", help="6.8 inches, for two columns, instead of 3.3")
    add("--probe", default="linear", metavar="P", help="probe family (default: linear)")


def run(options: argparse.Namespace) -> int:
    """Draw the figure and print its path.

    Raises:
        UserError: the format is unknown, or the folders do not hold exactly one group of comparable
            results.
    """
    if options.output.suffix.lower() not in FORMATS:
        raise UserError(f"{options.output}: the name must end in one of {', '.join(FORMATS)}.")
    chosen = _one_group(options.folders, options.probe)
    # matplotlib is imported once there is something to draw.
    figure = importlib.import_module(f"probes.rendering.figures.{KINDS[options.kind]}")
    style = importlib.import_module("probes.rendering.figures.style")
    figure.draw(options.output, chosen, style.WIDE if options.wide else style.COLUMN)
    print(options.output)
    return 0


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
