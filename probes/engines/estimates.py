"""How long a stage of a run will take, from what its scores took."""

from __future__ import annotations

from collections.abc import Iterable

from probes.common.terminal import progress
from probes.common.wording import counted
from probes.engines.model_run import ModelRun
from probes.measurements.measurement import ProbeMeasurement, get_measurement


def announce_stage(measurement: str, runs: Iterable[ModelRun]) -> None:
    """Name a stage of evidence, with its units and an estimate of its time."""
    n, seconds = 0, 0.0
    for run in runs:
        for unit, state in run.remaining(measurement):
            n += 1
            if unit.task and unit.probe:
                scores = run.results[unit.task.name, unit.probe.family]
                its = get_measurement(measurement)
                assert isinstance(its, ProbeMeasurement)
                per_fit = sum(scores.seconds.values()) / sum(scores.extent.values())
                seconds += per_fit * sum(state.missing.values()) * its.cost(unit.probe)
    estimate = f" · about {in_words(seconds)}" if seconds else ""
    progress.say(
        f"stage   {measurement} · {counted(n, 'unit')}{estimate}", "stage", seconds=seconds
    )


def in_words(seconds: float) -> str:
    """``40 s``, ``3 min``, ``2 h``."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
