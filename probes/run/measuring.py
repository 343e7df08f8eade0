"""Computes one unit in this process, and writes its record.

A `--memory` below what training needs is refused before anything is encoded.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from probes.common.errors import NoHeadError, UserError, out_of_memory
from probes.common.locks import SUFFIX, BusyError, locked
from probes.common.terminal import progress
from probes.compute.devices import exact_products
from probes.compute.memory import default_budget, explain_out_of_memory
from probes.run.announcements import announce_record
from probes.run.engine import Step
from probes.run.prepared import Prepared
from probes.run.recording import record_of
from probes.run.unit import Encode, Ending, Place, Unit, layers_of
from probes.examples.examples import NotServedError
from probes.extraction.collectors import CollectorError
from probes.extraction.encoding import Reading, require_space
from probes.extraction.sites import sites_of
from probes.extraction.views import ViewName
from probes.measurements.chart_views import require_drawable
from probes.measurements.context import ModelContext, PairContext, TaskContext
from probes.measurements.measurement import (
    TRANSFER,
    Found,
    as_found,
    get_measurement,
    measurements,
)
from probes.measurements.probing import Probing
from probes.measurements.scores import read_predictions
from probes.records.files import write_record
from probes.records.parameters import note_cache, write_parameters
from probes.records.record import Extent, Record
from probes.records.result import Result
from probes.tasks.validation import TaskError
from probes.training.dataset import work_of
from probes.training.memory_plan import least

if TYPE_CHECKING:
    from probes.run.model_run import ModelRun


def plan(prepared: Prepared, steps: Sequence[Step], *, every: bool = False) -> list[Encode]:
    """The shards that are missing for steps of a model, after checking that all of it is possible.

    Args:
        every: whether to name those that are there, too.

    Raises:
        UserError: `--layers` names a layer that the model does not have, `--project` is wider
            than its vectors, `--memory` is less than a unit needs, or the disk is too small.
    """
    run, info = prepared.run, prepared.info
    layers = layers_of(run.config, info.n_layers, run.name)
    if (run.config.project or 0) > info.hidden_size:
        raise UserError(
            f"--project {run.config.project}: the vectors of {run.name} have "
            f"only {info.hidden_size} dimensions; give at most that."
        )
    if run.config.memory is not None:
        # Of other families too, whose stages come later.
        asked = dict.fromkeys(step.unit.measurement for step in steps)
        whole = [unit for name in asked for unit, _ in run.remaining(name)]
        require_memory(run, whole, info.hidden_size, prepared.device, prepared.hidden_view)
    prepared.need(set(layers).union(*(step.state.missing for step in steps)))
    readings: dict[Place, Reading] = {}
    for step in steps:
        _add_reading(prepared, step.unit, readings)
    require_space(list(readings.values()))
    return [
        Encode(run.name, *place, prepared.layers, shard, n_bytes)
        for place, reading in readings.items()
        for shard, n_bytes in (reading.sizes() if every else reading.sizes_missing()).items()
    ]


def expected_memory(prepared: Prepared, units: Sequence[Unit]) -> int:
    """Bytes that a process takes that computes some units: weights, and probes of one layer."""
    needs = training_needs(
        prepared.run, units, prepared.info.hidden_size, prepared.device, prepared.hidden_view
    )
    return prepared.run.model.weight_bytes + max(needs.values(), default=0)


def _add_reading(prepared: Prepared, unit: Unit, readings: dict[Place, Reading]) -> None:
    """Add what is read for a unit, unless that fails, which is reported when it is computed."""
    try:
        place = prepared.place(unit)
        if unit.its.head == "needed":
            _ = prepared.run.model.language_model
        if place not in readings:
            reading = prepared.reading(place)
            reading.sizes_missing()  # asks the collector
            readings[place] = reading
    except (NotServedError, TaskError, NoHeadError):
        pass
    except Exception as error:
        if not unit.blamed(error):
            raise


def compute(prepared: Prepared, unit: Unit, *, wait: bool) -> Ending:
    """Compute a unit, and add its record to the run; what fails in a plug-in costs the unit alone.

    Args:
        wait: whether to wait if another run is computing it.
    """
    omissions, model = prepared.run.omissions, prepared.run.name
    try:
        return _compute_once(prepared, unit, wait)
    except BusyError:
        return "busy"
    except NotServedError as error:
        omissions.not_made(f"{unit.title} of {model}", str(error))
    except NoHeadError as error:
        omissions.not_served(model, unit.title, str(error))
    except (TaskError, CollectorError) as error:
        omissions.fail(model, unit.title, str(error))
    except Exception as error:
        if not (why := unit.blamed(error)):
            raise
        # The plug-in may have written to them.
        prepared.forget_features()
        omissions.fail(model, unit.title, why)
    return "left out"


def _compute_once(prepared: Prepared, unit: Unit, wait: bool) -> Ending:
    """Add the unit's record, computed here unless another run has computed it meanwhile.

    Raises:
        BusyError: another run is computing it, and `wait` is false.
    """
    run, lock = prepared.run, unit.path.with_suffix(SUFFIX)
    with locked(lock, waiting=f"for another run to measure {run.title(unit)}", wait=wait):
        run.read_scores_behind(unit)
        _ = prepared.info  # what is asked for depends on the model's layers
        request = run.request(unit, None)
        assert request is not None
        state = run.state(unit, run.stored(unit), request)
        record = state.record
        if state.missing:
            prepared.need({*state.missing, *(request.scored.layers if request.scored else ())})
            record = _measure(prepared, unit, state.missing)
        elif record is not None:
            progress.say(f"read    {run.title(unit)} · another run has computed it", "read")
        if record is None:
            return "left out"
        run.keep(unit, record)
        return "done"


def _measure(prepared: Prepared, unit: Unit, extent: Extent) -> Record | None:
    """The record of a unit, written; None if the corpus does not serve its task after all."""
    context = _context(prepared, unit, extent, prepared.run.scores_behind(unit))
    if context is None:
        return None
    clock = time.perf_counter()
    found = _found(unit, context)
    seconds = {"measure": time.perf_counter() - clock}
    record = record_of(prepared, unit, context, found, seconds)
    _require_describable(prepared, unit, record)
    if found.parameters:
        classes = context.examples.classes if isinstance(context, TaskContext) else ()
        try:
            write_parameters(prepared.run.config.cache_dir, record, found.parameters, classes)
            note_cache(unit.path.parent, prepared.run.config.cache_dir)
        except UserError as error:
            progress.say(f"parameters of {unit.title} are not kept: {error}")
    write_record(unit.path, record, found.arrays)
    prepared.run.index.add(unit.path, record)
    announce_record(record, prepared.run.title(unit), unit.path)
    return record


def _context(
    prepared: Prepared, unit: Unit, extent: Extent, scores: Result | None = None
) -> ModelContext | None:
    """What a unit is measured in; None if the corpus does not serve its task after all.

    Args:
        scores: those that are known of its task and probe.
    """
    if unit.task is not None:
        return _task_context(prepared, unit, extent, scores)
    run, about = prepared.run, _of_model(prepared, unit, extent)
    if unit.its.of == "pair" and prepared.base is not None:
        return PairContext(**about, base=_base_context(prepared.base, unit, extent))
    tasks = []
    for each in run.units_behind(unit):
        if known := run.results.get(each.of):
            tasks.append(_task_context(prepared, each, dict.fromkeys(known.layers, 1), known))
    return ModelContext(**about, tasks=tuple(filter(None, tasks)))


def _task_context(
    prepared: Prepared, unit: Unit, extent: Extent, scores: Result | None
) -> TaskContext | None:
    """The context of a task and its probes; None if the corpus does not serve it after all."""
    assert unit.task is not None
    assert unit.probe is not None
    if (data := prepared.task(unit.task)) is None:
        return None
    run = prepared.run
    probing = Probing(
        data,
        unit.probe,
        run.config.memory or default_budget(data.device) // run.config.workers,
        scores,
        read_predictions(run.paths[scores.key]) if scores else None,
        run.config.cache_dir,
        run.trained_elsewhere(unit) if unit.measurement == TRANSFER else {},
    )
    return TaskContext(**_of_model(prepared, unit, extent), probing=probing)


def _of_model(prepared: Prepared, unit: Unit, extent: Extent) -> dict[str, Any]:
    """The attributes that all contexts have."""
    place = prepared.place(unit)
    return {
        "corpus": prepared.run.corpus.value,
        "model": prepared.info,
        "extent": extent,
        "view": prepared.view(place),
        "stored": prepared.stored(place),
        "read": prepared.read,
        "read_changed": prepared.read_changed,
        "sites": lambda: sites_of(prepared.run.model.encoder.model),
        "device": prepared.device,
        "options": unit.options,
        "title": unit.title,
    }


def _base_context(base: Prepared, unit: Unit, extent: Extent) -> ModelContext:
    """The context of a base: the layers of its own that are asked for, and those of the extent."""
    n_layers = base.info.n_layers
    asked = layers_of(base.run.config, n_layers, base.run.name)
    layers = sorted({*asked, *(layer for layer in extent if layer <= n_layers)})
    base.need(layers)
    context = ModelContext(**_of_model(base, unit, dict.fromkeys(layers, 1)))
    base.release()  # its vectors are enough
    return context


@exact_products()
def _found(unit: Unit, context: ModelContext) -> Found:
    """What is found; of probes in groups of layers that fit in memory, smaller if it runs out."""
    what = f"measuring {unit.title}"
    of_task = isinstance(context, TaskContext)
    less = "--limit, --project or --layers" if of_task else "--limit or --layers"
    with explain_out_of_memory(what, f"use {less}, or free some memory."):
        while True:
            try:
                return as_found(unit.its(context))
            except (MemoryError, RuntimeError) as error:
                if not out_of_memory(error) or not isinstance(context, TaskContext):
                    raise
                if context.probing.least_groups:
                    raise
            # Outside the handler: the error would keep tensors alive.
            probing = replace(context.probing, memory=context.probing.memory // 2)
            context = replace(context, probing=probing)
            progress.say(
                f"not enough memory; {what} continues with {probing.memory / 1e6:,.0f} MB",
                "fewer layers at once",
                memory=probing.memory,
            )


def _require_describable(prepared: Prepared, unit: Unit, record: Record) -> None:
    """Describe what a plug-in has found, so that it fails, if it does, before it is written."""
    its, scores = unit.its, prepared.run.scores_behind(unit)
    if measurements.origin(unit.measurement) is None:
        return
    shown = scores.with_evidence(record) if scores else record
    require_drawable(its, shown)


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
        work = work_of(*data, probe, device, n_cells, its.layers_at_once or 1)
        needs.append(least(work, 0 if its.layers_at_once else len(request.layers)))
    return max(needs, default=0)
