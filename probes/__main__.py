"""`probes COMMAND`, or `python -m probes COMMAND`."""

from __future__ import annotations

import importlib
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from types import ModuleType

from probes import __version__
from probes.cli.arguments import Parser, add_setting, exit_status
from probes.common.errors import UserError, out_of_memory
from probes.common.registry import did_you_mean
from probes.common.terminal import progress
from probes.measurements.plugins import discover
from probes.tables.printing import printer

COMMANDS = (
    "fetch",
    "corpora",
    "cache",
    "sweep",
    "show",
    "heads",
    "claims",
    "leaderboard",
    "board",
    "compare",
    "report",
    "figure",
    "export",
    "export-probe",
    "new-task",
    "new-measurement",
    "check",
)
"""Each is a module in probes/cli/commands with `SUMMARY`, `add_arguments` and `run`."""

SHOWING = COMMANDS[COMMANDS.index("show") : COMMANDS.index("export") + 1]
"""Those that read records."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a sub-command; see `probes.cli.arguments.exit_status`."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["run"]:
        from probes.cli.main import main as run

        return run(given[1:])
    return exit_status(_main, given)


def _main(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help"):
        print("usage: probes COMMAND [arguments]; COMMAND --help lists the arguments\n")
        print(f"  {'run':<16} Probe a model; the same as python run_probes.py.")
        for name in COMMANDS:
            print(f"  {name:<16} {_module(name).SUMMARY}")
        return 0
    if arguments[0] == "--version":
        print(f"probing-suite {__version__}")
        return 0
    name, *rest = arguments
    if name not in COMMANDS:
        known = ("run", *COMMANDS)
        raise UserError(f"Unknown command {name!r}. {did_you_mean(name, known)}")
    command = _module(name)
    parser = Parser(prog=f"python -m probes {name}", description=command.SUMMARY)
    _add_arguments(parser, command)
    options = parser.parse_args(rest)
    progress.quiet, progress.verbose = options.quiet, options.verbose
    discover(options.include)
    wide = hasattr(options, "format") and options.wide  # of a figure it is something else
    with printer.printing(getattr(options, "format", "table"), wide=wide):
        try:
            status: int = command.run(options)
        except Exception as error:
            of_user = isinstance(error, UserError | OSError | ImportError) or out_of_memory(error)
            if of_user or name not in SHOWING or options.verbose:
                raise
            from probes.cli.results import misfit

            if not (why := misfit(rest)):
                raise
            raise UserError(why) from error
    return status


def _add_arguments(parser: ArgumentParser, command: ModuleType) -> None:
    command.add_arguments(parser)
    add_setting(parser, "include")
    parser.add_argument("-v", "--verbose", action="store_true", help="print details and tracebacks")
    parser.add_argument("-q", "--quiet", action="store_true", help="print only errors")


def whole_parser() -> Parser:
    """A parser of all commands, from which `shtab` writes completion for a shell."""
    from probes.cli.main import build_parser

    whole = Parser(prog="probes")
    commands = whole.add_subparsers()
    run = build_parser()
    commands.add_parser("run", help=run.description, parents=[run], conflict_handler="resolve")
    for name in COMMANDS:
        command = _module(name)
        _add_arguments(commands.add_parser(name, help=command.SUMMARY), command)
    return whole


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"probes.cli.commands.{name.replace('-', '_')}")


if __name__ == "__main__":
    sys.exit(main())
