"""The measurements of one model on one corpus: what is there, what remains, and the results so far.

Torch is imported when something has to be computed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from probes.common.terminal import progress
from probes.common.wording import counted
from probes.engines.config import RunConfig
from probes.engines.inputs import LazyCorpus, LazyModel
from probes.engines.omissions import Omissions
from probes.engines.plan import (
    State,
    Unit,
    corpus_unit,
    layers_of,
    probe_units,
    state_of,
    stored,
)
from probes.measurements.measurement import (
    ProbeMeasurement,
    Request,
    Scored,
    as_payload,
    get_measurement,
)
from probes.measurements.plugin_keys import plugin_failure
from probes.measurements.results import as_result
from probes.records.record import AnyRecord
from probes.records.result import SCORES, Result
from probes.tasks.task import Task

if TYPE_CHECKING:
    from probes.engines.local import LocalEngine


@dataclass
class ModelRun:
    """One model of a run.

    Attributes:
        tasks: what probes predict; none if no probes are asked for.
        omissions: what turns out not to be served, or fails, is added here.
        command: the command line, for the records' provenance; empty for a run from Python.
        results: scores with their evidence, by task and probe family.
        others: records of measurements of the corpus as a whole, by measurement.
    """

    config: RunConfig
    model: LazyModel
    corpus: LazyCorpus
    tasks: Sequence[Task]
    omissions: Omissions
    command: str
    results: dict[tuple[str, str], Result] = field(default_factory=dict)
    others: dict[str, AnyRecord] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """Where the records of this model and corpus are."""
        return self.config.output / self.model.source.slug / self.corpus.source.slug

    @property
    def evidence(self) -> tuple[str, ...]:
        """Evidence to gather; of random twins only with full evidence."""
        if self.model.is_twin and self.config.level != "full":
            return ()
        return self.config.evidence_names

    @property
    def families(self) -> tuple[str, ...]:
        """Probe families to fit; of random twins linear probes alone, unless with full evidence."""
        given = self.config.probes
        if self.model.is_twin and self.config.level != "full" and "linear" in given:
            return ("linear",)
        return given

    @cached_property
    def paths(self) -> dict[str, Path]:
        """The file of each record of scores, by its key."""
        return {unit.key: unit.path for unit in self.units(SCORES)}

    def units(self, measurement: str) -> list[Unit]:
        """All units of a measurement, whether they are done or not."""
        config, model, corpus = self.config, self.model, self.corpus.source
        if isinstance(get_measurement(measurement), ProbeMeasurement):
            return list(probe_units(config, model, corpus, self.tasks, self.families, measurement))
        return [corpus_unit(config, model, corpus, measurement)]

    def remaining(self, measurement: str) -> Iterator[tuple[Unit, State]]:
        """The units of a measurement that are still to be computed; the others are read.

        Evidence is looked for only where there are scores.

        Raises:
            UserError: a record cannot be read, or a layer is not one of the model's.
        """
        for unit in self.units(measurement):
            record = stored(unit)
            if record is None and self.n_layers is None:
                if unit.measurement == SCORES or unit.task is None:
                    yield unit, State(None, {})
                continue
            state = self._state(unit, record)
            if state.missing:
                yield unit, state
            elif state.record is not None:
                self.keep(unit, state.record)

    def _state(self, unit: Unit, record: AnyRecord | None) -> State:
        """What is stored and missing of a unit; nothing if a plug-in fails to say what it needs."""
        try:
            request = self.request(unit, record)
            if request is None:
                return State(None, {})
            recompute = self.config.overwrite == "always"
            return state_of(unit, record, request, recompute=recompute)
        except Exception as error:
            family = unit.probe.family if unit.probe else ""
            why = plugin_failure(error, unit.measurement, unit.task, family)
            if not why:
                raise
            self.omissions.fail(self.model.source.name, unit.title, why)
            return State(None, {})

    @property
    def n_layers(self) -> int | None:
        """The model's number of blocks; None as long as nothing says it."""
        for record in (*self.results.values(), *self.others.values()):
            return record.model.n_layers
        return self.model.n_layers

    def request(self, unit: Unit, record: AnyRecord | None) -> Request | None:
        """What is asked for of a unit; None if it is not to be made at all."""
        n_layers = record.model.n_layers if record else self.n_layers
        assert n_layers is not None
        layers = layers_of(self.config, n_layers, self.model.source.name)
        if unit.task is None or unit.probe is None or unit.measurement == SCORES:
            return Request(layers, n_layers, self.config.seeds, self.config.level)
        its = get_measurement(unit.measurement)
        scores = self.results.get((unit.task.name, unit.probe.family))
        assert isinstance(its, ProbeMeasurement)
        if scores is None:
            return None
        if why := its.missing(unit.task, unit.probe, self.config.level):
            if its.name in self.config.evidence:
                self.omissions.not_made(unit.title, why)
            return None
        # Evidence stands behind all scores there are, not only those that this run asks for.
        layers = tuple(scores.extent)
        scored = Scored(
            scores.probe,
            layers,
            scores.best_layer.layer,
            scores.examples.typed,
            scores.headline,
        )
        return Request(layers, n_layers, self.config.seeds, self.config.level, scored)

    def read_scores_again(self, unit: Unit) -> None:
        """Read the scores behind a unit of evidence, which another run may have extended.

        Raises:
            UserError: they cannot be read.
        """
        for other in self.units(SCORES):
            if (other.task, other.probe) == (unit.task, unit.probe):
                record = stored(other)
                if record is not None and record.extent != self._scores_of(unit).extent:
                    self.keep(other, record)

    def _scores_of(self, unit: Unit) -> Result:
        assert unit.task is not None
        assert unit.probe is not None
        return self.results[unit.task.name, unit.probe.family]

    def keep(self, unit: Unit, record: AnyRecord) -> None:
        """Add the record of a unit to the results."""
        if unit.measurement == SCORES:
            result = as_result(record, unit.path)
            self.results[result.task.name, result.probe.family] = result
        elif unit.task is None or unit.probe is None:
            self.others[unit.measurement] = as_payload(record)
        else:
            name = unit.task.name, unit.probe.family
            self.results[name] = self.results[name].with_evidence(as_payload(record))

    def measure(self, measurement: str) -> None:
        """Compute what remains of a measurement; every record is written as soon as it is done.

        Raises:
            UserError: `--layers` names a layer that the model does not have, `--project` is wider
                than its vectors, or `--memory` is less than a unit needs.
        """
        todo = list(self.remaining(measurement))
        if not todo:
            return
        # Units that another run is computing come last; they may be done by then.
        busy = self.engine.compute(todo, wait=False)
        self.engine.compute(busy, wait=True)

    @cached_property
    def engine(self) -> LocalEngine:
        """Computes units in this process."""
        from probes.engines.local import LocalEngine

        return LocalEngine(self)

    def close(self) -> None:
        """Let go of the engine, with the stores that it has open; it is made again if needed."""
        # It refers to this run: together they would stay until garbage is collected.
        self.__dict__.pop("engine", None)

    def announce_stored(self) -> None:
        """Say how many results there are already."""
        if self.results:
            n = counted(len(self.results), "result exists", "results exist")
            progress.say(
                f"{self.model.source.name}: {n} already", "present", model=self.model.source.name
            )
