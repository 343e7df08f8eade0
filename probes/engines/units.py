"""Units as plain values, which any process can be asked to compute."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from probes.engines.omissions import Omissions
from probes.engines.plan import Unit

Ending = Literal["done", "left out", "busy"]
"""How a unit ended: its record is there; it is not, as the omissions say; another run has it."""


@dataclass(frozen=True)
class Measure:
    """Make one record.

    Attributes:
        model: name of the model, one of the run's.
        task, family: empty for a measurement of the corpus as a whole.
        key: of the record; another process must come to the same.
    """

    model: str
    measurement: str
    task: str
    family: str
    key: str

    @classmethod
    def of(cls, model: str, unit: Unit) -> Measure:
        """The unit of a model by its names."""
        task, family = unit.task.name if unit.task else "", unit.probe.family if unit.probe else ""
        return cls(model, unit.measurement, task, family, unit.key)

    @property
    def prepared(self) -> tuple[str, str]:
        """What is prepared for it, and stays for other units."""
        return self.model, self.task


@dataclass(frozen=True)
class Outcome:
    """What became of a unit that another process was asked for; the record is on disk.

    Attributes:
        omissions: what the process has left out so far.
        death: how the process died, if it did.
    """

    ending: Ending
    omissions: Omissions = field(default_factory=Omissions)
    death: str = ""
