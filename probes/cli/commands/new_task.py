"""`python -m probes new-task`: copies a task to start from, and its test."""

from __future__ import annotations

import argparse
import builtins
import importlib.util
import keyword
import sys
from collections.abc import Mapping
from pathlib import Path

import probes
from probes.cli.arguments import RUN, path_argument
from probes.common.errors import UserError
from probes.common.files import require_parent, writing
from probes.tasks.builtin import tasks

SHAPES = ("word", "span-pair", "sentence")

_CLI = Path(probes.__file__).parent / "cli"

EXAMPLES = next(x for x in (_CLI / "examples", _CLI.parents[1] / "examples") if x.is_dir())
"""In a wheel the examples are beside the commands, in a checkout at the top."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add = parser.add_argument
    add("name", metavar="NAME", help="name of the task: letters, digits and _")
    add("--shape", choices=SHAPES, default="word", help="what an example consists of")
    add_folder(parser)


def add_folder(parser: argparse.ArgumentParser) -> None:
    """Add the folder of the copies."""
    about = "default: the current folder"
    parser.add_argument("--folder", type=path_argument, default=Path(), metavar="DIR", help=about)


def run(options: argparse.Namespace) -> int:
    """Write both files and print what to do with them."""
    name, template = options.name, f"{options.shape.replace('-', '_')}_classification"
    if name in tasks:
        raise UserError(f"new-task {name}: this name is taken; choose another.")
    task, test = copy_template(
        "new-task", EXAMPLES / "tasks" / template, options.folder, name, {template: name}
    )
    if not options.quiet:
        print(f"wrote {task} and {test}; next:")
        print(f"  python -m probes check {task}")
        print(f"  python -m pytest {test}")
        print(f"  {RUN} --model MODEL --include {task} --tasks {name}")
    return 0


def copy_template(
    command: str, template: Path, folder: Path, name: str, words: Mapping[str, str]
) -> tuple[Path, Path]:
    """Copy a template and its test to `folder`, which is created if its parent exists.

    Args:
        template: path of the template, without `.py`.
        words: replacements in both files.

    Returns:
        the paths of the copy and of its test.

    Raises:
        UserError: the name cannot be used, the folder cannot be created, or a file exists already.
    """
    if not name.isidentifier() or name.startswith("_") or len(name) > 60:
        raise UserError(
            f"{command} {name}: this becomes the name of a file and a function; use up to 60 "
            "letters, digits and _ (not -), and begin with a letter."
        )
    for word in words.values():
        if keyword.iskeyword(word) or hasattr(builtins, word) or word in dir(probes):
            raise UserError(
                f"{command} {name}: Python or the template uses this name; choose another."
            )
    file, test = folder / f"{name}.py", folder / f"test_{name}.py"
    module = importlib.util.find_spec(name)
    # An earlier copy, which Python finds too, is refused below, with its path.
    hidden = module and Path(module.origin or "").resolve() != file.resolve()
    if hidden or name in sys.stdlib_module_names:
        raise UserError(
            f"{command} {name}: {name}.py would hide the module {name!r}; choose another name."
        )
    require_parent(folder)
    if folder.is_file():
        raise UserError(f"--folder {folder} is a file; name a folder.")
    for path in (file, test):
        if path.exists():
            raise UserError(f"{command} {name}: {path} exists already; choose another name.")
    for path, source in ((file, template.name), (test, f"test_{template.name}")):
        text = template.with_name(f"{source}.py").read_text(encoding="utf-8")
        for word, replacement in words.items():
            text = text.replace(word, replacement)
        with writing(path):
            folder.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
    return file, test
