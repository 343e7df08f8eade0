"""From a configuration to its units: what is to be measured, and what is there already.

Nothing here imports torch: a run with nothing left to compute does without it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from probes.common.errors import UserError
from probes.data.sources import Source
from probes.engines.config import RunConfig
from probes.engines.inputs import LazyModel
from probes.engines.settings import options_of
from probes.extraction.windows import WINDOW_RULE
from probes.measurements.joined_results import require_possible
from probes.measurements.measurement import Measurement, Request, get_measurement
from probes.measurements.plugin_keys import (
    digests,
    measurement_plug_in,
    plug_ins_of,
    plugin_failure,
    source_of,
)
from probes.records.base import Frozen
from probes.records.files import is_complete, read_record
from probes.records.keys import Inputs, record_key, record_name
from probes.records.probe_spec import PROBES, ProbeSpec, tuned
from probes.records.record import Extent, Record
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


class Stage(NamedTuple):
    """Units that are made one after the other, before those of the next stage.

    Attributes:
        family: of probes; empty for all.
    """

    measurement: str
    family: str = ""

    @property
    def title(self) -> str:
        """What messages call it."""
        of = f" of {self.family} probes" if self.family else ""
        return self.measurement.replace("_", " ") + of


@dataclass(frozen=True)
class State:
    """What is stored of a unit.

    Attributes:
        record: None if there is none.
        missing: what has to be measured, with what is there already; empty for nothing.
    """

    record: Record | None
    missing: Extent


def units_of(
    config: RunConfig,
    model: LazyModel,
    corpus: Source,
    measurement: str,
    tasks: Sequence[Task] = (),
    families: Sequence[str] = (),
    base: LazyModel | None = None,
) -> Iterator[Unit]:
    """The units of a measurement: for each task and probe family, or one of the corpus as a whole.

    Args:
        base: the model that this one is compared with; without it there are no comparisons.
    """
    its, options = get_measurement(measurement), options_of(config, measurement)
    inputs = Inputs(
        model=model.source.digest,
        corpus=corpus.digest,
        pooling=config.pooling,
        dtype=model.dtype,
        windows=WINDOW_RULE,
    )
    folder = config.output / model.source.slug / corpus.slug
    source = source_of(measurement_plug_in(measurement))

    def unit(
        more: Mapping[str, Any], task: Task | None = None, probe: ProbeSpec | None = None
    ) -> Unit:
        digest, settings = inputs.model_copy(update=more).digest, options.model_dump(mode="json")
        key = record_key(digest, measurement, its.version, settings, source)
        return Unit(measurement, task, probe, options, digest, key, folder)

    if its.of_tasks:
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
                yield unit(of_probes, task, spec)
    elif not its.of_two_models:
        yield unit({})
    elif base is not None:
        yield unit({"base": f"{base.source.digest} {base.dtype}"})


def state_of(unit: Unit, record: Record | None, request: Request, *, recompute: bool) -> State:
    """What is stored of a unit, and what has to be measured.

    Args:
        record: see `stored`.
        recompute: whether to measure again what is there.
    """
    its, wanted = unit.its, unit.its.extent(request)
    if record is None or not wanted:
        return State(record, wanted)
    if its.is_complete(record, request) and not recompute:
        return State(record, {})
    # With what is stored, so that nothing is lost.
    return State(record, its.united(record.extent, wanted))


def stored(unit: Unit) -> Record | None:
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
