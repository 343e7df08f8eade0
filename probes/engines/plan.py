"""What a run computes, stage by stage: units with their keys, and what is there of them.

Nothing here imports torch: a run with nothing left to compute does without it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from probes.common.errors import UserError
from probes.common.terminal import progress
from probes.common.wording import counted
from probes.engines.model_run import ModelRun
from probes.engines.unit import State, Unit
from probes.measurements.measurement import get_measurement
from probes.records.result import SCORES


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
