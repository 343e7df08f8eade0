"""What a run computes, stage by stage, and where. Only an engine knows where.

Nothing here imports torch: a run with nothing left to compute does without it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple, Protocol

from probes.common.errors import UserError
from probes.common.terminal import progress
from probes.common.wording import counted
from probes.run.model_run import ModelRun
from probes.run.unit import State, Unit
from probes.measurements.measurement import get_measurement
from probes.records.result import SCORES

if TYPE_CHECKING:
    from probes.run.prepared import Prepared


class Step(NamedTuple):
    """A unit that remains to be computed.

    Attributes:
        state: what is there of it, and what is missing.
    """

    run: ModelRun
    unit: Unit
    state: State


@dataclass(frozen=True)
class Stage:
    """Units that are made one after the other, before those of the next stage.

    Attributes:
        runs: the models that it is made of.
        family: of probes; empty for all.
    """

    runs: Sequence[ModelRun]
    measurement: str
    family: str = ""

    @property
    def title(self) -> str:
        """What messages call it."""
        of_family = f" of {self.family} probes" if self.family else ""
        of_twins = " of random twins" * all(run.model.is_twin for run in self.runs)
        return get_measurement(self.measurement).title + of_family + of_twins

    def units(self) -> list[Unit]:
        """All units, whether they are done or not."""
        return [unit for run in self.runs for unit in run.units(self.measurement, self.family)]

    def remaining(self) -> list[Step]:
        """What is still to be computed; what is there is read.

        Raises:
            UserError: a record cannot be read, or a layer is not one of a model's.
        """
        return [
            Step(run, unit, state)
            for run in self.runs
            for unit, state in run.remaining(self.measurement, self.family)
        ]


def stages_of(runs: Sequence[ModelRun]) -> Iterator[Stage]:
    """The stages of a run: scores family by family, of random twins last, then the others."""
    for is_twin in (False, True):
        alike = [run for run in runs if run.model.is_twin == is_twin and run.tasks]
        for family in dict.fromkeys(family for run in alike for family in run.families):
            yield Stage([run for run in alike if family in run.families], SCORES, family)
    for name in dict.fromkeys(name for run in runs for name in run.other_measurements):
        yield Stage([run for run in runs if name in run.other_measurements], name)


def refuse_existing(runs: Sequence[ModelRun]) -> None:
    """For `--overwrite never`.

    Raises:
        UserError: a record exists already.
    """
    for stage in stages_of(runs):
        for unit in stage.units():
            if unit.path.exists():
                raise UserError(
                    f"{unit.path} exists already, and --overwrite is 'never'; "
                    "name another --output, or use --overwrite missing."
                )


def announce(stage: Stage, steps: Sequence[Step]) -> None:
    """Name a stage, with the number of its units."""
    line = f"stage   {stage.title} · {counted(len(steps), 'unit')}"
    progress.say(line, "stage", measurement=stage.measurement)


class Engine(Protocol):
    """Computes units; nothing is loaded before there is one."""

    def measure(self, steps: Sequence[Step]) -> Iterator[Step]:
        """Compute the steps of a stage, and yield each when it is done and its record is written.

        Raises:
            UserError: `--layers` names a layer that the model does not have, `--project` is wider
                than its vectors, or `--memory` is less than a unit needs.
        """

    def close(self) -> None:
        """Stop what is being computed, and let go of models and stores."""


def engine_for(runs: Sequence[ModelRun]) -> Engine:
    """The engine that the configuration asks for."""
    config = runs[0].config
    if config.engine == "ray":
        # Imported here: a newcomer with a laptop has no Ray.
        from probes.run.ray_engine import RayEngine

        return RayEngine(runs)
    if config.workers > 1:
        from probes.run.processes import ProcessEngine

        return ProcessEngine(runs)
    return LocalEngine()


class LocalEngine:
    """Computes units in this process, with one model in memory at a time."""

    def __init__(self) -> None:
        self._prepared: dict[str, Prepared] = {}

    def measure(self, steps: Sequence[Step]) -> Iterator[Step]:
        """See `Engine`."""
        for _, of_run in groupby(steps, key=lambda step: step.run.name):
            from probes.run.measuring import compute, plan

            todo, busy = list(of_run), list[Step]()
            prepared = self.prepared(todo[0].run)
            # What is missing is encoded view by view, when the first unit asks for it.
            plan(prepared, todo)
            for step in todo:
                if compute(prepared, step.unit, wait=False) == "busy":
                    busy.append(step)
                else:
                    yield step
            # Units that another run was computing may be done by now.
            for step in busy:
                compute(prepared, step.unit, wait=True)
                yield step

    def prepared(self, run: ModelRun) -> Prepared:
        """The model of a run with what its units need; the other models are released.

        Raises:
            UserError: there is no such device.
        """
        from probes.run.prepared import Prepared, prepare_torch

        if run.name not in self._prepared:
            prepare_torch(run.config)
        for name, other in self._prepared.items():
            if name != run.name:
                other.release()
        if run.base is not None and run.base.name not in self._prepared:
            self._prepared[run.base.name] = Prepared(run.base)
        base = self._prepared[run.base.name] if run.base else None
        return self._prepared.setdefault(run.name, Prepared(run, base))

    def close(self) -> None:
        """See `Engine`."""
        for prepared in self._prepared.values():
            prepared.run.model.release()
        self._prepared.clear()
