"""From a configuration to its units: what is to be measured, and what is there already.

Nothing here imports torch: a run with nothing left to compute does without it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from probes.common.errors import UserError
from probes.data.sources import Source
from probes.engines.config import RunConfig
from probes.engines.inputs import LazyModel
from probes.engines.validation import options_of
from probes.extraction.windows import WINDOW_RULE
from probes.measurements.measurement import Measurement, Request, get_measurement
from probes.measurements.plugin_keys import digests, measurement_plug_in, plug_ins_of, source_of
from probes.measurements.results import require_possible
from probes.records.base import Frozen
from probes.records.files import is_complete, read_record
from probes.records.keys import Inputs, record_key, record_name
from probes.records.probe_spec import PROBES, ProbeSpec, tuned
from probes.records.record import AnyRecord, Extent
from probes.records.result import SCORES
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
        path: its file.
    """

    measurement: str
    task: Task | None
    probe: ProbeSpec | None
    options: Frozen
    inputs: str
    key: str
    path: Path

    @property
    def title(self) -> str:
        """What messages call it."""
        if self.task is None or self.probe is None:
            return self.measurement
        scored = f"{self.task.name} · {self.probe.family}"
        return scored if self.measurement == SCORES else f"{scored} · {self.measurement}"


@dataclass(frozen=True)
class State:
    """What is stored of a unit.

    Attributes:
        record: None if there is none.
        missing: what has to be measured, with what is there already; empty for nothing.
    """

    record: AnyRecord | None
    missing: Extent


def probe_units(
    config: RunConfig,
    model: LazyModel,
    corpus: Source,
    tasks: Sequence[Task],
    families: Sequence[str],
    measurement: str,
) -> Iterator[Unit]:
    """The units of one measurement of probes, for each task and probe family that it serves."""
    its, vectors = get_measurement(measurement), _vectors(config, model, corpus)
    for task in tasks:
        for family in dict.fromkeys(families):
            spec = tuned(PROBES[family]) if config.tune else PROBES[family]
            of_probes = {
                "task": task.name,
                "task_version": task.version,
                "kind": task.kind,
                "probe": spec,
                "fit_dtype": config.fit_dtype,
                "project": config.project,
                "plug_ins": digests(plug_ins_of(task, family)),
            }
            inputs = vectors.model_copy(update=of_probes)
            yield _unit(config, model, corpus, its, inputs, task, spec)


def corpus_unit(
    config: RunConfig,
    model: LazyModel,
    corpus: Source,
    measurement: str,
    base: LazyModel | None = None,
) -> Unit:
    """The unit of a measurement of the corpus as a whole.

    Args:
        base: the model that this one is compared with.
    """
    inputs = _vectors(config, model, corpus)
    if base is not None:
        inputs = inputs.model_copy(update={"base": f"{base.source.digest} {base.dtype}"})
    return _unit(config, model, corpus, get_measurement(measurement), inputs, None, None)


def _vectors(config: RunConfig, model: LazyModel, corpus: Source) -> Inputs:
    """The inputs of whatever reads a model's vectors of a corpus."""
    return Inputs(
        model=model.source.digest,
        corpus=corpus.digest,
        pooling=config.pooling,
        dtype=model.dtype,
        windows=WINDOW_RULE,
    )


def _unit(
    config: RunConfig,
    model: LazyModel,
    corpus: Source,
    its: Measurement,
    inputs: Inputs,
    task: Task | None,
    probe: ProbeSpec | None,
) -> Unit:
    options = options_of(config, its.name)
    source = source_of(measurement_plug_in(its.name))
    settings = options.model_dump(mode="json")
    key = record_key(inputs.digest, its.name, its.version, settings, source)
    name = record_name(task.name if task else "", probe.family if probe else "", its.name, key)
    path = config.output / model.source.slug / corpus.slug / name
    return Unit(its.name, task, probe, options, inputs.digest, key, path)


def state_of(unit: Unit, record: AnyRecord | None, request: Request, *, recompute: bool) -> State:
    """What is stored of a unit, and what has to be measured.

    Args:
        record: see `stored`.
        recompute: whether to measure again what is there.
    """
    its = get_measurement(unit.measurement)
    wanted = its.extent(request)
    if record is None or not wanted:
        return State(record, wanted)
    if its.is_complete(record, request) and not recompute:
        return State(record, {})
    # With what is stored, so that nothing is lost.
    return State(record, its.united(record.extent, wanted))


def stored(unit: Unit) -> AnyRecord | None:
    """The record of a unit; None if there is none, or not all of it.

    Raises:
        UserError: it cannot be read.
    """
    if not unit.path.exists():
        return None
    record = read_record(unit.path)
    require_possible(record, unit.path)
    if record.key != unit.key:
        raise UserError(f"{unit.path}: the record of another key; delete it and run again.")
    return record if is_complete(unit.path, record) else None


def refuse_existing(units: Sequence[Unit]) -> None:
    """For `--overwrite never`.

    Raises:
        UserError: a record exists already.
    """
    for unit in units:
        if unit.path.exists():
            raise UserError(
                f"{unit.path} exists already, and --overwrite is 'never'; "
                "name another --output, or use --overwrite missing."
            )


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
