"""From a configuration to its units: which are done already, and which remain. Imports no torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from probes.common.errors import UserError
from probes.data.sources import Source
from probes.engines.config import RunConfig
from probes.extraction.model_files import ModelSource
from probes.extraction.windows import WINDOW_RULE
from probes.measurements.plugin_keys import digests, plug_ins_of
from probes.records.files import read_result
from probes.records.keys import FitKey, result_name
from probes.records.probe_spec import PROBES, ProbeSpec, tuned
from probes.records.result import Result, covers
from probes.tasks.task import Task


@dataclass(frozen=True)
class FitUnit:
    """The fits of one task with one probe family, which give one result.

    Attributes:
        task: what is predicted.
        probe: how its probes are fitted.
        layers: layer numbers; empty for all.
        n_seeds: seeds 0 to n_seeds - 1.
        quick: whether controls, description length and localisation are left out.
        key: digest of everything that determines its scores.
        path: the JSON file of its result.
    """

    task: Task
    probe: ProbeSpec
    layers: tuple[int, ...]
    n_seeds: int
    quick: bool
    key: str
    path: Path

    @property
    def title(self) -> str:
        """What messages call it."""
        return f"{self.task.name} · {self.probe.family}"


@dataclass(frozen=True)
class Plan:
    """The units of one model on one corpus.

    Attributes:
        folder: where the results of this model and corpus are.
        paths: the file of each result, by its key.
        done: results that exist already.
        todo: units that remain.
    """

    folder: Path
    paths: dict[str, Path]
    done: tuple[Result, ...]
    todo: tuple[FitUnit, ...]


def make_plan(
    config: RunConfig, model: ModelSource, corpus: Source, chosen: Sequence[Task]
) -> Plan:
    """Decide, from digests alone, what has to be computed.

    Raises:
        UserError: `--overwrite never`, and a result exists already.
    """
    folder = config.output / model.slug / corpus.slug
    done, todo, paths = [], [], {}
    for task in chosen:
        for family in dict.fromkeys(config.probes):
            unit = _unit(config, model, corpus, task, family, folder)
            paths[unit.key] = unit.path
            if config.overwrite == "never" and _exists(unit.path):
                raise UserError(
                    f"{unit.path} exists already, and --overwrite is 'never'; "
                    "name another --output, or use --overwrite missing."
                )
            left = remaining(unit, recompute=config.overwrite == "always")
            if isinstance(left, Result):
                done.append(left)
            else:
                todo.append(left)
    return Plan(folder, paths, tuple(done), tuple(todo))


def remaining(unit: FitUnit, *, recompute: bool) -> Result | FitUnit:
    """The unit's result if it is complete; else the unit, extended to what is stored of it.

    Args:
        recompute: whether to compute a complete result again.

    Raises:
        UserError: the stored result cannot be read.
    """
    if not _exists(unit.path):
        return unit
    result = read_result(unit.path)
    complete = covers(result, unit.layers, unit.n_seeds, unit.quick)
    return result if complete and not recompute else _extended(unit, result)


def _exists(path: Path) -> bool:
    return path.exists() and path.with_suffix(".npz").exists()


def _unit(
    config: RunConfig, model: ModelSource, corpus: Source, task: Task, family: str, folder: Path
) -> FitUnit:
    spec = tuned(PROBES[family]) if config.tune else PROBES[family]
    key = FitKey(
        model=model.digest,
        corpus=corpus.digest,
        task=task.name,
        task_version=task.version,
        kind=task.kind,
        probe=spec,
        pooling=config.pooling,
        dtype=config.dtype,
        fit_dtype=config.fit_dtype,
        project=config.project,
        windows=WINDOW_RULE,
        plug_ins=digests(plug_ins_of(task, family)),
    ).digest
    path = folder / result_name(task.name, family, key)
    return FitUnit(task, spec, config.layers, config.seeds, config.quick, key, path)


def _extended(unit: FitUnit, result: Result) -> FitUnit:
    """The unit with the layers and seeds of a stored result added, so that none is lost."""
    present = tuple(layer.layer for layer in result.layers)
    layers = tuple(sorted({*unit.layers, *present})) if unit.layers else ()
    n_seeds = max(unit.n_seeds, *(len(layer.cells) for layer in result.layers))
    quick = unit.quick and result.quick
    return replace(unit, layers=layers, n_seeds=n_seeds, quick=quick)
