"""Computes one unit in this process, and writes its record."""

from __future__ import annotations

import time
from collections.abc import Sequence

from probes.common.errors import UserError, out_of_memory
from probes.common.locks import SUFFIX, BusyError, locked
from probes.common.terminal import progress
from probes.compute.memory import default_budget, explain_out_of_memory
from probes.compute.precision import exact_products
from probes.engines.announcements import announce_record
from probes.engines.memory_check import require_memory
from probes.engines.plan import State, Unit, layers_of, state_of, stored
from probes.engines.prepared import Prepared
from probes.engines.recording import record_of
from probes.engines.units import Encode, Ending, Place
from probes.examples.examples import NotServedError
from probes.extraction.collectors import CollectorError
from probes.extraction.encoding import Reading, require_space
from probes.extraction.store import Store
from probes.measurements.corpus_context import CorpusContext
from probes.measurements.measurement import (
    CorpusMeasurement,
    Found,
    PairMeasurement,
    ProbeMeasurement,
    as_found,
    get_measurement,
    measurements,
)
from probes.measurements.plugin_keys import plugin_failure
from probes.measurements.probe_context import ProbeContext
from probes.measurements.scores import read_predictions
from probes.records.files import write_record
from probes.records.parameters import write_parameters
from probes.records.record import AnyRecord, Extent
from probes.records.result import SCORES
from probes.tasks.validation import TaskError
from probes.training.dataset import ProbingData


def plan(prepared: Prepared, todo: Sequence[tuple[Unit, State]]) -> list[Encode]:
    """The shards that are missing for some units, after checking that all of it is possible.

    Raises:
        UserError: `--layers` names a layer that the model does not have, `--project` is wider
            than its vectors, `--memory` is less than a unit needs, or the disk is too small.
    """
    run, info, units = prepared.run, prepared.info, [unit for unit, _ in todo]
    layers = layers_of(run.config, info.n_layers, run.name)
    if (run.config.project or 0) > info.hidden_size:
        raise UserError(
            f"--project {run.config.project}: the vectors of {run.name} have "
            f"only {info.hidden_size} dimensions; give at most that."
        )
    require_memory(run, units, info.hidden_size, prepared.device, prepared.hidden_view)
    prepared.need(set(layers).union(*(state.missing for _, state in todo)))
    readings: dict[Place, Reading] = {}
    for unit in units:
        _add_reading(prepared, unit, readings)
    require_space(list(readings.values()))
    return [
        Encode(run.name, *place, prepared.layers, shard, n_bytes)
        for place, reading in readings.items()
        for shard, n_bytes in reading.sizes_missing().items()
    ]


def _add_reading(prepared: Prepared, unit: Unit, readings: dict[Place, Reading]) -> None:
    """Add what is read for a unit, unless that fails, which is reported when it is computed."""
    try:
        place = prepared.place(unit)
        if place not in readings:
            reading = prepared.reading(place)
            reading.sizes_missing()  # asks the collector
            readings[place] = reading
    except (NotServedError, TaskError):
        pass
    except Exception as error:
        family = unit.probe.family if unit.probe else ""
        if not plugin_failure(error, unit.measurement, unit.task, family):
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
    except (TaskError, CollectorError) as error:
        omissions.fail(model, unit.title, str(error))
    except Exception as error:
        family = unit.probe.family if unit.probe else ""
        why = plugin_failure(error, unit.measurement, unit.task, family)
        if not why:
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
        recompute = run.config.overwrite == "always"
        state = state_of(unit, stored(unit), request, recompute=recompute)
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


