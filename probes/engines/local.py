"""Computes units in this process."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch

from probes import __version__
from probes.common.errors import UserError, out_of_memory
from probes.common.locks import SUFFIX, BusyError, locked
from probes.common.terminal import progress
from probes.compute.memory import default_budget, explain_out_of_memory
from probes.compute.precision import exact_products, fit_dtype_of
from probes.engines.announcements import (
    announce_record,
    announce_task,
    announce_vectors,
    corpus_counts,
)
from probes.engines.memory_check import require_memory
from probes.engines.plan import State, Unit, layers_of, state_of, stored
from probes.examples.breakdowns import marked_by_pieces
from probes.examples.examples import Examples, NotServedError
from probes.extraction.encoding import Reading, require_space, vectors_of, word_vectors
from probes.extraction.vectors import Vectors
from probes.extraction.views import View, ViewName, plain_view
from probes.measurements.corpus_context import CorpusContext
from probes.measurements.measurement import (
    CorpusMeasurement,
    Found,
    Number,
    ProbeMeasurement,
    get_measurement,
    measurements,
)
from probes.measurements.plugin_keys import measurement_plug_in, plug_ins_of, plugin_failure
from probes.measurements.probe_context import ProbeContext
from probes.measurements.scores import read_predictions
from probes.records.files import write_record
from probes.records.header import CorpusRecord, ModelRecord, TaskRecord
from probes.records.provenance import provenance
from probes.records.record import SCHEMA_VERSION, AnyRecord, Extent, Record
from probes.records.result import SCORES
from probes.tasks.task import Task
from probes.tasks.validation import TaskError
from probes.training.dataset import ProbingData

if TYPE_CHECKING:
    from probes.engines.model_run import ModelRun


@dataclass
class LocalEngine:
    """Encodes each view once, then computes and writes every unit that is handed to it.

    What is prepared for a task (examples, stored vectors, features) stays for its later units.
    """

    run: ModelRun
    _tasks: dict[str, tuple[ProbingData, Vectors] | None] = field(default_factory=dict)
    _views: dict[str, tuple[View, Vectors]] = field(default_factory=dict)
    _layers: tuple[int, ...] = ()

    def compute(
        self, units: Sequence[tuple[Unit, State]], *, wait: bool
    ) -> list[tuple[Unit, State]]:
        """Compute units and add their records to the run.

        Args:
            wait: whether to wait for units that another run is computing.

        Returns:
            the units that another run is computing, if they are not waited for.
        """
        if units:
            self._require_possible([unit for unit, _ in units])
            self._want_layers(units)
            require_space([self._reading(view) for view in self._views_of(units)])
        busy = []
        for unit, state in units:
            try:
                self._compute_once(unit, wait)
            except BusyError:
                busy.append((unit, state))
            except NotServedError as error:
                self.run.omissions.not_made(unit.title, str(error))
            except TaskError as error:
                self._fail(unit.title, str(error))
            except Exception as error:
                family = unit.probe.family if unit.probe else ""
                why = plugin_failure(error, unit.measurement, unit.task, family)
                if not why:
                    raise
                # The plug-in may have written to them.
                for _, vectors in self._views.values():
                    vectors.forget_derived()
                self._fail(unit.title, why)
        return busy

    def release(self) -> None:
        """Free the memory of the model, and of features; what was collected and encoded stays."""
        _ = self._info, self._device, self._runs_own_code, self.hidden_view
        for _view, vectors in self._views.values():
            vectors.forget_derived()
        self.run.model.release()

    def _require_possible(self, units: Sequence[Unit]) -> None:
        config, info = self.run.config, self._info
        layers_of(config, info.n_layers, self.run.model.source.name)
        if (config.project or 0) > info.hidden_size:
            raise UserError(
                f"--project {config.project}: the vectors of {self.run.model.source.name} have "
                f"only {info.hidden_size} dimensions; give at most that."
            )
        require_memory(self.run, units, info.hidden_size, self._device, self.hidden_view)

    def _want_layers(self, units: Sequence[tuple[Unit, State]]) -> None:
        """Read, from now on, the layers that these units may need."""
        asked = layers_of(self.run.config, self._info.n_layers, self.run.model.source.name)
        wanted = {*self._layers, *asked}.union(*(state.missing for _, state in units))
        wanted.update(*(result.extent for result in self.run.results.values()))
        if not wanted <= set(self._layers):
            self._layers = tuple(sorted(wanted))
            self._tasks.clear()
            self._views.clear()

    def _views_of(self, units: Sequence[tuple[Unit, State]]) -> list[View]:
        """The views that units read; those of tasks that turn out not to be served are left out."""
        found: dict[str, View] = {}
        for unit, _ in units:
            if unit.task is None:
                found.setdefault("plain", plain_view(self.run.corpus.value))
                continue
            try:
                examples = self.run.corpus.examples(unit.task, self.hidden_view)
            except (NotServedError, TaskError):
                continue  # reported when its turn comes
            name = "plain" if examples.view == "plain" else unit.task.name
            if name not in found:
                found[name] = examples.view_of(self.run.corpus.value)
        return list(found.values())

    def _reading(self, view: View) -> Reading:
        config = self.run.config
        return word_vectors(
            config.cache_dir,
            self._info,
            self.run.model.dtype,
            view,
            self._layers,
            config.pooling,
            self.run.corpus.source.name,
        )

    # What remains known of a model when its weights have been released.

    @cached_property
    def _info(self) -> ModelRecord:
        return self.run.model.encoder.info

    @cached_property
    def _device(self) -> torch.device:
        return self.run.model.encoder.device

    @cached_property
    def _runs_own_code(self) -> bool:
        return self.run.model.encoder.remote_code

    @cached_property
    def hidden_view(self) -> ViewName:
        """The view of examples that hide a word: masked if the model has a mask token."""
        return "cut" if self.run.model.encoder.words.mask_id is None else "masked"

    def _compute_once(self, unit: Unit, wait: bool) -> None:
        """Add the unit's record, computed here unless another run has computed it meanwhile.

        Raises:
            BusyError: another run is computing it, and `wait` is false.
        """
        lock = unit.path.with_suffix(SUFFIX)
        with locked(lock, waiting=f"for another run to measure {unit.title}", wait=wait):
            if unit.probe is not None and unit.measurement != SCORES:
                self.run.read_scores_again(unit)
            request = self.run.request(unit, None)
            assert request is not None
            recompute = self.run.config.overwrite == "always"
            state = state_of(unit, stored(unit), request, recompute=recompute)
            if not state.missing:
                if state.record is not None:
                    progress.say(f"read    {unit.title} · another run has computed it", "read")
                    self.run.keep(unit, state.record)
                return
            record = self._measure(unit, state.missing)
            if record is not None:
                self.run.keep(unit, record)

    def _measure(self, unit: Unit, extent: Extent) -> AnyRecord | None:
        """The record of a unit, written; None if the corpus does not serve its task after all."""
        clock = time.perf_counter()
        if unit.task is None:
            view, vectors = self._view("plain", plain_view(self.run.corpus.value))
            found = self._measure_corpus(unit, extent, view, vectors)
            view_name: str = view.name
        else:
            prepared = self._task(unit.task)
            if prepared is None:
                return None
            data, vectors = prepared
            view_name = data.examples.view
            clock = time.perf_counter()
            found = self._measure_probes(unit, extent, data)
        seconds = {"measure": time.perf_counter() - clock}
        record = self._record(unit, extent, found, view_name, vectors, seconds)
        self._require_describable(unit, record)
        write_record(unit.path, record, found.arrays)
        announce_record(record, unit.title, unit.path)
        return record

    def _require_describable(self, unit: Unit, record: AnyRecord) -> None:
        """Describe what a plug-in has found, so that it fails, if it does, before it is written."""
        its = get_measurement(unit.measurement)
        if measurements.origin(unit.measurement) is None:
            return
        for number in its.numbers(record):
            Number(*number)
        if isinstance(its, CorpusMeasurement):
            _ = its.table(record).texts
        elif isinstance(its, ProbeMeasurement) and unit.task and unit.probe:
            result = self.run.results[unit.task.name, unit.probe.family].with_evidence(record)
            for table in its.tables([result]):
                _ = table.texts
            its.curves({result.model.name: result})

    def _measure_corpus(
        self, unit: Unit, extent: Extent, view: View, vectors: Vectors
    ) -> Found[Any]:
        context = CorpusContext(
            corpus=self.run.corpus.value,
            model=self._info,
            layers=tuple(extent),
            view=view,
            stored=vectors,
            device=self._device,
            options=unit.options,
        )
        found: Found[Any] = get_measurement(unit.measurement).compute(context)  # type: ignore[attr-defined]
        return found

    @exact_products()
    def _measure_probes(self, unit: Unit, extent: Extent, data: ProbingData) -> Found[Any]:
        """Measure in groups of layers that fit in memory, in smaller ones if memory runs out."""
        assert unit.task
        assert unit.probe
        config, its = self.run.config, get_measurement(unit.measurement)
        scores = self.run.results.get((unit.task.name, unit.probe.family))
        if unit.measurement == SCORES:
            scores = None
        arrays = read_predictions(self.run.paths[scores.key]) if scores else None
        memory = config.memory or default_budget(data.device)
        what = f"measuring {unit.title}"
        with explain_out_of_memory(
            what, "use --limit, --project or --layers, or free some memory."
        ):
            while True:
                context = ProbeContext(
                    data=data,
                    spec=unit.probe,
                    extent=extent,
                    memory=memory,
                    title=unit.title,
                    options=unit.options,
                    scores=scores,
                    arrays=arrays,
                )
                try:
                    found: Found[Any] = its.compute(context)  # type: ignore[attr-defined]
                    return found
                except (MemoryError, RuntimeError) as error:
                    if not out_of_memory(error) or context.least_groups:
                        raise
                # Outside the handler: the error would keep tensors alive.
                memory //= 2
                progress.say(
                    f"not enough memory; {what} continues with {memory / 1e6:,.0f} MB",
                    "fewer layers at once",
                    memory=memory,
                )

    def _task(self, task: Task) -> tuple[ProbingData, Vectors] | None:
        """Data and stored vectors of a task; None if it is not served, which is reported."""
        if task.name not in self._tasks:
            self._tasks[task.name] = self._prepared(task)
        return self._tasks[task.name]

    def _prepared(self, task: Task) -> tuple[ProbingData, Vectors] | None:
        corpus, config, encoder = self.run.corpus.value, self.run.config, self.run.model.encoder
        try:
            examples = self.run.corpus.examples(task, self.hidden_view)
            examples = marked_by_pieces(examples, encoder.words)
        except NotServedError as error:
            asked_for = task.name in (*config.tasks, *config.task_from)
            if asked_for or corpus.limited:
                self.run.omissions.not_served(self.run.model.source.name, task.name, str(error))
            else:
                self.run.omissions.skip(task.name, str(error))
            return None
        except TaskError as error:
            self._fail(task.name, str(error))
            return None
        announce_task(examples)
        view, vectors = self._view_of(examples)
        data = ProbingData(
            examples,
            view,
            vectors,
            self._device,
            project=config.project,
            fit_dtype=fit_dtype_of(config.fit_dtype),
        )
        return data, vectors

    def _view_of(self, examples: Examples) -> tuple[View, Vectors]:
        if examples.view == "plain":
            return self._view("plain", plain_view(self.run.corpus.value))
        return self._view(examples.task.name, examples.view_of(self.run.corpus.value))

    def _view(self, name: str, view: View) -> tuple[View, Vectors]:
        """A view and its vectors, encoded unless they are stored already."""
        if name in self._views:
            return self._views[name]
        config, encoder = self.run.config, self.run.model.encoder
        clock = time.perf_counter()
        remedy = "use --dtype bfloat16, another --device, or free some memory."
        with explain_out_of_memory(f"encoding {encoder.info.name}", remedy):
            vectors = vectors_of(self._reading(view), encoder, config.batch_tokens)
        announce_vectors(view, vectors, len(self._layers), time.perf_counter() - clock)
        self._views[name] = view, vectors
        return view, vectors

    def _fail(self, what: str, why: str) -> None:
        self.run.omissions.fail(self.run.model.source.name, what, why)

    def _behind(self, unit: Unit) -> dict[int, float | None]:
        """The scores that a unit of evidence stands behind."""
        if unit.measurement == SCORES or unit.task is None or unit.probe is None:
            return {}
        return self.run.results[unit.task.name, unit.probe.family].headline

    def _record(
        self,
        unit: Unit,
        extent: Extent,
        found: Found[Any],
        view: str,
        vectors: Vectors,
        seconds: dict[str, float],
    ) -> AnyRecord:
        """What was found, with everything that it depends on."""
        config, task, probe = self.run.config, unit.task, unit.probe
        plug_ins = plug_ins_of(task, probe.family) if task and probe else ()
        return Record[Any](
            schema_version=SCHEMA_VERSION,
            suite_version=__version__,
            measurement=unit.measurement,
            measurement_version=get_measurement(unit.measurement).version,
            settings=unit.options.model_dump(mode="json"),
            key=unit.key,
            inputs=unit.inputs,
            extent=extent,
            behind=self._behind(unit),
            model=self._info,
            corpus=_corpus_record(self.run),
            task=_task_record(task) if task else None,
            view=view,
            pooling=config.pooling,
            dtype=self.run.model.dtype,
            fit_dtype=config.fit_dtype,
            probe=probe,
            plug_ins=(*plug_ins, *measurement_plug_in(unit.measurement)),
            project=config.project,
            encoding=vectors.encoding,
            seconds=seconds,
            provenance={
                **provenance(self.run.command or "python", self._device),
                **({"remote code": "ran"} if self._runs_own_code else {}),
            },
            arrays=tuple(sorted(found.arrays)),
            payload=found.payload,
        )


def _corpus_record(run: ModelRun) -> CorpusRecord:
    source, corpus = run.corpus.source, run.corpus.value
    sentences, words = corpus_counts(corpus)
    return CorpusRecord(
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
        limit=run.config.limit,
        limited=corpus.limited,
    )


def _task_record(task: Task) -> TaskRecord:
    return TaskRecord(
        name=task.name,
        version=task.version,
        needs=task.needs,
        kind=task.kind,
        shape=task.shape,
        metric=task.metric,
    )
