"""A unit: one record to be made, with its key and what is there of it. No torch here.

What another process can be asked for, and what it answers, are plain values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from probes.common.errors import UserError
from probes.run.config import RunConfig
from probes.run.task_choice import Omissions
from probes.measurements.measurement import Measurement, get_measurement
from probes.measurements.plugin_keys import (
    plugin_failure,
)
from probes.records.probe_spec import ProbeSpec
from probes.records.record import Extent, Record, record_name
from probes.records.result import SCORES
from probes.records.values import Frozen
from probes.tasks.task import Task


@dataclass(frozen=True)
class Unit:
    """One record to be made.

    Attributes:
        task: what is predicted; None for a measurement of the corpus as a whole.
        probe: how its probes are fitted; None likewise.
        options: of the measurement.
        inputs: digest of what is measured.
        key: digest of everything that determines the record.
        folder: where its record is.
    """

    measurement: str
    task: Task | None
    probe: ProbeSpec | None
    options: Frozen
    inputs: str
    key: str
    folder: Path

    @property
    def its(self) -> Measurement:
        """The measurement."""
        return get_measurement(self.measurement)

    @property
    def of(self) -> tuple[str, str]:
        """Names of the task and of the probe family; empty for the corpus as a whole."""
        return self.task.name if self.task else "", self.probe.family if self.probe else ""

    @property
    def title(self) -> str:
        """What messages call it."""
        own = () if self.measurement == SCORES else (self.measurement,)
        return " · ".join((*filter(None, self.of), *own))

    @property
    def path(self) -> Path:
        """The file of its record."""
        return self.folder / record_name(*self.of, self.measurement, self.key)

    def blamed(self, error: Exception) -> str:
        """What a plug-in that it uses has done wrong; empty if it is no plug-in's fault."""
        return plugin_failure(error, self.measurement, self.task, self.of[1])


@dataclass(frozen=True)
class State:
    """What is stored of a unit.

    Attributes:
        record: None if there is none.
        missing: what has to be measured, with what is there already; empty for nothing.
    """

    record: Record | None
    missing: Extent


def layers_of(config: RunConfig, n_layers: int, model: str) -> tuple[int, ...]:
    """The layers that a run asks for of a model of L layers.

    "every:4" asks for layers 0, 4, 8, … and the last one.

    Raises:
        UserError: `--layers` names one that the model does not have.
    """
    if isinstance(config.layers, str):
        step = int(config.layers.removeprefix("every:"))
        return tuple(sorted({*range(0, n_layers + 1, step), n_layers}))
    if (highest := max(config.layers, default=0)) > n_layers:
        raise UserError(f"--layers {highest}: {model} has layers 0 to {n_layers}.")
    return config.layers or tuple(range(n_layers + 1))


Ending = Literal["done", "left out", "busy"]
"""How a unit ended: its record is there; it is not, as the omissions say; another run has it."""

Place = tuple[str, str]
"""What a model reads: the view of a task, by its name, or all sentences if it is empty; and the
measurement whose collector keeps something of it, or word vectors if that is empty."""


@dataclass(frozen=True)
class OfTask:
    """What is asked for of a model.

    Attributes:
        model: name of the model, one of the run's.
        task: name of the task; empty for all sentences, or the corpus as a whole.
    """

    model: str
    task: str


@dataclass(frozen=True)
class FindShards(OfTask):
    """Find the shards that are needed for what remains of a measurement."""

    measurement: str

    def __str__(self) -> str:
        return " · ".join(filter(None, (self.model, self.task, self.measurement)))


@dataclass(frozen=True)
class Encode(OfTask):
    """Make one shard of what the model reads.

    Attributes:
        measurement: whose collector is used; see `Place`.
        layers: the layers that are kept.
        shard: its number.
        n_bytes: what it takes on disk.
    """

    measurement: str
    layers: tuple[int, ...]
    shard: int
    n_bytes: int

    @property
    def place(self) -> Place:
        """What is read, and what is kept of it."""
        return self.task, self.measurement

    def __str__(self) -> str:
        return f"{self.model} · text {self.shard + 1}"


@dataclass(frozen=True)
class Measure(OfTask):
    """Make one record.

    Attributes:
        family: of the probes; empty for a measurement of the corpus as a whole.
        key: of the record; another process must come to the same.
    """

    measurement: str
    family: str
    key: str

    @classmethod
    def of(cls, model: str, unit: Unit) -> Measure:
        """The unit of a model by its names."""
        task, family = unit.of
        return cls(model, task, unit.measurement, family, unit.key)

    def __str__(self) -> str:
        names = self.model, self.task, self.family, self.measurement
        return " · ".join(filter(None, names))


@dataclass(frozen=True)
class UnitOutcome:
    """What became of a unit that another process was asked for.

    Attributes:
        omissions: what the process has left out so far.
        death: how its worker died, if it did, and why the unit is not tried again.
        shards: what was found by `FindShards`.
        memory: bytes that units are expected to take, by `FindShards`.
        files: of a record that was written elsewhere, by suffix.
    """

    ending: Ending
    omissions: Omissions = field(default_factory=Omissions)
    death: str = ""
    shards: tuple[Encode, ...] = ()
    memory: int = 0
    files: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class Said:
    """A message for the user; see `Progress.emit`.

    Attributes:
        worker: who says it.
    """

    worker: str
    model: str
    level: str
    message: str
    event: str
    fields: dict[str, Any]


Asked = FindShards | Encode | Measure
"""Whatever a process can be asked for."""

Answer = UnitOutcome | Exception
"""What became of it; or what ends the run."""
