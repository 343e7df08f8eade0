"""A unit: one record to be made, with its key and what is there of it. No torch here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from probes.common.errors import UserError
from probes.engines.config import RunConfig
from probes.measurements.measurement import Measurement, get_measurement
from probes.measurements.plugin_keys import (
    plugin_failure,
)
from probes.records.keys import record_name
from probes.records.probe_spec import ProbeSpec
from probes.records.record import Extent, Record
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
