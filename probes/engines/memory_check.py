"""Refuses a `--memory` below what training needs, before anything is encoded."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import groupby
from typing import TYPE_CHECKING

import torch

from probes.common.errors import UserError
from probes.engines.plan import Unit, layers_of
from probes.examples.examples import Examples, NotServedError
from probes.extraction.views import ViewName
from probes.measurements.measurement import (
    ProbeMeasurement,
    Request,
    Scored,
    get_measurement,
)
from probes.measurements.plugin_keys import plugin_failure
from probes.records.result import SCORES
from probes.tasks.validation import TaskError
from probes.training.dataset import work_of
from probes.training.memory_plan import least

if TYPE_CHECKING:
    from probes.engines.model_run import ModelRun


def require_memory(
    run: ModelRun, units: Iterable[Unit], hidden: int, device: torch.device, hides: ViewName
) -> None:
    """Check the budget against the unit that needs most, one layer at a time.

    Before scores are measured, it is checked for the evidence that is to follow too.

    Args:
        hidden: size of the model's vectors.
        hides: the view of examples that hide a word.

    Raises:
        UserError: the budget is too small; the message gives the least that will do.
    """
    config = run.config
    if config.memory is None:
        return
    needs: dict[str, int] = {}
    for task, group in groupby(units, key=lambda unit: unit.task):
        if task is None:
            continue
        try:
            examples = run.corpus.examples(task, hides)
        except (NotServedError, TaskError):
            continue  # reported when the task's turn comes
        for unit in group:
            assert unit.probe is not None
            try:
                needed = _least(run, unit, examples, hidden, device)
            except Exception as error:
                if not plugin_failure(error, unit.measurement, task, unit.probe.family):
                    raise
                continue  # reported when the unit is measured
            needs[f"{task.name} with {unit.probe.family}"] = needed
    what = max(needs, key=lambda name: needs[name], default="")
    if what and needs[what] > config.memory:
        enough = f"{math.ceil(needs[what] / 1e6)}MB"
        remedy = "--quick or --project" if run.evidence else "--project"
        raise UserError(
            f"--memory {_size(config.memory)}: fitting {what} probes takes at least {enough}, "
            f"one layer at a time; give --memory {enough}, or reduce the need with {remedy}."
        )


def _size(n_bytes: int) -> str:
    """``2GB``, ``1KB``."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if n_bytes >= factor:
            return f"{n_bytes / factor:g}{unit}"
    return f"{n_bytes}B"


def _least(run: ModelRun, unit: Unit, examples: Examples, hidden: int, device: torch.device) -> int:
    """The fewest bytes in which a unit, and the evidence that follows it, can be fitted."""
    config, task, probe = run.config, unit.task, unit.probe
    assert task
    assert probe
    assert run.n_layers is not None
    layers = layers_of(config, run.n_layers, run.name)
    # Which layer is the best, and whether there are control tasks, is not known yet.
    scored = Scored(probe, layers, layers[-1], typed=True)
    request = Request(layers, run.n_layers, config.seeds, config.level, scored)
    needs = []
    for name in (SCORES, *run.evidence) if unit.measurement == SCORES else (unit.measurement,):
        its = get_measurement(name)
        assert isinstance(its, ProbeMeasurement)
        if its.missing(task, probe, config.level) or not its.extent(request):
            continue
        n_cells = config.seeds if name == SCORES else its.fits_at_once(probe, config.level)
        data = examples, hidden, config.project
        work = work_of(*data, probe, device, n_cells, its.n_concatenated)
        needs.append(least(work, len(layers) if its.reads_all_layers else 0))
    return max(needs, default=0)
