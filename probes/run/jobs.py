"""Jobs: records to be made, as plain values that other processes understand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from probes.common.errors import UserError
from probes.common.locks import SUFFIX
from probes.measurements.measurement import Measurement, get_measurement
from probes.measurements.trained_probes import Trained
from probes.records.record import FitsPerLayer
from probes.records.record_files import Arrays
from probes.records.result import SCORES, Result
from probes.run.config import RunConfig


@dataclass(frozen=True)
class Job:
    """One record to be made, as plain values that other processes understand.

    Attributes:
        model: name of the model.
        task, family: names of the task and the probe family; empty for the corpus as a whole.
        options: of the measurement, as records keep them.
        inputs: digest of what is measured.
        key: digest of everything that the record depends on, but for its layers.
        path: the record's file.
        extent: how often to measure which layers: what is asked for, with what is stored.
        scores: stored scores that it stands on, by task and probe family; filled in, as the next
            two, when the job is claimed.
        predictions: the arrays of these scores.
        trained: probes of the same task that other corpora have trained, by corpus.
    """

    model: str
    measurement: str
    task: str
    family: str
    inputs: str
    key: str
    path: Path
    options: Mapping[str, Any] = field(compare=False)
    extent: FitsPerLayer = field(default_factory=dict, compare=False)
    scores: Mapping[tuple[str, str], Result] = field(default_factory=dict, compare=False)
    predictions: Mapping[tuple[str, str], Arrays] = field(default_factory=dict, compare=False)
    trained: Mapping[str, Trained] = field(default_factory=dict, compare=False)

    @property
    def definition(self) -> Measurement:
        """The measurement itself."""
        return get_measurement(self.measurement)

    @property
    def of(self) -> tuple[str, str]:
        """Names of the task and of the probe family."""
        return self.task, self.family

    @property
    def title(self) -> str:
        """The name that messages use."""
        of_measurement = () if self.measurement == SCORES else (self.measurement,)
        return " · ".join((*filter(None, self.of), *of_measurement))

    @property
    def lock(self) -> Path:
        """The file whose lock is held by the process that makes the record."""
        return self.path.with_suffix(SUFFIX)


def layers_of(config: RunConfig, n_layers: int, model: str) -> tuple[int, ...]:
    """The layers that a run asks for of a model of L layers; -1 is layer L.

    "every:4" asks for layers 0, 4, 8, … and the last one.

    Raises:
        UserError: `--layers` names one that the model does not have.
    """
    numbers = range(n_layers + 1)
    if isinstance(config.layers, str):
        step = int(config.layers.removeprefix("every:"))
        return tuple(sorted({*numbers[::step], n_layers}))
    if wrong := [x for x in config.layers if not -len(numbers) <= x <= n_layers]:
        from_end = f", or -1 to -{len(numbers)} from the last" if wrong[-1] < 0 else ""
        raise UserError(f"--layers {wrong[-1]}: {model} has layers 0 to {n_layers}{from_end}.")
    return tuple(sorted({numbers[x] for x in config.layers})) or tuple(numbers)
