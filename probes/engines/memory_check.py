"""Refuses a `--memory` below what training needs, before anything is encoded."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import groupby

from probes.common.errors import UserError
from probes.data.sentence import Corpus
from probes.engines.config import RunConfig
from probes.engines.plan import FitUnit
from probes.examples.control_task import has_types
from probes.examples.examples import Examples, NotServedError, collect_examples
from probes.extraction.encoder import Encoder
from probes.extraction.views import ViewName
from probes.measurements.plugin_keys import plugin_failure
from probes.tasks.validation import TaskError
from probes.training.dataset import work_of
from probes.training.memory_plan import least


def require_memory(
    config: RunConfig, encoder: Encoder, corpus: Corpus, units: Iterable[FitUnit], hides: ViewName
) -> None:
    """Check the budget against the unit that needs most, one layer at a time.

    Args:
        hides: the view of examples that hide a word.

    Raises:
        UserError: the budget is too small; the message gives the least that will do.
    """
    if config.memory is None:
        return
    needs: dict[str, int] = {}
    for task, group in groupby(units, key=lambda unit: unit.task):
        try:
            examples = collect_examples(task, corpus, hides)
        except (NotServedError, TaskError):
            continue  # reported when the task's turn comes
        for unit in group:
            try:
                least_of_unit = _least(config, encoder, unit, examples)
            except Exception as error:
                if not plugin_failure(error, task, unit.probe.family):
                    raise
                continue  # reported when the unit is fitted
            needs[f"{task.name} with {unit.probe.family}"] = least_of_unit
    what = max(needs, key=lambda name: needs[name], default="")
    if what and needs[what] > config.memory:
        enough = f"{math.ceil(needs[what] / 1e6)}MB"
        remedy = "--project" if config.quick else "--quick or --project"
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


def _least(config: RunConfig, encoder: Encoder, unit: FitUnit, examples: Examples) -> int:
    """The fewest bytes in which a unit can be fitted."""
    control = not unit.quick and has_types(examples)
    work = work_of(
        examples,
        encoder.info.hidden_size,
        config.project,
        unit.probe,
        encoder.device,
        n_cells=unit.n_seeds * (2 if control else 1),
    )
    n_layers = encoder.info.n_layers + 1
    all_layers = unit.layers in ((), tuple(range(n_layers)))
    return least(work, n_layers if all_layers and not unit.quick else 0)
