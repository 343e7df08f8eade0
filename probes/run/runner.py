"""A runner makes the records of jobs; it neither reads nor writes records.

One model at a time is in memory. Examples, vectors and features stay from job to job.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch

from probes.common.errors import UserError, out_of_memory
from probes.common.terminal import progress
from probes.compute.devices import MAP, exact_products, pick_device
from probes.compute.memory import explain_out_of_memory
from probes.extraction.changing.sites import sites_of
from probes.frames.measurement_tables import require_drawable
from probes.measurements.context import ModelContext, PairContext, TaskContext
from probes.measurements.measurement import Measured, as_measured, measurements
from probes.records.parameters import Parameters, note_cache, write_parameters
from probes.records.probe_spec import PROBES
from probes.records.record import Record
from probes.records.record_files import Arrays, write_record
from probes.records.result import SCORES
from probes.run.corpus_reader import CorpusReader
from probes.run.job_record import record_of
from probes.run.jobs import Job, layers_of
from probes.run.model_run import ModelRun
from probes.run.settings import options_of


@dataclass(frozen=True)
class JobOutput:
    """A record with the arrays beside it, and the parameters that the cache keeps.

    Attributes:
        classes: what the outputs of probes are of.
    """

    record: Record
    arrays: Arrays
    parameters: Parameters
    classes: Sequence[str] = ()

    def write(self, run: ModelRun, job: Job) -> None:
        """Write it, the record last, since where it is everything else has to be."""
        cache = run.config.cache_dir
        if self.parameters:
            try:
                write_parameters(cache, self.record, self.parameters, self.classes)
                note_cache(job.path.parent, cache)
            except UserError as error:
                progress.say(f"parameters of {job.title} are not kept: {error}")
        write_record(job.path, self.record, self.arrays)


class Runner:
    """Makes records of the models of a run, one of which is loaded at a time."""

    def __init__(self, runs: Sequence[ModelRun]) -> None:
        self._runs = {run.name: run for run in runs}
        self._readers: dict[str, CorpusReader] = {}
        config = runs[0].config
        if config.threads_per_process is not None:
            torch.set_num_threads(config.threads_per_process)
        if config.device != MAP:
            pick_device(config.device)

    def make(self, job: Job) -> JobOutput:
        """Make the record of a job that has its inputs.

        Raises:
            LeftOutError: it cannot be made, which stops no other job.
            UserError: `--layers` names a layer that the model does not have, `--project` is wider
                than its vectors, or the disk is too small.
        """
        run = self._runs[job.model]
        reader = self._only_reader(run)
        try:
            return self._made(run, reader, job)
        except Exception as error:
            left_out = run.left_out(job, error)
            if left_out is None or left_out is error:
                raise
            # A plug-in may have written to them.
            reader.forget_features()
            raise left_out from error

    def _made(self, run: ModelRun, reader: CorpusReader, job: Job) -> JobOutput:
        scores = job.scores.get(job.of)
        reader.require_served(run.task(job.task), job.measurement)
        run.require_head(job)
        layers = {*_layers(run), *job.extent, *(scores.layers if scores else ())}
        reader.need(run.layers_read(layers))
        context, clock = self._context(run, reader, job), time.perf_counter()
        measured = _measure_in_groups(job, context)
        seconds = {"measure": time.perf_counter() - clock}
        record = record_of(run, reader, job, context, measured, seconds, scores)
        if measurements.origin(job.measurement) is not None:
            # A plug-in's record that cannot be shown fails before it is written.
            require_drawable(job.definition, scores.with_evidence(record) if scores else record)
        classes = context.examples.classes if isinstance(context, TaskContext) else ()
        return JobOutput(record, measured.arrays, measured.parameters, classes)

    def _only_reader(self, run: ModelRun) -> CorpusReader:
        """The reader of a run; the models of the others are released."""
        for name, reader in self._readers.items():
            if name != run.name:
                reader.release()
        return self._reader(run)

    def _reader(self, run: ModelRun) -> CorpusReader:
        return self._readers.setdefault(run.name, CorpusReader.of(run))

    def close(self) -> None:
        """Let go of models and stores."""
        for reader in self._readers.values():
            reader.model.close()
        self._readers.clear()

    # Contexts of measurements.

    def _context(self, run: ModelRun, reader: CorpusReader, job: Job) -> ModelContext:
        if job.task:
            return _task_context(run, reader, job)
        attributes = _of_model(reader, job)
        if job.definition.of == "pair" and run.base is not None:
            base = _base_context(run.base, self._reader(run.base), job)
            return PairContext(**attributes, base=base)
        tasks = [
            _task_context(
                run,
                reader,
                replace(
                    score_job,
                    extent=dict.fromkeys(scores.layers, 1),
                    scores=job.scores,
                    predictions=job.predictions,
                ),
            )
            for score_job in run.jobs(SCORES)
            if (scores := job.scores.get(score_job.of))
        ]
        return ModelContext(**attributes, tasks=tuple(tasks))


def _layers(run: ModelRun) -> tuple[int, ...]:
    """The layers that are asked for, after checking that the model serves the settings."""
    # Jobs were planned by config.json alone, before the model was loaded.
    info = run.model.description.info
    if info.n_layers != run.n_layers:
        raise UserError(
            f"--model {run.name}: config.json names {run.n_layers} layers, and the model has "
            f"{info.n_layers}; correct it."
        )
    if (run.config.project or 0) > info.hidden_size:
        raise UserError(
            f"--project {run.config.project}: the vectors of {run.name} have "
            f"only {info.hidden_size} dimensions; give at most that."
        )
    return layers_of(run.config, info.n_layers, run.name)


def _task_context(run: ModelRun, reader: CorpusReader, job: Job) -> TaskContext:
    task = run.task(job.task)
    assert task is not None
    # First, since its errors say that the task is at fault, not this job.
    data = reader.data(task)
    # Reading them is in vain for other measurements than transfer.
    corpora = [other.corpus for other in run.elsewhere if job.trained]
    elsewhere = {corpus.source.name: corpus.value for corpus in corpora}
    return TaskContext(
        **_of_model(reader, job),
        data=data,
        spec=PROBES[job.family],
        memory=reader.memory,
        scores=job.scores.get(job.of),
        predictions=job.predictions.get(job.of),
        cache=run.config.cache_dir,
        trained=job.trained,
        elsewhere=elsewhere,
        negatives=partial(reader.negatives_of, task) if reader.negatives else None,
    )


def _of_model(reader: CorpusReader, job: Job) -> dict[str, Any]:
    """The attributes that all contexts have."""
    key = reader.reading_key(job)
    return {
        "corpus": reader.corpus.value,
        "model": reader.description.info,
        "extent": job.extent,
        "view": reader.view(key),
        "stored": reader.stored(key),
        "read": reader.read,
        "read_changed": reader.read_changed,
        "sites": lambda: sites_of(reader.model.encoder.model),
        "device": reader.description.device,
        "options": options_of(reader.config, job.measurement),
        "title": job.title,
        "tokenizer": reader.words,
        "language_model": lambda: reader.model.language_model,
    }


def _base_context(base: ModelRun, reader: CorpusReader, job: Job) -> ModelContext:
    """The context of a base: the layers of its own that are asked for, and those of the extent."""
    n_layers = reader.description.info.n_layers
    layers_of_run = layers_of(base.config, n_layers, base.name)
    layers = sorted({*layers_of_run, *(layer for layer in job.extent if layer <= n_layers)})
    reader.need(layers)
    context = ModelContext(**_of_model(reader, replace(job, extent=dict.fromkeys(layers, 1))))
    reader.release()  # its vectors are enough
    return context


@exact_products()
def _measure_in_groups(job: Job, context: ModelContext) -> Measured:
    """Findings of a job; layers are fitted in smaller groups if memory runs out."""
    activity = f"measuring {job.title}"
    of_task = isinstance(context, TaskContext)
    less = "--limit, --project or --layers" if of_task else "--limit or --layers"
    with explain_out_of_memory(activity, f"use {less}, or free some memory."):
        while True:
            try:
                return as_measured(job.definition(context))
            except (MemoryError, RuntimeError) as error:
                if not out_of_memory(error) or not isinstance(context, TaskContext):
                    raise
                if context.has_least_groups:
                    raise
            # Outside the handler: the error would keep tensors alive.
            context = replace(context, memory=context.memory // 2)
            progress.say(
                f"not enough memory; {activity} continues with {context.memory / 1e6:,.0f} MB",
                "fewer layers at once",
                memory=context.memory,
            )
