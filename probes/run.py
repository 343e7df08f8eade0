"""Works a plan off: encode, fit, write, tabulate. Also the Python interface."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from rich.console import Console

from common.errors import UserError
from data.sentence import Corpus
from data.sources import Source, find_corpus
from probes import __version__
from probes.config import RunConfig
from probes.encoder import BATCH_TOKENS, Encoder, load_encoder
from probes.examples import Examples, collect_examples
from probes.leaderboard import tidy, write_leaderboard
from probes.models import ModelSource, find_models
from probes.plan import FitUnit, Plan, make_plan
from probes.probing import (
    corpus_counts,
    encoding_record,
    probe,
    provenance,
    require_metrics,
)
from probes.results import (
    SCHEMA_VERSION,
    CorpusRecord,
    ModelRecord,
    Result,
    TaskRecord,
    write_result,
)
from probes.store import StoreKey, Vectors, open_or_encode
from probes.tables import comparable, layer_table, print_tables, write_tables
from probes.terminal import progress
from probes.views import View, ViewName
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


@dataclass
class Subject:
    """A model to probe: found, and loaded when it is first needed."""

    source: ModelSource
    config: RunConfig
    loaded: Encoder | None = None

    @cached_property
    def encoder(self) -> Encoder:
        """The model, on its device."""
        if self.loaded is not None:
            return self.loaded
        clock = time.perf_counter()
        encoder = load_encoder(
            self.source,
            device=self.config.device,
            dtype=self.config.dtype,
            trust_remote_code=self.config.trust_remote_code,
        )
        info = encoder.info
        progress.say(
            f"model   {info.name} · {info.architecture} · {info.n_layers} layers × "
            f"{info.hidden_size} · {info.parameters / 1e6:.1f} M parameters · window {info.window} "
            f"· {encoder.device} · loaded in {time.perf_counter() - clock:.1f} s"
        )
        return encoder


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
        session = _Session(config, subject, corpus, plan, command)
        found = [*plan.done, *session.work_off()]
        table = comparable(plan.folder, found)
        paths = write_tables(plan.folder, table)
        print_tables(table, console)
        progress.say("wrote   " + ", ".join(str(path) for path in paths))
        results += found
    progress.say(f"wrote   {write_leaderboard(config.output)}")
    return Results(tuple(results), skipped)


@dataclass
class LazyCorpus:
    """A corpus that is read when it is first looked into."""

    source: Source

    @cached_property
    def value(self) -> Corpus:
        """The sentences; counts and fingerprint are printed."""
        clock = time.perf_counter()
        corpus = self.source.load()
        sentences, words = corpus_counts(corpus)
        progress.say(
            f"corpus  {corpus.name} {corpus.version} ({corpus.licence}) · "
            f"{_per_split(sentences)} sentences, {_per_split(words)} words · fingerprint "
            f"{corpus.fingerprint[:16]} · read in {time.perf_counter() - clock:.1f} s"
        )
        for what, count in corpus.notes.items():
            progress.say(f"        {what}: {count:,}")
        return corpus


def _per_split(counts: dict[str, int]) -> str:
    return " / ".join(f"{count:,}" for count in counts.values())


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


@dataclass
class _Session:
    """One model on one corpus: encodes each view once, fits every unit that remains."""

    config: RunConfig
    subject: Subject
    corpus: LazyCorpus
    plan: Plan
    command: str

    def work_off(self) -> Iterator[Result]:
        """Compute the plan's units, writing each result the moment it is done.

        Raises:
            UserError: a layer was asked for that the model does not have.
        """
        if not self.plan.todo:
            return
        n_blocks, asked = self.subject.encoder.info.n_layers, max(self.config.layers, default=0)
        if asked > n_blocks:
            name = self.subject.source.name
            raise UserError(f"--layers {asked}: {name} has layers 0 to {n_blocks}.")
        plain: tuple[View, Vectors] | None = None
        for task, units in groupby(self.plan.todo, key=lambda unit: unit.task):
            examples = self._examples(task)
            if examples.view == "plain":
                encoded = plain = plain or self._vectors(examples)
            else:
                encoded = self._vectors(examples)
            for unit in units:
                yield self._fit(unit, examples, *encoded)

    def _examples(self, name: str) -> Examples:
        has_mask = self.subject.encoder.words.mask_id is not None
        hides: ViewName = "masked" if has_mask else "cut"
        found = collect_examples(tasks.get(name), self.corpus.value, hides)
        counts = {split: len(part.examples) for split, part in found.splits.items()}
        message = f"task    {name} · {_per_split(counts)} examples"
        if found.classes:
            message += f" · {len(found.classes)} labels in train"
        excluded = found.splits["test"].excluded
        if excluded:
            reasons = ", ".join(f"{reason} {n}" for reason, n in sorted(excluded.items()))
            message += f" · left out of test: {reasons}"
        progress.say(message)
        return found

    def _vectors(self, examples: Examples) -> tuple[View, Vectors]:
        encoder = self.subject.encoder
        view = examples.view_of(self.corpus.value)
        key = StoreKey(
            self.subject.source.digest, view.digest, self.config.pooling, self.config.dtype
        )
        batch_tokens = self.config.batch_tokens or BATCH_TOKENS.get(encoder.device.type, 8192)
        clock = time.perf_counter()
        vectors = open_or_encode(self.config.cache_dir, key, view, encoder, batch_tokens)
        progress.say(
            f"vectors {view.name} view · {vectors.manifest['rows']:,} words × "
            f"{vectors.n_layers} layers, {vectors.manifest['storage']} · "
            f"{vectors.manifest['unknown_words']} words without a subword · "
            f"{time.perf_counter() - clock:.1f} s"
        )
        return view, vectors

    def _fit(self, unit: FitUnit, examples: Examples, view: View, vectors: Vectors) -> Result:
        layers = unit.layers or tuple(range(vectors.n_layers))
        what = f"{unit.task} · {unit.probe.family}"
        with progress.bar(what, total=len(layers), unit="layer") as bar:
            outcome = probe(
                examples,
                view,
                vectors,
                unit.probe,
                layers,
                unit.n_seeds,
                self.subject.encoder.device,
                on_layers=bar.update,
            )
        corpus, task = self.corpus.value, examples.task
        sentences, words = corpus_counts(corpus)
        result = Result(
            schema_version=SCHEMA_VERSION,
            suite_version=__version__,
            key=unit.key,
            model=ModelRecord(**vectors.manifest["model"]),
            corpus=CorpusRecord(
                name=corpus.name,
                version=corpus.version,
                licence=corpus.licence,
                digest=self.corpus.source.digest,
                fingerprint=corpus.fingerprint,
                sentences=sentences,
                words=words,
                notes=dict(corpus.notes),
                limit=self.config.limit,
            ),
            task=TaskRecord(
                name=task.name,
                version=task.version,
                kind=task.kind,
                shape=task.shape,
                metric=task.metric,
            ),
            view=examples.view,
            pooling=self.config.pooling,
            dtype=self.config.dtype,
            probe=unit.probe,
            probe_parameters=outcome.probe_parameters,
            examples=outcome.examples,
            group_metric=outcome.group_metric,
            layers=outcome.layers,
            baselines=outcome.baselines,
            references=outcome.references,
            encoding=encoding_record(vectors.manifest),
            seconds=outcome.seconds,
            provenance=provenance(self.command or "python"),
        )
        write_result(unit.path, result, outcome.arrays)
        seconds = " + ".join(f"{name} {value:.1f}" for name, value in outcome.seconds.items())
        covered = outcome.examples.covered_sentences
        progress.say(
            f"fitted  {what} · best layer {result.best_layer.layer} · {seconds} s"
            + (f" · {task.metric} covers {covered:,} test sentences" if covered else "")
        )
        return result
