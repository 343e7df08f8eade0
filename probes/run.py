"""Works a plan off: encode, fit, write, tabulate. Also the Python interface."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from rich.console import Console

from common.errors import UserError
from data.sources import find_corpus
from probes.config import RunConfig
from probes.encoder import Encoder
from probes.leaderboard import tidy, write_leaderboard
from probes.models import ModelSource, find_models
from probes.plan import make_plan
from probes.results import Result
from probes.scoring import require_metrics
from probes.session import LazyCorpus, Session, Subject
from probes.tables import comparable, layer_table, print_tables, write_tables
from probes.terminal import progress
from tasks.builtin import tasks
from tasks.task import Task


@dataclass(frozen=True)
class Results:
    """What a run found, as pandas frames.

    Attributes:
        results: one record per model, corpus, task and probe family.
        skipped: tasks that the corpus does not serve, with the annotation that it lacks.
    """

    results: tuple[Result, ...]
    skipped: dict[str, tuple[str, ...]] = field(default_factory=dict)

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
        return layer_table(chosen, probe)

    @property
    def frame(self) -> pd.DataFrame:
        """Tidy rows, as in `leaderboard.csv`."""
        return tidy(self.results)


def run_probes(
    model: str | Sequence[str] | tuple[Any, Any],
    *,
    name: str | None = None,
    **settings: Any,
) -> Results:
    """Probe one or more models.

    Args:
        model: a name as `--model` takes it, several, or a pair (model, tokenizer) in memory.
        name: what tables call a model in memory.
        **settings: the fields of `probes.config.RunConfig`, e.g. ``corpus="sample"``,
            ``tasks=("pos",)``, ``seeds=3``.

    Returns:
        the results, also written below `output`.

    Raises:
        UserError: something that the caller can put right.
    """
    config = RunConfig(**settings)
    return run_models(config, _subjects(model, name, config))


def _subjects(model: Any, name: str | None, config: RunConfig) -> list[Subject]:
    names = [model] if isinstance(model, str) else model
    if isinstance(names, (list, tuple)) and all(isinstance(n, str) for n in names):
        return [Subject(source, config) for source in find_models(names, config)]
    try:
        network, tokenizer = model
    except (TypeError, ValueError) as error:
        raise UserError(
            "run_probes() takes a name, several names, or (model, tokenizer)."
        ) from error
    label = name or type(network).__name__
    encoder = Encoder(network, tokenizer, name=label, device=config.device)
    source = ModelSource(label, Path(), "in memory", False, 0, encoder.info.digest)
    return [Subject(source, config, loaded=encoder)]


def run_models(config: RunConfig, subjects: Sequence[Subject], command: str = "") -> Results:
    """Probe every model on the corpus of `config`; write and print what is found."""
    if config.threads is not None:
        torch.set_num_threads(config.threads)
    source = find_corpus(config.corpus, config.data_dir, config.limit)
    corpus = LazyCorpus(source)
    chosen, skipped = _choose_tasks(config, corpus)
    for task in chosen:
        require_metrics((task.metric, *task.also))
    console = Console(quiet=progress.quiet)
    results: list[Result] = []
    for subject in subjects:
        plan = make_plan(config, subject.source, source, [task.name for task in chosen])
        if plan.done:
            progress.say(f"{subject.source.name}: {len(plan.done)} results are there already")
        session = Session(config, subject, corpus, plan, command)
        found = [*plan.done, *session.work_off()]
        table = comparable(plan.folder, found)
        paths = write_tables(plan.folder, table)
        print_tables(table, console)
        progress.say("wrote   " + ", ".join(str(path) for path in paths))
        results += found
    progress.say(f"wrote   {write_leaderboard(config.output)}")
    return Results(tuple(results), skipped)


def _choose_tasks(
    config: RunConfig, corpus: LazyCorpus
) -> tuple[list[Task], dict[str, tuple[str, ...]]]:
    """The tasks to run, and those left out since the corpus lacks what they need.

    Raises:
        UserError: a task asked for by name cannot be served, or none can.
    """
    names = list(dict.fromkeys(config.tasks or tasks))
    wanted = [tasks.get(name) for name in names]
    lacking = {t.name: tuple(x for x in t.needs if x not in corpus.source.layers) for t in wanted}
    skipped = {name: layers for name, layers in lacking.items() if layers}
    for name, layers in skipped.items():
        why = f"{name}: not served by {corpus.source.name}, which has no {' or '.join(layers)}"
        if name in config.tasks:
            raise UserError(f"--tasks {why}; leave it out, or choose another --corpus.")
        progress.say(f"skipped {why}")
    chosen = [task for task in wanted if task.name not in skipped]
    if not chosen:
        raise UserError(f"--corpus {config.corpus} serves no task.")
    return chosen, skipped
