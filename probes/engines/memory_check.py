"""The memory that training needs; refuses a `--memory` below it, before anything is encoded."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

import torch

from probes.common.errors import UserError
from probes.engines.unit import Unit
from probes.examples.examples import NotServedError
from probes.extraction.views import ViewName
from probes.measurements.measurement import get_measurement
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
    assert config.memory is not None
    needs = training_needs(run, units, hidden, device, hides)
    what = max(needs, key=lambda name: needs[name], default="")
    if what and needs[what] > config.memory:
        enough = f"{math.ceil(needs[what] / 1e6)}MB"
        remedy = "--quick or --project" if run.evidence else "--project"
        raise UserError(
            f"--memory {_size(config.memory)}: fitting {what} probes takes at least {enough}, "
            f"one layer at a time; give --memory {enough}, or reduce the need with {remedy}."
        )


def training_needs(
    run: ModelRun, units: Iterable[Unit], hidden: int, device: torch.device, hides: ViewName
) -> dict[str, int]:
    """The fewest bytes in which probes can be fitted, one layer at a time, by task and family.

    Args:
        hidden, hides: see `require_memory`.
    """
    needs: dict[str, int] = {}
    for unit in units:
        # What fails is reported when the unit is measured.
        try:
            needs[" with ".join(unit.of)] = _least(run, unit, hidden, device, hides)
        except (NotServedError, TaskError):
            pass
        except Exception as error:
            if not unit.blamed(error):
                raise
    return needs


def _size(n_bytes: int) -> str:
    """``2GB``, ``1KB``."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if n_bytes >= factor:
            return f"{n_bytes / factor:g}{unit}"
    return f"{n_bytes}B"


def _least(run: ModelRun, unit: Unit, hidden: int, device: torch.device, hides: ViewName) -> int:
    """The fewest bytes in which a unit, and the evidence that follows it, can be fitted."""
    config, probe = run.config, unit.probe
    if unit.task is None or probe is None:
        return 0
    data = run.corpus.examples(unit.task, hides), hidden, config.project
    request = run.expected_request(probe)
    needs = []
    following = [] if unit.its.is_evidence else map(get_measurement, run.evidence)
    for its in (unit.its, *following):
        if run.missing(unit, its) or not its.extent(request):
            continue
        n_cells = its.fits_at_once(probe, config.level) if its.is_evidence else config.seeds
        work = work_of(*data, probe, device, n_cells, its.n_concatenated)
        needs.append(least(work, len(request.layers) if its.reads_all_layers else 0))
    return max(needs, default=0)
