"""`python -m probes sweep`: executes the runs listed in a TOML file, one after the other."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from probes.cli.arguments import RUN, add_format, path_argument
from probes.cli.main import LISTS, build_parser, measure, parse
from probes.common.errors import UserError, counted, quoted
from probes.common.files import read_toml
from probes.common.terminal import progress, tolerate_broken_output
from probes.measurements.measurement import corpus_measurements
from probes.run.config import RunConfig
from probes.run.settings import validate
from probes.tables.printing import printer
from probes.tables.table import Table, TableRow

OVERRIDING = (
    *("engine", "address", "workers", "output", "cache_dir", "data_dir", "offline", "dry_run"),
)
"""Flags of `run_probes.py` that this command has, too; they apply to all runs."""

NOT_OF_RUNS = {"format", "help", "quiet", "verbose", "version", *(f"list-{name}" for name in LISTS)}
"""Flags of `run_probes.py` that a run of a sweep cannot have."""

SEVERAL = ("model", "vectors", "corpus")
"""Flags whose values are separated by blanks, not by commas."""


@dataclass(frozen=True)
class SweepRun:
    """One run of a sweep.

    Attributes:
        models: models as for `--model`, without twins that the configuration adds.
        command: the equivalent command line.
    """

    config: RunConfig
    models: tuple[str, ...]
    command: str

    @property
    def corpus(self) -> str:
        """The corpus as the file names it."""
        return " ".join(self.config.corpus)

    @property
    def compares(self) -> bool:
        """Whether a measurement compares the other models with the first one."""
        pairs = [x for x in corpus_measurements() if x.of == "pair"]
        return any({x.name, x.after} & {*self.config.about_corpus} for x in pairs)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command, which override the file's values."""
    parser.add_argument(
        "file", type=path_argument, metavar="FILE", help="a .toml file: docs/performance.md"
    )
    for action in build_parser()._actions:
        if action.dest in OVERRIDING:
            parser._add_action(action)
    add_format(parser)


def run(options: argparse.Namespace) -> int:
    """Run the sweep, or print what it would compute; nothing is run if the file has an error."""
    overriding = {
        name.replace("_", "-"): value for name, value in vars(options).items() if name in OVERRIDING
    }
    runs = read_sweep(options.file, overriding)
    if all(sweep_run.config.offline for sweep_run in runs):
        os.environ["HF_HUB_OFFLINE"] = "1"
    rows: list[TableRow] = []
    missing: dict[str, str] = {}
    for number, sweep_run in enumerate(runs, start=1):
        n_models = counted(len(sweep_run.models), "model")
        progress.say(
            f"run     {number} of {len(runs)} · {sweep_run.corpus} · {n_models}", "run of a sweep"
        )
        failures = _measure_run(sweep_run)
        missing |= {f"{subject} (run {number})": reason for subject, reason in failures.items()}
        state = f"{counted(len(failures), 'thing')} missing" if failures else "done"
        rows.append(TableRow.of(str(number), sweep_run.corpus, n_models, state))
    if not runs[0].config.dry_run:
        table = Table("sweep", ("run", "corpus", "models", "state"), tuple(rows), left=4)
        with tolerate_broken_output():
            if printer.immediate:
                printer.show([table], quiet=progress.quiet)
    for subject, reason in missing.items():
        progress.warn(f"missing {subject}: {reason}")
    if missing and not runs[0].config.dry_run:
        progress.say("next    run the same command again to measure what is missing", "next")
    return 1 if missing else 0


def read_sweep(path: Path, overriding: Mapping[str, object]) -> list[SweepRun]:
    """Read a sweep and check all runs.

    Args:
        overriding: flags with values for all runs.

    Raises:
        UserError: the file cannot be read, or a value of a run cannot be used.
    """
    shared = read_toml(path)
    tables = shared.pop("run", None)
    if not (isinstance(tables, list) and tables and all(isinstance(x, dict) for x in tables)):
        raise UserError(f"{path}: no runs; give each a table [[run]].")
    actions = build_parser()._actions
    without_value = {flag for x in actions if x.nargs == 0 for flag in x.option_strings}
    runs = []
    for number, table in enumerate(tables, start=1):
        try:
            arguments = list(_arguments({**shared, **table, **overriding}, without_value))
            flags, models = parse(arguments)
            if not models:
                raise UserError("no model; give model or vectors.")
            del flags["format"], flags["wide"]
            command = f"{RUN} {shlex.join(arguments)}"
            runs.append(SweepRun(validate(flags), tuple(models), command))
        except UserError as error:
            raise UserError(f"{path}, run {number}: {error}") from error
    return runs


def _arguments(table: Mapping[str, Any], without_value: Container[str]) -> Iterator[str]:
    """The command line of a run; flags `without_value` are given or left out."""
    for name, value in table.items():
        if name in NOT_OF_RUNS:
            raise UserError(f"{name}: not a setting of single runs; give it on the command line.")
        values = value if isinstance(value, list) else [value]
        if not all(isinstance(x, (str, int, float)) for x in values):
            raise UserError(f"{name} = {quoted(value)}: give text, a number, true or false.")
        flag = f"--{name}"
        texts = [str(x).lower() if isinstance(x, bool) else str(x) for x in values]
        if isinstance(value, bool) and flag in without_value:
            if value:
                yield flag
        elif name in SEVERAL:
            yield from (flag, *texts)
        else:
            yield f"{flag}={','.join(texts)}"


def _measure_run(run: SweepRun) -> dict[str, str]:
    """Measure the models of a run, or one by one if they cannot be measured together.

    If models are compared with the first one, each is measured together with it.

    Returns:
        reasons for missing results.
    """
    try:
        return dict(measure(run.config, run.models, run.command).failed)
    except UserError as error:
        if len(run.models) == 1:
            return {f"{run.models[0]} on {run.corpus}": str(error)}
        progress.warn(f"measuring the models of this run one by one, since together: {error}")
    missing: dict[str, str] = {}
    first = run.models[:1] if run.compares else ()
    for name in run.models[len(first) :]:
        try:
            missing |= measure(run.config, (*first, name), run.command).failed
        except UserError as error:
            missing[f"{name} on {run.corpus}"] = str(error)
    return missing
