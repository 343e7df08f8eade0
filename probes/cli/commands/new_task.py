"""`python -m probes new-task`: copies a task to start from, and its test."""

from __future__ import annotations

import argparse
from pathlib import Path

from probes.cli.arguments import place
from probes.cli.starting_files import (
    examples_of,
    renamed_example,
    require_usable_name,
    write_new,
)
from probes.common.errors import UserError
from probes.tasks.builtin import tasks

SUMMARY = "Write a commented task to start from, and its test."

IMPORTED = ("Example", "Excluded", "Iterator", "ROOT", "Sentence", "annotations", "task")
"""Names that the written file imports."""

SHAPES = ("word", "pair", "span", "span-pair", "sentence")

KINDS = ("classification", "multi-label", "regression")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add = parser.add_argument
    add("name", metavar="NAME", help="of the task: letters, digits and _")
    add("--shape", choices=SHAPES, default="word", help="what an example is made of")
    add("--kind", choices=KINDS, default="classification", help="what is predicted")
    add("--folder", type=place, default=Path(), metavar="DIR", help="default: the current folder")


def run(options: argparse.Namespace) -> int:
    """Write both files and print what to do with them.

    Raises:
        UserError: the name cannot be used, there is no example of that shape and kind, the folder
            cannot be created, or a file exists already.
    """
    name, folder = options.name, options.folder
    require_usable_name("new-task", name, folder, IMPORTED)
    if name in tasks:
        raise UserError(f"new-task {name}: there is a task of this name already; choose another.")
    kind = options.kind.replace("-", "_")
    example = f"{options.shape.replace('-', '_')}_{kind}"
    if example not in (known := examples_of("tasks")):
        fitting = ", ".join(
            shape for shape in SHAPES if f"{shape.replace('-', '_')}_{kind}" in known
        )
        raise UserError(
            f"new-task {name}: there is no example for {options.kind} with shape {options.shape}; "
            f"choose one of {fitting} and adapt it."
        )
    task, test = write_new("new-task", name, folder, renamed_example("tasks", example, name))
    if not options.quiet:
        print(f"wrote {task} and {test}; next:")
        print(f"  python -m probes check {task}")
        print(f"  python -m pytest {test}")
        print(f"  python run_probes.py --model MODEL --include {task} --tasks {name}")
    return 0
