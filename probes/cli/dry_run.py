"""`--dry-run`: what a run would compute, with estimates of time, memory and disk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from probes.common.errors import UserError
from probes.common.terminal import progress
from probes.common.wording import counted
from probes.engines.asked import Place
from probes.engines.model_run import ModelRun
from probes.engines.plan import Stage, stages_of
from probes.engines.prepared import Prepared
from probes.engines.time_estimates import encoding_seconds, fit_seconds, in_words
from probes.engines.unit import Unit, layers_of
from probes.examples.control_task import has_types
from probes.examples.examples import Examples, NotServedError
from probes.measurements.measurement import Request
from probes.records.table import Table, TableRow
from probes.rendering.printing import printer
from probes.tasks.validation import TaskError


def print_plan(runs: Sequence[ModelRun]) -> float:
    """Print the units that remain to be computed, model by model.

    Returns:
        the estimate in seconds.
    """
    total = 0.0
    for run in runs:
        plan = _ModelPlan(run)
        units = [row for stage in stages_of(runs) if run in stage.runs for row in plan.units(stage)]
        rows = [*plan.encodings(), *units]
        total += plan.seconds
        present = f"{counted(plan.present, 'record exists', 'records exist')} already"
        if run.model.source.weightless:
            present = "its weights are not here, so that records are not looked for"
        if not rows:
            progress.say(f"{run.model.source.name}: nothing remains to be computed; {present}")
            run.model.release()
            continue
        table = Table(
            f"{run.model.source.name} · {run.corpus.source.name} · to be computed",
            ("what", "of", "size", "time"),
            tuple(rows),
            left=2,
            notes=(
                f"vectors: {plan.bytes / 1e6:,.0f} MB on disk · model: "
                f"{run.model.weight_bytes / 1e6:,.0f} MB of memory in {run.model.dtype} · "
                f"about {in_words(plan.seconds)} · {present}",
            ),
        )
        printer.show([table], quiet=progress.quiet)
        run.model.release()
    if total:
        progress.say(
            f"in all about {in_words(total)}, by the speed of this machine's matrix products; "
            "nothing has been computed or written"
        )
    return total


class _ModelPlan:
    """What remains of one model, with estimates.

    Attributes:
        seconds: the sum of the estimates so far.
        bytes: what the vectors that are still to be encoded take on disk.
        present: the number of records that are there, whole.
    """

    def __init__(self, run: ModelRun) -> None:
        self.seconds, self.bytes, self.present = 0.0, 0, 0
        self._run, self._encoder = run, run.model.encoder
        info = self._encoder.info
        self._layers = layers_of(run.config, info.n_layers, info.name)
        self._prepared = Prepared(run)
        self._prepared.need(self._layers)
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
            if measurement not in self._remaining:
                continue
            place = self._prepared.corpus_place(measurement)
            places.setdefault(place, f"{self._prepared.view(place).name} view")
        for name, examples in self._examples.items():
            if name not in self._remaining:
                continue
            of = "plain view" if examples.view == "plain" else f"{examples.view} view of {name}"
            places.setdefault(self._prepared.place_of(examples), of)
        info = self._encoder.info
        for place, of in places.items():
            reading = self._prepared.reading(place)
            texts = [text for shard in reading.missing() for text in shard.texts]
            if not texts:
                continue
            lengths = [len(each.ids) for each in self._encoder.words(texts)]
            n_tokens, n_predicted = reading.collector.work(lengths, info.causal)
            embedded = self._encoder.model.get_input_embeddings().weight.numel()
            device = str(self._encoder.device)
            seconds = encoding_seconds(info.parameters - embedded, n_tokens, device)
            seconds += encoding_seconds(embedded, n_predicted, device)
            self.seconds += seconds
            self.bytes += reading.bytes_missing()
            yield TableRow.of(
                "encode", of, f"{counted(len(texts), 'text')}", f"{in_words(seconds)}"
            )

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
            n_fits = sum(state.missing.values())
            seconds = self._seconds(unit, n_fits)
            self.seconds += seconds
            size = f"{counted(len(state.missing), 'layer')}, {counted(n_fits, 'fit')}"
            of = " · ".join(filter(None, unit.of))
            self._remaining.add(unit.task.name if unit.task else unit.measurement)
            yield TableRow.of(stage.measurement, of, size, in_words(seconds) if seconds else "")

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

    def _seconds(self, unit: Unit, n_fits: int) -> float:
        if unit.task is None or unit.probe is None:
            return 0.0
        examples = self._examples[unit.task.name]
        width = (self._run.config.project or self._encoder.info.hidden_size) * examples.n_spans
        of_fit = fit_seconds(
            unit.probe,
            len(examples.splits["train"].examples),
            width,
            len(examples.classes),
            str(self._encoder.device),
        )
        return n_fits * of_fit * unit.its.cost(unit.probe)
