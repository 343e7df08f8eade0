"""`probes COMMAND`, or `python -m probes COMMAND`."""

from __future__ import annotations

import importlib
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from probes import __version__
from probes.cli.arguments import Parser, add_setting, add_verbosity, exit_status
from probes.common.errors import UserError
from probes.common.registry import did_you_mean
from probes.common.terminal import progress
from probes.measurements.catalogue import registered_commands
from probes.measurements.plugins import discover

if TYPE_CHECKING:
    from probes.cli.family_command import FamilyCommand

COMMANDS = {
    "fetch": "Download corpora for runs without a network, and check them.",
    "corpora": "List corpora: licence, where their files are, and the tasks they serve.",
    "cache": "List and delete stored word vectors and fitted parameters.",
    "sweep": "Run what a TOML file lists: models, corpora and settings.",
    "generate": "Write a language model's greedy answers to prompts, to label and probe.",
    "show": "Show scores by layer and task, their breakdowns, or the evidence behind them.",
    **{name: command.summary for name, command in registered_commands("commands").items()},
    "claims": "Test claims of the literature about layers and heads on results.",
    "leaderboard": "Rank models by their best layers, by task and overall, and by their answers.",
    "board": "Check that results follow from their sums, and show them as a static site.",
    "compare": "Compare models: layer curves, differences with intervals, claims that change.",
    "report": "Write one self-contained HTML page of all results in folders.",
    "figure": "Draw a figure for a paper: of scores by layer, or a chart of another measurement.",
    "export": "Write results into a folder to share, without labels and predictions.",
    "export-probe": "Write one fitted probe to a file that numpy can read (docs/vectors.md).",
    "new-task": "Write a commented task to start from, and its test.",
    "new-measurement": "Write a commented measurement to start from, and its test.",
    "check": "Check a task without loading a model: examples, labels, leakage, what it reads.",
}
"""Summaries of sub-commands: modules of probes/cli/commands, and what families register."""


_FOLDERS_READ = {
    "show": ["paths"],
    "claims": ["folders"],
    "leaderboard": ["results"],
    "compare": ["model", "results"],
}
"""Options with folders that a command reads, if its answers are kept (see `probes.cli.answers`)."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a sub-command; see `probes.cli.arguments.exit_status`."""
    command_line = list(sys.argv[1:] if arguments is None else arguments)
    if command_line[:1] == ["run"]:
        from probes.cli.main import main as run

        return run(command_line[1:])
    return exit_status(_run_command, command_line)


def _run_command(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help"):
        print("usage: probes COMMAND [arguments]; COMMAND --help lists the arguments\n")
        print(f"  {'run':<16} Probe a model; in a checkout also python run_probes.py.")
        for name, summary in COMMANDS.items():
            print(f"  {name:<16} {summary}")
        return 0
    if arguments[0] == "--version":
        print(f"probing-suite {__version__}")
        return 0
    name, *command_arguments = arguments
    if name not in COMMANDS:
        command_names = ("run", *COMMANDS)
        raise UserError(f"Unknown command {name!r}. {did_you_mean(name, command_names)}")
    command = _module(name)
    parser = Parser(prog=f"python -m probes {name}", description=COMMANDS[name])
    _add_arguments(parser, command)
    options = parser.parse_args(command_arguments)
    progress.quiet, progress.verbose = options.quiet, options.verbose
    discover(options.include)
    from probes.tables.printing import printer

    wide = hasattr(options, "format") and options.wide  # of a figure it is something else

    def run() -> int:
        with printer.printing(getattr(options, "format", "table"), wide=wide):
            status: int = command.run(options)
            return status

    if name not in _FOLDERS_READ or getattr(options, "recipes", None) is not None:
        return run()
    from probes.cli.answers import answered

    values = [getattr(options, option) for option in _FOLDERS_READ[name]]
    paths = [Path(x) for value in values for x in (value if isinstance(value, list) else [value])]
    return answered(arguments, paths, run)


def _add_arguments(parser: ArgumentParser, command: ModuleType | FamilyCommand) -> None:
    command.add_arguments(parser)
    add_setting(parser, "include")
    add_verbosity(parser)


def whole_parser() -> Parser:
    """A parser of all commands, from which `shtab` writes completion for a shell."""
    from probes.cli.main import build_parser

    parser = Parser(prog="probes")
    commands = parser.add_subparsers()
    run = build_parser()
    commands.add_parser("run", help=run.description, parents=[run], conflict_handler="resolve")
    for name, summary in COMMANDS.items():
        _add_arguments(commands.add_parser(name, help=summary), _module(name))
    return parser


def _module(name: str) -> ModuleType | FamilyCommand:
    if command := registered_commands("commands").get(name):
        from probes.cli.family_command import FamilyCommand  # needs pandas, help does not

        return FamilyCommand(command)
    return importlib.import_module(f"probes.cli.commands.{name.replace('-', '_')}")


if __name__ == "__main__":
    sys.exit(main())
