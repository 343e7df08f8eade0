"""`python -m probes new-task`: writes a task to start from, and its test."""

from __future__ import annotations

import argparse
import builtins
import importlib.util
import keyword
import sys
from pathlib import Path

from probes.cli.arguments import place
from probes.cli.task_templates import STARTS, files
from probes.common.errors import UserError
from probes.common.files import published, require_parent
from probes.tasks.builtin import tasks

SUMMARY = "Write a commented task to start from, and its test."

IMPORTED = ("Example", "Excluded", "Iterator", "ROOT", "Sentence", "annotations", "task")
"""Names that the written file imports."""

SHAPES = tuple(dict.fromkeys(shape.replace(" ", "-") for shape, _ in STARTS))

KINDS = tuple(dict.fromkeys(kind for _, kind in STARTS))


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
        UserError: the name cannot be used, there is no template of that shape and kind, the folder
            cannot be created, or a file exists already.
    """
    name, folder = options.name, options.folder
    _require_usable(name, folder)
    shape = options.shape.replace("-", " ")
    if (shape, options.kind) not in STARTS:
        fitting = ", ".join(one for one, kind in STARTS if kind == options.kind)
        raise UserError(
            f"new-task {name}: there is no template for {options.kind} with shape {options.shape}; "
            f"choose one of {fitting} and adapt it."
        )
    written = files(name, shape, options.kind)
    paths = {folder / file: text for file, text in written.items()}
    require_parent(folder)
    if folder.is_file():
        raise UserError(f"--folder {folder} is a file; name a folder.")
    for path in paths:
        if path.exists():
            raise UserError(f"new-task {name}: {path} exists already; choose another name.")
    for path, text in paths.items():
        with published(path) as temporary:
            temporary.write_text(text, encoding="utf-8")
    task, test = paths
    if not options.quiet:
        print(f"wrote {task} and {test}; next:")
        print(f"  python -m probes check {task}")
        print(f"  python -m pytest {test}")
        print(f"  python run_probes.py --model MODEL --include {task} --tasks {name}")
    return 0


def _require_usable(name: str, folder: Path) -> None:
    taken = keyword.iskeyword(name) or hasattr(builtins, name) or name in IMPORTED
    if not name.isidentifier() or name.startswith("_") or len(name) > 60:
        raise UserError(
            f"new-task {name}: it becomes the name of a file and a function; use up to 60 "
            "letters, digits and _, and begin with a letter."
        )
    if taken:
        raise UserError(
            f"new-task {name}: Python or the file itself uses this name; choose another."
        )
    if name in tasks:
        raise UserError(f"new-task {name}: there is a task of this name already; choose another.")
    module = importlib.util.find_spec(name)
    own = folder.resolve() / f"{name}.py"  # which is refused for what it is
    if name in sys.stdlib_module_names or (module and Path(module.origin or "").resolve() != own):
        raise UserError(
            f"new-task {name}: {name}.py would hide the module {name!r}; choose another name."
        )
