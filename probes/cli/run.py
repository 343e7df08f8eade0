"""Works a plan off: encode, fit, write, tabulate. Also the Python interface."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from probes import __version__
from probes.boards.comparison import Comparison, compare, comparison_tables
from probes.boards.layer_tables import (
    layer_frame,
    score_tables,
    stored_like,
    with_stored,
    with_twins,
)
from probes.boards.leaderboard_csv import tidy, write_leaderboard
from probes.boards.paired import LayerScore, layer_scores
from probes.common.collection import seldom_collected
from probes.common.errors import UserError, printable
from probes.common.files import folder_name, require_writable
from probes.common.locks import SUFFIX, locked, sweep_locks
from probes.common.terminal import losing_output, output_console, progress
from probes.data.find import find_corpus
from probes.data.sources import Source
from probes.engines.config import RunConfig, validate
from probes.engines.inputs import LazyCorpus, Subject, find_models
from probes.engines.plan import Plan, make_plan
from probes.examples.scoring import require_metrics
from probes.extraction.model_files import ModelSource
from probes.measurements.plugins import included_tasks
from probes.records.files import read_arrays
from probes.records.result import Result
from probes.rendering.folder import write_tables
from probes.rendering.terminal import print_table
from probes.tasks.builtin import STANDARD, expanded, tasks
from probes.tasks.columns import task_of
from probes.tasks.task import Task

if TYPE_CHECKING:
    from probes.examples.examples import NotServedError

RUNS = "runs"
"""Folder beside the results that holds the logs of runs."""


@dataclass(frozen=True)
class Results:
    """What a run found, as pandas frames.

    Attributes:
        results: one record per model, corpus, task and probe family.
        skipped: tasks that the corpus does not serve, and why.
        failed: what is missing since a task or a plug-in failed, or predictions cannot be read,
            and why.
    """

    results: tuple[Result, ...]
    skipped: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Result]:
        return iter(self.results)

    def table(self, probe: str = "linear", model: str | None = None) -> pd.DataFrame:
        """Headline test scores: a row per layer, a column per task.

        Raises:
            UserError: several models were run and `model` does not say which is meant.
        """
        names = list(dict.fromkeys(result.model.name for result in self.results))
        if model is None and len(names) > 1:
            raise UserError(f"Several models were run; say which: {', '.join(names)}.")
        chosen = [r for r in self.results if model is None or r.model.name == model]
        return layer_frame(chosen, probe)

    @property
    def frame(self) -> pd.DataFrame:
        """Tidy rows, as in `leaderboard.csv`."""
        return tidy(self.results)


def run_probes(
    model: str | os.PathLike[str] | Sequence[str] | tuple[Any, Any],
    *,
    name: str | None = None,
    **settings: Any,
) -> Results:
    """Probe one or more models.

    Args:
        model: a name as `--model` takes it, several, or a pair (model, tokenizer) in memory.
        name: what tables call a model in memory.
        **settings: the fields of `probes.engines.config.RunConfig`, e.g. ``corpus="sample"``,
            ``tasks=("pos",)``, ``seeds=3``.

    Returns:
        the results, also written below `output`.

    Raises:
        UserError: something that the caller can put right.
    """
    config = validate(settings)
    names = [model] if isinstance(model, (str, os.PathLike)) else model
    if isinstance(names, (list, tuple)) and all(isinstance(n, (str, os.PathLike)) for n in names):
        models = find_models([os.fspath(n) for n in names], config)
        subjects = [Subject(found, config) for found in models]
    else:
        config, subject = _in_memory(model, name, config)
        subjects = [subject]
    return run_models(config, find_corpus(*config.corpus, **config.corpus_request), subjects)


def _in_memory(model: Any, name: str | None, config: RunConfig) -> tuple[RunConfig, Subject]:
    """The subject for a pair (model, tokenizer), and the settings with its own precision."""
    try:
        network, tokenizer = model
        dtype = str(network.dtype).removeprefix("torch.")
    except (TypeError, ValueError, AttributeError) as error:
        raise UserError(
            "run_probes() takes a name, several names, or a pair (model, tokenizer)."
        ) from error
    if "dtype" in config.model_fields_set and config.dtype != dtype:
        raise UserError(f"dtype={config.dtype}: the model in memory is in {dtype}; convert it.")
    config = config.model_copy(update={"dtype": dtype})
    from probes.extraction.encoder import Encoder

    label = printable(name or type(network).__name__)
    encoder = Encoder(network, tokenizer, name=label, device=config.device)
    digest = encoder.info.digest
    slug = f"{folder_name(label)}-{digest[:8]}"
    source = ModelSource(label, Path(), digest[:12], slug, None, digest)
    return config, Subject(source, config, loaded=encoder)


def run_models(
    config: RunConfig, source: Source, subjects: Sequence[Subject], command: str = ""
) -> Results:
    """Probe every model on the corpus `source`; write and print what is found.

    Torch is imported, and the corpus parsed, only if something remains to be computed.
    """
    require_writable(config.output)
    asked = config.model_dump(mode="json")
    models = [subject.source.name for subject in subjects]
    recorded = progress.recorded(
        config.output / RUNS, version=__version__, command=command, models=models, config=asked
    )
    with recorded as log, seldom_collected():
        progress.detail(f"log     {log}")
        return _run(config, source, subjects, command)


def _run(config: RunConfig, source: Source, subjects: Sequence[Subject], command: str) -> Results:
    corpus = LazyCorpus(source)
    chosen, skipped, failed = _choose_tasks(config, corpus)
    plans = [make_plan(config, subject.source, source, chosen) for subject in subjects]
    if any(plan.todo for plan in plans):
        _prepare(config)
    found = [list(plan.done) for plan in plans]
    unserved: dict[str, NotServedError] = {}
    try:
        for subject, plan, results in zip(subjects, plans, found, strict=True):
            if plan.done:
                name, n_done = subject.source.name, len(plan.done)
                progress.say(f"{name}: {n_done} results are there already", "present", model=name)
            if plan.todo:
                from probes.engines.local import Session

                session = Session(config, subject, corpus, plan, command, skipped, unserved, failed)
                for result in session.work_off():
                    results.append(result)
    finally:
        # Whatever stops a run, what it finished is on the table.
        tables = _write_tables(subjects, plans, found)
        if any(found):
            progress.say(f"wrote   {write_leaderboard(config.output)}", "wrote")
        for folder in (config.cache_dir / "vectors", *(plan.folder for plan in plans)):
            sweep_locks(folder)
        comparisons = _compare_models(plans, found, failed)
        # Last, when all is on disk: what they go to may be gone.
        with losing_output():
            console = output_console(progress.quiet)
            scores = [table for results in tables for table in score_tables(results)]
            for table in (*scores, *comparison_tables(comparisons)):
                print_table(table, console)
        if any(found):
            failed |= {what: str(error) for what, error in unserved.items()}
        for what, why in failed.items():
            progress.insist(f"missing {what}: {why}")
    if unserved and not any(found):
        raise UserError(" ".join(dict.fromkeys(map(str, unserved.values()))))
    return Results(tuple(result for results in found for result in results), skipped, failed)


def _write_tables(
    subjects: Sequence[Subject], plans: Sequence[Plan], found: Sequence[Sequence[Result]]
) -> list[list[Result]]:
    """Write each model's tables, its random twins' scores among the baselines.

    Returns:
        what is to be printed: the results of each model that is not another's twin.
    """
    tables = []
    for subject, plan, results in zip(subjects, plans, found, strict=True):
        if not results:
            continue
        twins = [
            twin
            for other, its_plan in zip(subjects, plans, strict=True)
            if other.source.is_twin_of(subject.source)
            for twin in stored_like(its_plan.folder, results[0], other.source.digest).values()
        ]
        # Else of two runs that end at once the one that looked first might write last.
        with locked(plan.folder / f"layers{SUFFIX}"):
            table = with_twins(with_stored(plan.folder, results), twins)
            paths = write_tables(plan.folder, table)
        if not any(subject.source.is_twin_of(other.source) for other in subjects):
            tables.append(table)
        progress.say("wrote   " + ", ".join(str(path) for path in paths), "wrote")
    return tables


def _compare_models(
    plans: Sequence[Plan], found: Sequence[Sequence[Result]], failed: dict[str, str]
) -> list[Comparison]:
    """Models against each other; predictions that cannot be read are added to `failed`."""
    paths_by_key = {key: path for plan in plans for key, path in plan.paths.items()}

    def score_of(result: Result) -> LayerScore:
        path = paths_by_key[result.key]
        try:
            read_arrays(path)  # which a run's own results must have
            (score,) = layer_scores(result, path, [result.best_layer])
        except UserError as error:
            unit = f"{result.model.name} · {result.task.name} · {result.probe.family}"
            failed[f"{unit} in the comparison"] = str(error)
            raise
        return score

    return compare([result for results in found for result in results], score_of)


def _prepare(config: RunConfig) -> None:
    """What can be checked and set before anything is computed.

    Raises:
        UserError: there is no such device.
    """
    import torch

    from probes.compute.devices import MAP, pick_device

    if config.threads is not None:
        torch.set_num_threads(config.threads)
    if config.device != MAP:
        pick_device(config.device)


def _choose_tasks(
    config: RunConfig, corpus: LazyCorpus
) -> tuple[list[Task], dict[str, str], dict[str, str]]:
    """The tasks to run; those that the corpus does not serve, and those that cannot be scored.

    Raises:
        UserError: a task asked for by name cannot be served or scored, or none can.
    """
    own = {name: task_of(column) for name, column in corpus.source.columns.items()}
    default = (*own, "standard", *included_tasks(config.include))
    names = expanded(config.tasks or default, own)
    wanted = [own[name] if name in own else tasks.get(name) for name in names]
    chosen, skipped, failed = [], {}, {}
    for task in wanted:
        try:
            require_metrics(task)
        except UserError as error:
            if task.name in config.tasks:
                raise
            failed[task.name] = str(error)
            continue
        if lacking := task.missing(corpus.layers):
            skipped[task.name] = f"{corpus.source.name} has no {' or '.join(lacking)}"
        else:
            chosen.append(task.on(corpus.layers))
    for name, why in skipped.items():
        if name in config.tasks:
            raise UserError(
                f"--tasks {name}: {why}, which it needs; leave it out, or choose another --corpus."
            )
        # Of the user's own data nobody expects what the standard tasks read.
        if not own or name not in STANDARD:
            progress.say(f"skipped {name}: {why}", "skipped", task=name)
    if not chosen:
        why = "; ".join(f"{name}: {reason}" for name, reason in {**skipped, **failed}.items())
        raise UserError(f"--corpus {corpus.source.name} serves no task ({why}).")
    return chosen, skipped, failed
