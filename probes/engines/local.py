"""Runs the plan of one model on one corpus in this process."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from probes import __version__
from probes.common.errors import UserError
from probes.common.locks import SUFFIX, BusyError, locked
from probes.common.terminal import progress
from probes.compute.memory import explain_out_of_memory
from probes.engines.announcements import (
    announce_fit,
    announce_task,
    announce_vectors,
    corpus_counts,
)
from probes.engines.config import RunConfig
from probes.engines.inputs import LazyCorpus, LazyModel
from probes.engines.memory_check import require_memory
from probes.engines.omissions import Omissions
from probes.engines.plan import FitUnit, Plan, remaining
from probes.examples.breakdowns import marked_by_pieces
from probes.examples.examples import Examples, NotServedError, collect_examples
from probes.extraction.encoding import open_or_encode
from probes.extraction.store import StoreKey, Vectors
from probes.extraction.views import View, ViewName
from probes.measurements.plugin_keys import plug_ins_of, plugin_failure
from probes.measurements.probing import Outcome, encoding_record, probe
from probes.records.files import write_result
from probes.records.header import CorpusRecord, TaskRecord
from probes.records.provenance import provenance
from probes.records.result import SCHEMA_VERSION, Result
from probes.tasks.task import Task
from probes.tasks.validation import TaskError


@dataclass
class LocalRun:
    """Encodes each view once, then fits and writes every unit that remains.

    Attributes:
        command: the command line, for the results' provenance; empty for a run from Python.
        omissions: what turns out not to be served, or fails, is added here.
    """

    config: RunConfig
    model: LazyModel
    corpus: LazyCorpus
    plan: Plan
    command: str
    omissions: Omissions

    def run(self) -> Iterator[Result]:
        """Compute the units of the plan; each result is written as soon as it is done.

        Raises:
            UserError: `--layers` names a layer that the model does not have, `--project` is wider
                than its vectors, or `--memory` is less than a unit needs.
        """
        if not self.plan.todo:
            return
        encoder, config = self.model.encoder, self.config
        if (highest := max(config.layers, default=0)) > encoder.info.n_layers:
            name = self.model.source.name
            raise UserError(f"--layers {highest}: {name} has layers 0 to {encoder.info.n_layers}.")
        if (config.project or 0) > encoder.info.hidden_size:
            raise UserError(
                f"--project {config.project}: the vectors of {self.model.source.name} have only "
                f"{encoder.info.hidden_size} dimensions; give at most that."
            )
        require_memory(config, encoder, self.corpus.value, self.plan.todo, self._hidden_view)
        # Units that another run is computing come last; they may be done by then.
        busy = yield from self._compute(self.plan.todo, wait=False)
        yield from self._compute(busy, wait=True)
        self.model.release()

    @property
    def _hidden_view(self) -> ViewName:
        """The view of examples that hide a word: masked if the model has a mask token."""
        return "cut" if self.model.encoder.words.mask_id is None else "masked"

    def _compute(
        self, units: Sequence[FitUnit], *, wait: bool
    ) -> Generator[Result, None, list[FitUnit]]:
        """Yield the results of `units`.

        Args:
            wait: whether to wait for units that another run is computing.

        Returns:
            the units that another run is computing, if they are not waited for.
        """
        busy: list[FitUnit] = []
        plain: tuple[View, Vectors] | None = None
        for task, units_of_task in groupby(units, key=lambda unit: unit.task):
            examples = self._examples(task)
            if examples is None:
                continue
            if examples.view == "plain":
                encoded = plain = plain or self._vectors(examples)
            else:
                encoded = self._vectors(examples)
            for unit in units_of_task:
                try:
                    result = self._fit_once(unit, wait, examples, *encoded)
                except BusyError:
                    busy.append(unit)
                except TaskError as error:
                    self._fail(unit.title, str(error))
                except Exception as error:
                    why = plugin_failure(error, unit.task, unit.probe.family)
                    if not why:
                        raise
                    # The plug-in may have written to them.
                    encoded[1].forget_derived()
                    self._fail(unit.title, why)
                else:
                    yield result
        return busy

    def _examples(self, task: Task) -> Examples | None:
        """The examples of a task; None if it is not served or fails, which is reported."""
        corpus = self.corpus.value
        try:
            found = collect_examples(task, corpus, self._hidden_view)
            found = marked_by_pieces(found, self.model.encoder.words)
        except NotServedError as error:
            asked_for = task.name in (*self.config.tasks, *self.config.task_from)
            if asked_for or corpus.limited:
                self.omissions.not_served(self.model.source.name, task.name, str(error))
            else:
                self.omissions.skip(task.name, str(error))
            return None
        except TaskError as error:
            self._fail(task.name, str(error))
            return None
        announce_task(found)
        return found

    def _fail(self, what: str, why: str) -> None:
        self.omissions.fail(self.model.source.name, what, why)

    def _vectors(self, examples: Examples) -> tuple[View, Vectors]:
        """The view that the task's examples read, encoded unless it is stored already."""
        encoder, config = self.model.encoder, self.config
        view = examples.view_of(self.corpus.value)
        key = StoreKey(self.model.source.digest, view.digest, config.pooling, config.dtype)
        clock = time.perf_counter()
        remedy = "use --dtype bfloat16, another --device, or free some memory."
        with explain_out_of_memory(f"encoding {encoder.info.name}", remedy):
            vectors = open_or_encode(
                config.cache_dir, key, view, encoder, config.batch_tokens, self.corpus.source.name
            )
        announce_vectors(view, vectors, time.perf_counter() - clock)
        return view, vectors

    def _fit_once(
        self, unit: FitUnit, wait: bool, examples: Examples, view: View, vectors: Vectors
    ) -> Result:
        """The unit's result, computed here unless another run has computed it meanwhile.

        Raises:
            BusyError: another run is computing it, and `wait` is false.
        """
        lock = unit.path.with_suffix(SUFFIX)
        with locked(lock, waiting=f"for another run to fit {unit.title}", wait=wait):
            left = remaining(unit, recompute=self.config.overwrite == "always")
            if isinstance(left, Result):
                progress.say(f"read    {unit.title} · another run has computed it", "read")
                return left
            return self._fit(left, examples, view, vectors)

    def _fit(self, unit: FitUnit, examples: Examples, view: View, vectors: Vectors) -> Result:
        layers = unit.layers or tuple(range(vectors.n_layers))
        with progress.bar(unit.title, total=len(layers), unit="layer") as bar:
            outcome = probe(
                examples,
                view,
                vectors,
                unit.probe,
                layers,
                unit.n_seeds,
                self.model.encoder.device,
                self.config.memory,
                unit.quick,
                self.config.project,
                self.config.fit_dtype,
                on_layers=bar.update,
            )
        result = self._record(unit, examples, vectors, outcome)
        write_result(unit.path, result, outcome.arrays)
        announce_fit(result, unit.path)
        return result

    def _record(
        self, unit: FitUnit, examples: Examples, vectors: Vectors, outcome: Outcome
    ) -> Result:
        """The outcome with everything that it depends on."""
        encoder, source, corpus = self.model.encoder, self.corpus.source, self.corpus.value
        task = examples.task
        sentences, words = corpus_counts(corpus)
        return Result(
            schema_version=SCHEMA_VERSION,
            suite_version=__version__,
            key=unit.key,
            model=encoder.info,
            corpus=CorpusRecord(
                name=corpus.name,
                version=corpus.version,
                licence=corpus.licence,
                citation=source.citation,
                silver=tuple(sorted(source.silver)),
                digest=source.digest,
                fingerprint=corpus.fingerprint,
                sentences=sentences,
                words=words,
                notes=dict(corpus.notes),
                limit=self.config.limit,
                limited=corpus.limited,
            ),
            task=TaskRecord(
                name=task.name,
                version=task.version,
                needs=task.needs,
                kind=task.kind,
                shape=task.shape,
                metric=task.metric,
            ),
            view=examples.view,
            pooling=self.config.pooling,
            dtype=self.config.dtype,
            fit_dtype=self.config.fit_dtype,
            probe=unit.probe,
            plug_ins=plug_ins_of(task, unit.probe.family),
            project=self.config.project,
            probe_parameters=outcome.probe_parameters,
            quick=unit.quick,
            control=outcome.control,
            examples=outcome.examples,
            group_metric=outcome.group_metric,
            layers=outcome.layers,
            baselines=outcome.baselines,
            references=outcome.references,
            code=outcome.code,
            localisation=outcome.localisation,
            encoding=encoding_record(vectors.manifest),
            seconds=outcome.seconds,
            provenance={
                **provenance(self.command or "python", encoder.device),
                **({"remote code": "ran"} if encoder.remote_code else {}),
            },
        )