def _measure(prepared: Prepared, unit: Unit, extent: Extent) -> AnyRecord | None:
    """The record of a unit, written; None if the corpus does not serve its task after all."""
    its = get_measurement(unit.measurement)
    classes: Sequence[str] = ()
    if unit.task is None:
        base = None
        if prepared.base is not None and isinstance(its, PairMeasurement):
            base = _base_context(prepared.base, unit, extent)
        context = _corpus_context(prepared, unit, tuple(extent), base)
        clock = time.perf_counter()
        found: Found = as_found(its.compute(context))  # type: ignore[attr-defined]
        view_name: str = context.view.name
        store: Store = context.stored
    else:
        of_task = prepared.task(unit.task)
        if of_task is None:
            return None
        data, store = of_task
        view_name, classes = data.examples.view, data.examples.classes
        clock = time.perf_counter()
        found = _measure_probes(prepared, unit, extent, data)
    seconds = {"measure": time.perf_counter() - clock}
    record = record_of(prepared, unit, extent, found, view_name, store.encoding, seconds)
    _require_describable(prepared, unit, record)
    if found.parameters:
        _keep_parameters(prepared, unit, record, found, classes)
    write_record(unit.path, record, found.arrays)
    announce_record(record, prepared.run.title(unit), unit.path)
    return record


def _keep_parameters(
    prepared: Prepared, unit: Unit, record: AnyRecord, found: Found, classes: Sequence[str]
) -> None:
    """Write what was fitted to the cache; that it may not be written costs nothing else."""
    try:
        write_parameters(prepared.run.config.cache_dir, record, found.parameters, classes)
    except UserError as error:
        progress.say(f"parameters of {unit.title} are not kept: {error}")


def _require_describable(prepared: Prepared, unit: Unit, record: AnyRecord) -> None:
    """Describe what a plug-in has found, so that it fails, if it does, before it is written."""
    its = get_measurement(unit.measurement)
    if measurements.origin(unit.measurement) is None:
        return
    if isinstance(its, CorpusMeasurement):
        for table in its.tables(record):
            _ = table.texts
    elif isinstance(its, ProbeMeasurement) and unit.task and unit.probe:
        result = prepared.run.results[unit.task.name, unit.probe.family].with_evidence(record)
        for table in its.tables([result]):
            _ = table.texts
        its.curves({result.model.name: result})


def _corpus_context(
    prepared: Prepared, unit: Unit, layers: tuple[int, ...], base: CorpusContext | None = None
) -> CorpusContext:
    place = prepared.place(unit)
    return CorpusContext(
        corpus=prepared.run.corpus.value,
        model=prepared.info,
        layers=layers,
        view=prepared.view(place),
        stored=prepared.stored(place),
        read=prepared.read,
        device=prepared.device,
        options=unit.options,
        title=unit.title,
        base=base,
    )


def _base_context(prepared: Prepared, unit: Unit, extent: Extent) -> CorpusContext:
    """The context of a base: the layers of its own that are asked for, and those of the extent."""
    run, n_layers = prepared.run, prepared.info.n_layers
    asked = layers_of(run.config, n_layers, run.name)
    layers = tuple(sorted({*asked, *(layer for layer in extent if layer <= n_layers)}))
    prepared.need(layers)
    context = _corpus_context(prepared, unit, layers)
    prepared.release()  # its vectors are enough
    return context


@exact_products()
def _measure_probes(prepared: Prepared, unit: Unit, extent: Extent, data: ProbingData) -> Found:
    """Measure in groups of layers that fit in memory, in smaller ones if memory runs out."""
    assert unit.task
    assert unit.probe
    run, its = prepared.run, get_measurement(unit.measurement)
    scores = run.results.get((unit.task.name, unit.probe.family))
    if unit.measurement == SCORES:
        scores = None
    arrays = read_predictions(run.paths[scores.key]) if scores else None
    memory = run.config.memory or default_budget(data.device) // run.config.workers
    what = f"measuring {unit.title}"
    with explain_out_of_memory(what, "use --limit, --project or --layers, or free some memory."):
        while True:
            context = ProbeContext(
                data=data,
                spec=unit.probe,
                extent=extent,
                memory=memory,
                title=unit.title,
                options=unit.options,
                scores=scores,
                arrays=arrays,
                cache=run.config.cache_dir,
            )
            try:
                found: Found = as_found(its.compute(context))  # type: ignore[attr-defined]
                return found
            except (MemoryError, RuntimeError) as error:
                if not out_of_memory(error) or context.least_groups:
                    raise
            # Outside the handler: the error would keep tensors alive.
            memory //= 2
            progress.say(
                f"not enough memory; {what} continues with {memory / 1e6:,.0f} MB",
                "fewer layers at once",
                memory=memory,
            )
