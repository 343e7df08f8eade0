"""Parser, shared flags and exit status of all command lines of the suite."""

from __future__ import annotations

import argparse
import errno
import re
import sys
from collections.abc import Callable, Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import Any, Literal, NoReturn, cast, get_args, get_origin

from pydantic_core import PydanticUndefined

import probes
from probes.common.errors import UserError, listed, names_in, out_of_memory, printable, quoted
from probes.common.process import Sigterm, stopping_at_sigterm
from probes.common.registry import nearest
from probes.common.terminal import discard_output
from probes.run.config import NO_NAMES, NO_PATH, RunConfig

CHECKOUT = (Path(probes.__path__[0]).with_name("run_probes.py")).exists()
RUN = "python run_probes.py" if CHECKOUT else "probes run"
"""The command that probes a model: an installed package has no run_probes.py."""


class Parser(argparse.ArgumentParser):
    """Reports errors in one line, with the nearest known flag; takes no abbreviations."""

    def __init__(self, **settings: object) -> None:
        super().__init__(allow_abbrev=False, **settings)  # type: ignore[arg-type]

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing the usage."""
        prefix = "unrecognized arguments: "
        if message.startswith(prefix):
            unknown_arguments = message.removeprefix(prefix)
            flag = (unknown_arguments.split() or [unknown_arguments])[0]
            flags = [o for action in self._actions for o in action.option_strings]
            begin = "-" * (not flag.startswith("--")) + flag
            near = [x for x in flags if x.startswith(begin)][:6] or [nearest(flag, flags) or ""]
            hint = f"Did you mean {listed(map(repr, near))}?" if near[0] else "See --help."
            # A value without a flag: the model, or what followed a blank where a comma belongs.
            if flag[:1] != "-" and "--model" in flags:
                hint = "Values of one flag are separated by commas."
                if "--model" not in self._given:
                    hint = f"Did you mean --model {flag}?"
            message = f"unknown argument {flag!r}. {hint}"
        raise UserError(_argparse_error(message))

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str], namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse, taking what follows a flag and begins like a negative number as its value."""
        joined_arguments: list[str] = []
        self._given = [argument.partition("=")[0] for argument in args]
        for argument in args:
            if re.match(r"-\d", argument) and re.match("--[^=]+$", (joined_arguments or [""])[-1]):
                joined_arguments[-1] += f"={argument}"
            else:
                joined_arguments.append(argument)
        return super().parse_known_args(joined_arguments, namespace)


def _argparse_error(message: str) -> str:
    """An error of argparse as flag, value and fault."""
    match = re.fullmatch(r"argument (?:-\w/)?(.+?): (.*)", message, re.DOTALL)
    if not match:
        return message
    flag, fault = match.groups()
    if choice := re.fullmatch(r"invalid choice: '(.*)' \(choose from (.*)\)", fault, re.DOTALL):
        choices = choice[2].replace("'", "").split(", ")
        return f"{flag} {quoted(choice[1])}: give {listed(choices)}."
    if number := re.fullmatch(r"invalid (int|float) value: '(.*)'", fault, re.DOTALL):
        kind = "whole number" if number[1] == "int" else "number"
        return f"{flag} {quoted(number[2])}: not a {kind}."
    # `names` and `path_argument` begin with the value.
    return f"{flag} {fault}" if ": " in fault else f"{flag}: {fault}"


def exit_status(run: Callable[[list[str]], int], arguments: Sequence[str] | None) -> int:
    """Run a command line.

    Returns:
        the exit status: what `run` returns; 1 for a defect of the suite, 2 for what the user can
        correct, 130 if stopped by Ctrl-C, 143 if by SIGTERM.
    """
    with stopping_at_sigterm() as sigterm:
        return _exit_status(run, arguments, sigterm)


def _exit_status(
    run: Callable[[list[str]], int], arguments: Sequence[str] | None, sigterm: Sigterm
) -> int:
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # A character that the encoding lacks is no reason to stop.
            stream.reconfigure(errors="backslashreplace")
    try:
        status = run(arguments)
        if sys.stdout is not None:
            sys.stdout.flush()
        return status
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # The reader has closed the pipe, as `| head` does; at exit Python would try to flush it.
        discard_output()
        return 0
    except Exception as error:
        if sigterm.came:  # as when it interrupts the import of a module, which then fails
            return _stopped(143)
        if message := _fault_of_machine(error):
            print(f"error: {message}", file=sys.stderr)
            return 2
        if not {"-v", "--verbose"} & set(arguments):
            defect = " ".join(f"{type(error).__name__}: {error}".split())
            print(f"defect: {defect} (-v shows where; please report it)", file=sys.stderr)
            return 1
        raise
    except KeyboardInterrupt:
        return _stopped(143 if sigterm.came else 130)


