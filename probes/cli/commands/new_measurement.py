"""`python -m probes new-measurement`: copies a measurement to start from, and its test."""

from __future__ import annotations

import argparse

from probes.cli.arguments import RUN
from probes.cli.commands.new_task import EXAMPLES, add_folder, copy_template
from probes.common.errors import UserError
from probes.measurements.measurement import measurements, require_usable

OF = ("corpus", "probes")
"""Kinds of measurements."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add = parser.add_argument
    add("name", metavar="NAME", help="name of the measurement: a-z, 0-9 and _")
    add(
        "--of",
        choices=OF,
        default="corpus",
        help="measure vectors of a corpus (the default), or probes, as evidence",
    )
    add_folder(parser)


def run(options: argparse.Namespace) -> int:
    """Write both files and print what to do with them."""
    name, template = options.name, f"of_{options.of}"
    words = {template: name, template.replace("_", "-"): name.replace("_", "-")}
    require_usable(name)
    if name in measurements:
        raise UserError(f"new-measurement {name}: this name is taken; choose another.")
    file, test = copy_template(
        "new-measurement", EXAMPLES / "measurements" / template, options.folder, name, words
    )
    if not options.quiet:
        flag = "--measurements" if options.of == "corpus" else "--evidence"
        print(f"wrote {file} and {test}; next:")
        print(f"  python -m pytest {test}")
        print(f"  {RUN} --model MODEL --include {file} {flag} {name}")
    return 0
