"""What another process can be asked for, and what it answers: plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from probes.engines.task_choice import Omissions
from probes.engines.unit import Unit

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
