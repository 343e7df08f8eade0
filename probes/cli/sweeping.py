"""The runs of a sweep, one after the other; what fails in one does not stop the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from probes.cli.run import run_models
from probes.common.errors import UserError
from probes.common.terminal import progress, tolerate_broken_output
from probes.data.find import find_corpus
from probes.data.sources import Source
from probes.engines.inputs import LazyModel, find_models
from probes.engines.sweep_file import SweepRun
from probes.records.table import Table, TableRow
from probes.rendering.printing import printer

Missing = dict[str, str]
"""What a sweep lacks, with the reason."""

HEADS = ("done", "failed", "waiting")
"""Of the table of progress: numbers of runs."""


Act = Callable[[SweepRun, Source, Sequence[LazyModel]], Missing]
"""What is done with models of a run on its corpus; returns what is missing from it."""


def plan_all(runs: Sequence[SweepRun]) -> Missing:
    """Print what remains of each run; returns what cannot be run."""

    def plan(run: SweepRun, source: Source, models: Sequence[LazyModel]) -> Missing:
        run_models(run.config.model_copy(update={"dry_run": True}), source, models)
        return {}

    missing: Missing = {}
    for number, run in enumerate(runs, start=1):
        _announce(number, runs)
        missing |= _together_or_apart(run, plan)
    return missing


def measure_all(runs: Sequence[SweepRun], command: str) -> Missing:
    """Measure, with a table of progress after each run; returns what is missing at the end.

    Args:
        command: the command line, which records name.
    """

    def measure(run: SweepRun, source: Source, models: Sequence[LazyModel]) -> Missing:
        results = run_models(run.config, source, models, command)
        return {f"{what} on {run.corpus}": why for what, why in results.failed.items()}

    missing: Missing = {}
    failed = 0
    for number, run in enumerate(runs, start=1):
        _announce(number, runs)
        lacking = _together_or_apart(run, measure)
        missing |= lacking
        failed += bool(lacking)
        row = TableRow.of(str(number - failed), str(failed), str(len(runs) - number))
        with tolerate_broken_output():
            if printer.immediate:
                printer.show([Table("sweep", HEADS, (row,), left=0)], quiet=progress.quiet)
    return missing


def _announce(number: int, runs: Sequence[SweepRun]) -> None:
    progress.say(f"run     {number} of {len(runs)} · {runs[number - 1].title}", "run of a sweep")


def _together_or_apart(run: SweepRun, act: Act) -> Missing:
    """Do something with the models of a run; one that is refused does not stop the others.

    If they are refused together, each is taken by itself, or with the first one where models are
    compared with it. What is done already is not done again.
    """
    try:
        source = find_corpus(*run.config.corpus, **run.config.corpus_request)
    except UserError as error:
        return {run.title: str(error)}
    names, missing = _findable(run)
    try:
        return missing | (act(run, source, find_models(names, run.config)) if names else {})
    except UserError as error:
        if len(names) == 1:
            return {**missing, f"{names[0]} on {run.corpus}": str(error)}
        progress.warn(f"the models of this run are taken one by one, since together: {error}")
    for name in names:
        group = tuple(dict.fromkeys((names[0], name))) if run.compares else (name,)
        try:
            missing |= act(run, source, find_models(group, run.config))
        except UserError as error:
            missing[f"{name} on {run.corpus}"] = str(error)
    return missing


def _findable(run: SweepRun) -> tuple[tuple[str, ...], Missing]:
    """The models that are found, and those that are not.

    If other models are compared with the first one, none remains without it.
    """
    names: list[str] = []
    missing: Missing = {}
    for name in run.models:
        try:
            find_models([name], run.config)
            names.append(name)
        except UserError as error:
            missing[f"{name} on {run.corpus}"] = str(error)
    if run.models[0] not in names and run.compares:
        why = f"{run.models[0]}, with which it is compared, is missing"
        missing |= {f"{name} on {run.corpus}": why for name in names}
        return (), missing
    return tuple(names), missing