def _fault_of_machine(error: Exception) -> str:
    """An error of the machine or of another package, with a remedy; empty for other errors."""
    reason, number = " ".join(str(error).split()), error.errno if isinstance(error, OSError) else 0
    if out_of_memory(error):
        return (
            f"out of memory ({reason[:200]}); free some, or use --limit. Finished results are "
            "kept; run the same command again to continue."
        )
    if number in (errno.ENOSPC, errno.EDQUOT):
        discard_output()
        return f"{error}; free some space."
    if isinstance(error, OSError) and number == errno.ENAMETOOLONG:
        return f"{printable(str(error.filename))[:81]}…: the path is too long; name another."
    if isinstance(error, ImportError) and not (error.name or "").startswith("probes"):
        return (
            f"an installed package cannot be used ({reason}); install versions that fit together: "
            "pip install --upgrade probing-suite"
        )
    return ""


def _stopped(status: int) -> int:
    """Say that the command was stopped; returns the status."""
    print(
        "stopped; finished results are kept; run the same command again to continue",
        file=sys.stderr,
    )
    return status


def names(text: str) -> tuple[str, ...]:
    """Names separated by commas, without duplicates; argparse reports that there are none."""
    parsed_names = names_in(text)
    if not parsed_names:
        raise argparse.ArgumentTypeError(f"{quoted(text)}: {NO_NAMES}.")
    return parsed_names


def path_argument(text: str) -> Path:
    """Type of an argument that is a path."""
    # An empty text, as of an unset variable of a shell, would mean the current folder.
    if not text.strip():
        raise argparse.ArgumentTypeError(f"{quoted(text)}: {NO_PATH}.")
    return Path(text)


def add_setting(
    parser: argparse.ArgumentParser, name: str, group: argparse._ArgumentGroup | None = None
) -> None:
    """Add the flag of a setting of `RunConfig`, with its help and default, to a group of help."""
    field = RunConfig.model_fields[name]
    about: dict[str, Any] = {}
    default = field.default
    if field.annotation is bool:
        about["action"] = "store_true"
    elif choices := _choices(field.annotation):
        about["choices"] = choices
    else:
        extra = cast(dict[str, Any], field.json_schema_extra)
        about["metavar"] = extra["metavar"]
    if name == "corpus":
        about["nargs"] = "+"
    if name == "include":
        about |= {"type": names, "action": "extend"}
    text = field.description or ""
    if default and default is not PydanticUndefined and field.annotation is not bool:
        text += f" (default: {typed(default)})"
    # Only the parser of `run_probes.py` leaves defaults to `RunConfig`.
    if parser.argument_default is None:
        value = field.get_default(call_default_factory=True)
        # The action "extend" adds to a list.
        about["default"] = list(value) if name == "include" else value
        about |= {"type": path_argument} if name.endswith("_dir") else {}
    flag = f"--{name.replace('_', '-')}"
    (group or parser).add_argument(flag, help=text.replace("%", "%%"), **about)


def typed(value: object) -> str:
    """A default as a user would type it."""
    if isinstance(value, tuple):
        return ",".join(map(typed, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _choices(kind: Any) -> tuple[str, ...]:
    """Words of a `Literal`, alone or in a union; empty for other types."""
    if get_origin(kind) is Literal:
        return get_args(kind)
    if get_origin(kind) is tuple:
        return ()
    return next((x for member in get_args(kind) if (x := _choices(member))), ())


def add_folders(parser: argparse.ArgumentParser) -> None:
    """Add one or more folders of results."""
    parser.add_argument(
        "folders",
        type=path_argument,
        nargs="+",
        metavar="RESULTS",
        help="folders, such as results/*/ewt",
    )


def add_format(parser: argparse._ActionsContainer) -> None:
    """Add `--format`, which every command has that prints tables."""
    parser.add_argument(
        "--format",
        choices=("table", "md", "csv", "json", "latex"),
        default="table",
        help="format of printed tables (default: table); latex needs booktabs",
    )
    parser.add_argument(
        "--wide",
        action="store_true",
        default=False,
        help="LaTeX tables over both columns of a page (table*)",
    )


def add_recipes(parser: argparse.ArgumentParser, purpose: str) -> None:
    """Add `--recipes`, whose value is an empty path if no file is named."""
    parser.add_argument(
        "--recipes",
        type=path_argument,
        nargs="?",
        const=Path(),
        metavar="FILE",
        help=f"{purpose}: models that differ by seed alone, as FILE (TOML) says, or by default "
        "those whose names differ only in seed-N, and random twins",
    )


def add_verbosity(parser: argparse._ActionsContainer) -> None:
    """Add `-v` and `-q`."""
    add = parser.add_argument
    add("-v", "--verbose", action="store_true", help="print every step, and tracebacks")
    add("-q", "--quiet", action="store_true", help="print only warnings and errors")


def add_places(parser: argparse.ArgumentParser) -> None:
    """Add `--data-dir` and `--cache-dir`."""
    add_setting(parser, "data_dir")
    add_setting(parser, "cache_dir")
