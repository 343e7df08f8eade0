"""`--dry-run`: what a run would compute, with sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from probes.common.errors import UserError, counted
from probes.common.terminal import progress
from probes.examples.examples import Examples, NotServedError
from probes.examples.scoring import has_types
from probes.measurements.measurement import EvidenceRequest
from probes.records.probe_spec import PROBES
from probes.records.record import FitsPerLayer
from probes.run.corpus_reader import CorpusReader, ReadingKey
from probes.run.jobs import Job, layers_of
from probes.run.model_run import ModelRun
from probes.run.plan import Stage, stages_of
from probes.tables.printing import printer
from probes.tables.table import Table, TableRow
from probes.tasks.task import layers_at
from probes.tasks.validation import TaskError


def print_plan(runs: Sequence[ModelRun]) -> None:
    """Print the records that remain to be made, model by model."""
    for run in runs:
        plan, name = _ModelPlan(run), run.model.source.name
        records = [
            row for stage in stages_of(runs) if run in stage.runs for row in plan.records(stage)
        ]
        rows = [*plan.encodings(), *records]
        present = f"{counted(plan.present, 'record exists', 'records exist')} already"
        if run.model.source.weightless:
            present = "its weights are not here, so that records are not looked for"
        if rows:
            n_bytes = plan.parameters * (4 if run.model.dtype == "float32" else 2)
            weights = f"{n_bytes / 1e6:,.0f} MB of memory in {run.model.dtype}"
            if run.model.source.quantization:
                weights += ", less what quantisation saves"
            wider = " (twice that if float16 overflows)" * plan.is_narrow
            vectors = (
                f"{plan.bytes / 1e6:,.1f} MB on disk{wider}" if plan.bytes else "none to encode"
            )
            table = Table(
                f"{name} · {run.corpus.source.name} · to be computed",
                ("what", "of", "size"),
                tuple(rows),
                left=2,
                notes=(
                    f"vectors: {vectors} · model: {weights} · "
                    f"{counted(plan.fits, 'fit')} · {present}",
                ),
            )
            printer.show([table], quiet=progress.quiet)
        else:
            progress.say(f"{name}: nothing remains to be computed; {present}")
        run.model.close()
    progress.say("nothing has been computed or written")


class _ModelPlan:
    """Remaining jobs of one model, with their sizes.

    Attributes:
        bytes: size on disk of the vectors that remain to be encoded.
        is_narrow: whether these are to be stored in float16.
        fits: number of fits that remain.
        present: number of complete records.
        parameters: number of the model's parameters.
    """

    def __init__(self, run: ModelRun) -> None:
        self.bytes = self.fits = self.present = 0
        self.is_narrow = False
        description = run.model.description
        info = description.info
        self.parameters = info.parameters
        self._run, self._reader = run, CorpusReader.of(run)
        self._layers = layers_of(run.config, info.n_layers, info.name)
        self._reader.need(run.layers_read(self._layers))
        self._examples: dict[str, Examples] = {}
        self._remaining: set[str] = set()
        for task in run.tasks:
            try:
                if reason := description.unserved_sites.get(task.site):
                    raise UserError(reason)
                self._examples[task.name] = run.corpus.examples(task, description.hidden_view)
            except (NotServedError, TaskError, UserError) as error:
                progress.say(f"left out {task.name}: {error}")

    def encodings(self) -> Iterator[TableRow]:
        """A row per view that the remaining `records` need and that is not stored yet."""
        if self._reader.words is None:  # given vectors are not encoded
            return
        titles: dict[ReadingKey, str] = {}
        for measurement in self._run.corpus_measurements:
            if measurement in self._remaining:
                key = self._reader.key_of_corpus(measurement)
                titles.setdefault(key, f"{self._reader.view(key).name} view")
        for name, examples in self._examples.items():
            if name in self._remaining:
                title = (
                    "plain view" if examples.view == "plain" else f"{examples.view} view of {name}"
                )
                titles.setdefault(self._reader.key_of_examples(examples), title)
        for key, title in titles.items():
            reading = self._reader.store_request(key)
            if n_texts := sum(len(shard.texts) for shard in reading.missing()):
                n_bytes = reading.bytes_missing()
                self.bytes += n_bytes
                self.is_narrow |= reading.key.settings.get("storage") == "float16"
                size = f"{counted(n_texts, 'text')}, {n_bytes / 1e6:,.1f} MB"
                yield TableRow.of("encode", title, size)

    def records(self, stage: Stage) -> Iterator[TableRow]:
        """A row per record of a stage that remains to be made."""
        for job in self._run.jobs(stage.measurement, stage.family):
            if job.task and job.task not in self._examples:
                continue  # not served
            scores_exist = not job.definition.is_evidence or job.of in self._run.results
            extent = self._run.extent_of(job) if scores_exist else self._expected(job)
            if not extent:
                # The record is complete, or the measurement does not apply and has none.
                self.present += job.path.exists()
                continue
            size = counted(len(extent), "layer")
            if job.family:
                n_fits = sum(extent.values())
                self.fits += n_fits
                size += f", {counted(n_fits, 'fit')}"
            self._remaining.add(job.task or job.measurement)
            yield TableRow.of(stage.measurement, " · ".join(filter(None, job.of)), size)

    def _expected(self, job: Job) -> FitsPerLayer:
        """Layers of evidence behind scores that remain to be made."""
        examples, config = self._examples[job.task], self._run.config
        layers = layers_at(examples.task.site, self._layers, self._run.n_layers)
        if self._run.missing(job) or not layers:
            return {}
        typed = has_types(examples)
        # The best layer is unknown; a middle one is mostly neither first nor last, as the best is.
        request = EvidenceRequest(
            layers,
            self._run.n_layers,
            config.seeds,
            config.level,
            probe=PROBES[job.family],
            best=layers[len(layers) // 2],
            typed=typed,
        )
        return job.definition.extent(request)
