"""`--dry-run`: what a run would compute, with sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from probes.common.errors import UserError
from probes.common.terminal import progress
from probes.common.wording import counted
from probes.run.engine import Stage, stages_of
from probes.run.model_run import ModelRun
from probes.run.prepared import Prepared
from probes.run.unit import Place, Unit, layers_of
from probes.examples.examples import Examples, NotServedError
from probes.examples.scoring import has_types
from probes.measurements.measurement import Request
from probes.tables.printing import printer
from probes.tables.table import Table, TableRow
from probes.tasks.validation import TaskError


def print_plan(runs: Sequence[ModelRun]) -> None:
    """Print the units that remain to be computed, model by model."""
    for run in runs:
        plan, name = _ModelPlan(run), run.model.source.name
        units = [row for stage in stages_of(runs) if run in stage.runs for row in plan.units(stage)]
        rows = [*plan.encodings(), *units]
        present = f"{counted(plan.present, 'record exists', 'records exist')} already"
        if run.model.source.weightless:
            present = "its weights are not here, so that records are not looked for"
        if rows:
            weights = f"{run.model.weight_bytes / 1e6:,.0f} MB of memory in {run.model.dtype}"
            table = Table(
                f"{name} · {run.corpus.source.name} · to be computed",
                ("what", "of", "size"),
                tuple(rows),
                left=2,
                notes=(
                    f"vectors: {plan.bytes / 1e6:,.1f} MB on disk · model: {weights} · "
                    f"{counted(plan.fits, 'fit')} · {present}",
                ),
            )
            printer.show([table], quiet=progress.quiet)
        else:
            progress.say(f"{name}: nothing remains to be computed; {present}")
        run.model.release()
    progress.say("nothing has been computed or written")


class _ModelPlan:
    """What remains of one model.

    Attributes:
        bytes: what the vectors that are still to be encoded take on disk.
        fits: the number of fits that remain.
        present: the number of records that are there, whole.
    """

    def __init__(self, run: ModelRun) -> None:
        self.bytes = self.fits = self.present = 0
        self._run, self._encoder = run, run.model.encoder
        info = self._encoder.info
        self._prepared = Prepared(run)
        self._prepared.need(layers_of(run.config, info.n_layers, info.name))
        self._examples: dict[str, Examples] = {}
        self._remaining: set[str] = set()
        for task in run.tasks:
            try:
                self._examples[task.name] = run.corpus.examples(task, self._prepared.hidden_view)
            except (NotServedError, TaskError, UserError) as error:
                progress.say(f"left out {task.name}: {error}")

    def encodings(self) -> Iterator[TableRow]:
        """A row per view that is not stored yet, of what `units` has found to remain."""
        if not self._encoder.reads_text:
            return
        places: dict[Place, str] = {}
        for measurement in self._run.corpus_measurements:
            if measurement in self._remaining:
                place = self._prepared.corpus_place(measurement)
                places.setdefault(place, f"{self._prepared.view(place).name} view")
        for name, examples in self._examples.items():
            if name in self._remaining:
                of = "plain view" if examples.view == "plain" else f"{examples.view} view of {name}"
                places.setdefault(self._prepared.place_of(examples), of)
        for place, of in places.items():
            reading = self._prepared.reading(place)
            if n_texts := sum(len(shard.texts) for shard in reading.missing()):
                n_bytes = reading.bytes_missing()
                self.bytes += n_bytes
                size = f"{counted(n_texts, 'text')}, {n_bytes / 1e6:,.1f} MB"
                yield TableRow.of("encode", of, size)

    def units(self, stage: Stage) -> Iterator[TableRow]:
        """A row per record of a stage that remains to be made."""
        for unit in self._run.units(stage.measurement, stage.family):
            request = self._request(unit)
            if request is None:
                continue
            state = self._run.state(unit, self._run.stored(unit), request)
            if not state.missing:
                if state.record is not None:
                    self.present += 1
                    self._run.keep(unit, state.record)
                continue
            size = counted(len(state.missing), "layer")
            if unit.probe:
                n_fits = sum(state.missing.values())
                self.fits += n_fits
                size += f", {counted(n_fits, 'fit')}"
            self._remaining.add(unit.task.name if unit.task else unit.measurement)
            yield TableRow.of(stage.measurement, " · ".join(filter(None, unit.of)), size)

    def _request(self, unit: Unit) -> Request | None:
        """What is asked for; None if it is not to be made, or not served."""
        task, _ = unit.of
        if task and task not in self._examples:
            return None
        if not unit.its.is_evidence or unit.of in self._run.results:
            return self._run.request(unit, None)
        if self._run.missing(unit, unit.its):
            return None
        assert unit.probe
        return self._run.expected_request(unit.probe, typed=has_types(self._examples[task]))
