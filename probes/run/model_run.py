"""Jobs of one model on one corpus, and the records that are stored of them. No torch here."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from probes.common.errors import NoHeadError, UserError
from probes.examples.examples import NotServedError
from probes.extraction.reading.windows import window_rule
from probes.frames.joined_results import find_results
from probes.frames.record_validation import as_result, validated
from probes.measurements.measurement import (
    NEGATIVES_THRESHOLD,
    TRANSFER,
    EvidenceRequest,
    Request,
    corpus_measurements,
    get_measurement,
)
from probes.measurements.plugin_keys import digests, plug_ins_of, plugin_failure, source_of
from probes.measurements.trained_probes import Trained
from probes.probing.scores import read_predictions
from probes.records.parameters import read_parameters
from probes.records.probe_spec import PROBES
from probes.records.record import FitsPerLayer, Inputs, Record, record_key, record_name
from probes.records.record_files import Index, arrays_exist
from probes.records.result import SCORES, Result
from probes.run.config import RunConfig
from probes.run.inputs import LazyCorpus, LazyModel
from probes.run.jobs import Job, layers_of
from probes.run.settings import options_of
from probes.run.task_choice import LeftOutError, Omission, Omissions
from probes.tasks.task import Task, layers_at, plain_name
from probes.tasks.validation import TaskError
from probes.training.families import MULTI_LAYER, why_unfit


@dataclass(eq=False)
class ModelRun:
    """The jobs of one model on one corpus, and what is stored of them.

    Attributes:
        tasks: what probes predict; none if no probes are asked for.
        omissions: what is not served, or fails, is added here.
        index: the records that are there.
        command: the command line, for the records' provenance; empty for a run from Python.
        began: when the run began, in whichever process: `--overwrite always` keeps what is newer.
        negatives: the corpus of `--threshold-from`.
        several: whether it is one of several models.
        base: the run of the first model, with which this one is compared; None for itself.
        elsewhere: runs of this model on other corpora, whose probes are scored on this one.
        results: scores with their evidence, by task and probe family, as far as they are known.
        others: records of measurements of the corpus as a whole, by measurement.
    """

    config: RunConfig
    model: LazyModel
    corpus: LazyCorpus
    tasks: Sequence[Task]
    omissions: Omissions
    index: Index
    command: str
    began: datetime
    negatives: LazyCorpus | None = None
    several: bool = False
    base: ModelRun | None = None
    elsewhere: Sequence[ModelRun] = ()
    results: dict[tuple[str, str], Result] = field(default_factory=dict)
    others: dict[str, Record] = field(default_factory=dict)
    _jobs: dict[str, list[Job]] = field(default_factory=dict)
    _validated: dict[Path, Record] = field(default_factory=dict)
    _remembered: dict[Path, Record] = field(default_factory=dict)
    _made: set[Path] = field(default_factory=set)

    # Names.

    @property
    def name(self) -> str:
        """The model's name."""
        return self.model.source.name

    def title(self, job: Job) -> str:
        """The name that messages use for a job, with the model if there are several."""
        return f"{self.name} · {job.title}" if self.several else job.title

    def task(self, name: str) -> Task | None:
        """The task of a name; None for that of the corpus as a whole."""
        return next((task for task in self.tasks if task.name == name), None)

    @property
    def folder(self) -> Path:
        """Folder of the records of this model and corpus."""
        return self.config.output / self.model.source.slug / self.corpus.source.slug

    @property
    def stored_results(self) -> dict[Path, Result]:
        """All results of this model and corpus, of earlier runs too."""
        return find_results(self.folder, self.index.read)

    @property
    def n_layers(self) -> int:
        """The model's number of blocks; it is loaded only if nothing else says it."""
        # Vectors in files have no config.json; records spare reading them all.
        for record in (*self.results.values(), *self.others.values()):
            return record.model.n_layers
        return self.model.n_layers

    # What is to be made.

    @property
    def evidence(self) -> tuple[str, ...]:
        """Evidence to gather; of random twins what tests need, unless with full evidence."""
        names = self.config.evidence_names
        if self.model.is_twin and self.config.level != "full":
            return tuple(name for name in names if get_measurement(name).also_for_twins)
        return names

    @property
    def families(self) -> tuple[str, ...]:
        """Probe families to fit; of random twins linear probes alone, unless with full evidence."""
        families = self.config.probes
        if self.model.is_twin and self.config.level != "full" and "linear" in families:
            return ("linear",)
        return families

    def layers_read(self, layers: Collection[int]) -> Collection[int]:
        """The layers whose vectors are needed to measure some layers."""
        return range(max(layers) + 1) if MULTI_LAYER in self.families else layers

    @property
    def corpus_measurements(self) -> tuple[str, ...]:
        """The measurements of the corpus to make, those of pairs of models last."""
        names = self.config.about_corpus
        of_pairs = [x.name for x in corpus_measurements() if x.of == "pair" and x.after in names]
        return tuple(dict.fromkeys((*names, *of_pairs)))

    @property
    def other_measurements(self) -> tuple[str, ...]:
        """Everything beside scores: the evidence behind them, and measurements of the corpus."""
        return (*(self.evidence if self.tasks else ()), *self.corpus_measurements)

    def jobs(self, measurement: str, family: str = "") -> list[Job]:
        """The jobs of a measurement, whether they are done or not.

        There is one for each task and probe family, or one of the corpus as a whole; comparisons of
        two models only if there is a base.

        Args:
            family: of probes; empty for all.
        """
        if measurement not in self._jobs:
            self._jobs[measurement] = list(self._jobs_of(measurement))
        return [x for x in self._jobs[measurement] if not family or x.family in ("", family)]

    def _jobs_of(self, measurement: str) -> Iterator[Job]:
        definition = get_measurement(measurement)
        if definition.of == "task":
            for task in self.tasks:
                for family in dict.fromkeys(self.families):
                    yield self._job(
                        measurement,
                        task.name,
                        family,
                        # Scores stay valid if annotation changes that the task does not read.
                        corpus=self.corpus.source.digest_for(task.needs),
                        task=task.name,
                        task_version=task.version,
                        kind=task.kind,
                        probe=PROBES[family],
                        project=self.config.project,
                        plug_ins=digests(plug_ins_of(task, family)),
                        ranking=task.fpr and (task.metric, task.fpr),
                    )
        elif definition.spans_tasks:
            keys = sorted(job.key for job in self.jobs(SCORES, self.families[0]))
            yield self._job(measurement, scores=tuple(keys))
        elif definition.of == "model":
            yield self._job(measurement)
        elif self.base is not None:
            base = self.base.model
            yield self._job(measurement, base=f"{base.source.digest} {base.dtype}")

    def _job(self, measurement: str, task_name: str = "", family: str = "", **more: Any) -> Job:
        """A job with its key and path.

        Args:
            more: further inputs.
        """
        inputs = Inputs(
            model=self.model.source.digest,
            corpus=self.corpus.source.digest,
            pooling=self.config.pooling,
            dtype=self.model.dtype,
            windows=window_rule(self.model.source.maybe_causal),
            chats=self.model.chats,
            few_documents=self.corpus.has_few_documents,
        )
        digest = inputs.model_copy(update=more).digest
        settings = options_of(self.config, measurement).model_dump(mode="json")
        if measurement == TRANSFER:
            elsewhere = self._elsewhere(task_name, family).items()
            # A probe trained anew elsewhere is another probe, and needs another record.
            settings["trained"] = {corpus: job.key for corpus, (_, job) in elsewhere}
        if measurement in (NEGATIVES_THRESHOLD, TRANSFER) and self.negatives:
            settings["negatives"] = self.negatives.source.digest
        key = self.key_of(measurement, digest, settings)
        path = self.folder / record_name(task_name, family, measurement, key)
        return Job(self.name, measurement, task_name, family, digest, key, path, settings)

    @staticmethod
    def key_of(measurement: str, inputs: str, options: Mapping[str, Any]) -> str:
        """The key of a record."""
        source = source_of(plug_ins_of(measurement=measurement))
        version = get_measurement(measurement).version
        return record_key(inputs, measurement, version, dict(options), source)

    def require_same(self, job: Job) -> None:
        """Check that a job of another process is one of this run.

        Raises:
            UserError: this process finds other inputs.
        """
        for own_job in self.jobs(job.measurement):
            key = self.key_of(job.measurement, own_job.inputs, job.options)
            if (own_job.of, key) == (job.of, job.key):
                return
        raise UserError(
            f"{self.name}: files of the model, the corpus or a plug-in have changed since the run "
            "began; run again when nothing writes there."
        )

    @cached_property
    def paths(self) -> dict[str, Path]:
        """The file of each record of scores, by its key."""
        return {job.key: job.path for job in self.jobs(SCORES)}

    def path_of(self, measurement: str) -> Path:
        """The file of the record of a measurement of the corpus as a whole."""
        (job,) = self.jobs(measurement)
        return job.path

    # What remains.

    def what_remains(self, job: Job) -> Job | None:
        """The job with what has to be measured, by what is stored now; None if nothing has."""
        extent = self.extent_of(job)
        return replace(job, extent=extent) if extent else None

    def extent_of(self, job: Job) -> FitsPerLayer:
        """Layers that have to be measured, with repetitions and stored layers; empty for none.

        A record that is whole is kept. Evidence is looked for only where there are scores.
        """
        for score_job in self._jobs_behind(job):
            if (record := self.stored(score_job)) is not None:
                self.remember(score_job, record)
        record = self.stored(job)
        try:
            if (request := self._request(job)) is None:
                return {}
            extent = job.definition.extent(request)
            if record is not None and extent:
                # Not if this process, or another one of this run, has just made it.
                replaces = (
                    self.config.overwrite == "always"
                    and job.path not in self._made
                    and datetime.fromisoformat(record.provenance["written"]) < self.began
                )
                if job.definition.covers(record, request) and not replaces:
                    extent = {}
                else:  # with all that is stored, so that nothing is lost
                    extent = job.definition.merged(record.extent, extent)
        except Exception as error:
            if (left_out := self.left_out(job, error)) is None:
                raise
            self.omissions.add(left_out)
            return {}
        if record is not None and not extent:
            self.remember(job, record)
        return extent

    def stored(self, job: Job) -> Record | None:
        """The record of a job; None if there is none, or not all of it.

        Raises:
            UserError: it cannot be read.
        """
        path = job.path
        if not path.exists():
            return None
        record = self.index.read(path)
        if self._validated.get(path) is not record:
            validated(record, path)
            if record.key != job.key:
                raise UserError(f"{path}: the record of another key; delete it and run again.")
            self._validated[path] = record
        return record if arrays_exist(path, record) else None

    def _request(self, job: Job) -> Request | None:
        """Request for a job; None if it should not be made at all."""
        n_layers = self.n_layers
        layers = layers_of(self.config, n_layers, self.name)
        task = self.task(job.task)
        if task:
            layers = layers_at(task.site, layers, n_layers)
        if task and (reason := why_unfit(job.family, task.kind, is_bag=task.is_bag)):
            title = f"{plain_name(task.name)} · {job.family}"
            self.omissions.not_made(job.measurement, title, reason)
            return None
        if not job.definition.is_evidence:
            if not layers:
                at_last = f"{self.name} has it at layer {n_layers} alone; add it to --layers."
                about = "probes of unnormed", f"--sites unnormed: {at_last}"
                raise LeftOutError(Omission.UNSERVED, self.name, *about)
            return Request(layers, n_layers, self.config.seeds, self.config.level)
        if (scores := self.results.get(job.of)) is None:
            return None
        if reason := self.missing(job):
            if job.measurement in self.config.asked_by_name:
                self.omissions.not_made(job.measurement, job.title, reason)
            return None
        # Evidence stands behind all scores there are, not only those that this run asks for.
        return EvidenceRequest.behind(scores, self.config.seeds, self.config.level)

    def missing(self, job: Job) -> str:
        """The reason why evidence is not made for the task and probe of a job; empty if it is."""
        task, definition = self.task(job.task), job.definition
        assert task
        if reason := why_unfit(job.family, task.kind, is_bag=task.is_bag):
            return reason  # there are no scores either
        lacking = definition.missing_annotation(self.corpus.layers)
        return lacking or definition.missing(task, PROBES[job.family], self.config.level)

    def require_head(self, job: Job) -> None:
        """Leave out what needs a language-model head that the model lacks, before probes are fit.

        Raises:
            LeftOutError: the job itself needs it, or nothing else is to stand on its scores.
        """
        names = [x for x in self.other_measurements if get_measurement(x).head == "needed"]
        if not names or (error := self.model.head_error) is None:
            return
        left_out = {
            x: LeftOutError(Omission.UNSERVED, self.name, x.title, str(error))
            for x in (x for name in names for x in self.jobs(name) if not x.path.exists())
            if not x.definition.is_evidence or (x.of == job.of and not self.missing(x))
        }
        if job in left_out:
            raise left_out[job]
        for omission in left_out.values():
            if job.measurement == SCORES and self.config.scores_need_head:
                raise omission
            self.omissions.add(omission)

    def left_out(self, job: Job, error: Exception) -> LeftOutError | None:
        """The job, task or plug-in that an error costs; None if it ends the run."""
        # Imported here, since it imports torch.
        from probes.extraction.reading.collectors import CollectorError

        if isinstance(error, LeftOutError):
            return error
        if isinstance(error, NotServedError):
            about = job.measurement, f"{job.title} of {self.name}", str(error)
            return LeftOutError(Omission.UNMADE, *about)
        if isinstance(error, NoHeadError):
            return LeftOutError(Omission.UNSERVED, self.name, job.title, str(error))
        if isinstance(error, (TaskError, CollectorError)):
            return LeftOutError(Omission.FAILED, self.name, job.title, str(error))
        if reason := plugin_failure(error, job.measurement, self.task(job.task), job.family):
            return LeftOutError(Omission.FAILED, self.name, job.title, reason)
        return None

    # Records that jobs stand on.

    def _jobs_behind(self, job: Job) -> list[Job]:
        """The jobs of the scores that a job needs: of evidence, those that it stands behind."""
        if job.definition.spans_tasks:
            return self.jobs(SCORES, self.families[0])
        if not job.definition.is_evidence:
            return []
        return [score_job for score_job in self.jobs(SCORES) if score_job.of == job.of]

    def with_inputs(self, job: Job) -> Job:
        """A job with the stored records that it stands on."""
        score_jobs = [x for x in self._jobs_behind(job) if x.of in self.results]
        return replace(
            job,
            scores={x.of: self.results[x.of] for x in score_jobs},
            predictions={x.of: read_predictions(x.path) for x in score_jobs},
            trained=self._trained_elsewhere(job) if job.measurement == TRANSFER else {},
        )

    def _elsewhere(self, task: str, family: str) -> dict[str, tuple[ModelRun, Job]]:
        """The jobs of a task's scores on the other corpora that have any, by corpus."""
        return {
            run.corpus.source.name: (run, job)
            for run in self.elsewhere
            for job in run.jobs(SCORES)
            if job.of == (task, family) and job.path.exists()
        }

    def _trained_elsewhere(self, job: Job) -> dict[str, Trained]:
        """The probes that the other corpora have trained for the task of a job, by corpus."""
        trained, cache = {}, self.config.cache_dir
        for name, (run, peer) in self._elsewhere(*job.of).items():
            if (record := run.stored(peer)) is None:
                continue
            if (parameters := read_parameters(cache, record.key)) is None:
                raise UserError(
                    f"{peer.path}: the parameters of its probes are not in {cache} any more; run "
                    "again with --overwrite always."
                )
            thresholds = [x for x in run.jobs(NEGATIVES_THRESHOLD) if x.of == job.of]
            evidence = filter(None, map(run.stored, thresholds if self.negatives else ()))
            result = as_result(record, peer.path).with_evidence(*evidence)
            trained[name] = Trained(result, parameters)
        return trained

    # What has been found.

    def made(self, job: Job, record: Record) -> None:
        """Add the record of a job that this process has made."""
        self._made.add(job.path)
        self.index.add(job.path, record)
        self.remember(job, record)

    def remember(self, job: Job, record: Record) -> None:
        """Add the record of a job to the results."""
        if self._remembered.get(job.path) is record and not job.definition.is_evidence:
            return
        self._remembered[job.path] = record
        if job.definition.is_evidence:
            self.results[job.of] = self.results[job.of].with_evidence(record)
        elif job.task:
            results = {**self.results, job.of: as_result(record, job.path)}
            # In the order of the jobs, whichever is done first.
            order = list(self.paths)
            self.results = dict(sorted(results.items(), key=lambda item: order.index(item[1].key)))
        else:
            self.others[job.measurement] = record
