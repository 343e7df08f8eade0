"""What a run needs: which units are done already, and which remain. No torch here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from probes.common.errors import UserError
from probes.data.sources import Source
from probes.engines.config import RunConfig
from probes.extraction.model_files import ModelSource
from probes.extraction.windows import WINDOW_RULE
from probes.measurements.plug_in_keys import digests, plug_ins_of
from probes.records.files import read_result
from probes.records.keys import FitKey, result_name
from probes.records.probe_spec import PROBES, ProbeSpec
from probes.records.result import Result, covers
from probes.tasks.task import Task


@dataclass(frozen=True)
class FitUnit:
    """One result to come: a plain value, all inputs named.

    Attributes:
        task: what is predicted.
        probe: how its probes are fitted.
        layers: layer numbers; empty for all.
        n_seeds: seeds 0 to n_seeds - 1.
        quick: whether controls, description length and localisation are left out.
        key: digest of everything that decides its scores.
        path: where its JSON goes.
    """

    task: Task
    probe: ProbeSpec
    layers: tuple[int, ...]
    n_seeds: int
    quick: bool
    key: str
    path: Path


@dataclass(frozen=True)
class Plan:
    """The units of one model on one corpus.

    Attributes:
        done: results that are there already.
        todo: units that remain.
        paths: where each result is or will be, by its key.
    """

    folder: Path
    paths: dict[str, Path]
    done: tuple[Result, ...]
    todo: tuple[FitUnit, ...]


def make_plan(
    config: RunConfig, model: ModelSource, corpus: Source, chosen: Sequence[Task]
) -> Plan:
    """Decide from digests alone what has to be computed.

    Raises:
        UserError: `--overwrite never` and a result is there already.
    """
    folder = config.output / model.slug / corpus.slug
    done, todo, paths = [], [], {}
    for task in chosen:
        for family in dict.fromkeys(config.probes):
            unit = _unit(config, model, corpus, task, family, folder)
            paths[unit.key] = unit.path
            if config.overwrite == "never" and _is_there(unit.path):
                raise UserError(
                    f"{unit.path} is there already, and --overwrite is 'never'; "
                    "name another --output, or use --overwrite missing."
                )
            left = what_is_left(unit, anew=config.overwrite == "always")
            if isinstance(left, Result):
                done.append(left)
            else:
                todo.append(left)
    return Plan(folder, paths, tuple(done), tuple(todo))


def what_is_left(unit: FitUnit, *, anew: bool) -> Result | FitUnit:
    """The unit's result if all of it is there; else the unit, with what there is of it.

    Args:
        anew: whether a result that is there is to be computed again.

    Raises:
        UserError: what is there cannot be read.
    """
    if not _is_there(unit.path):
        return unit
    result = read_result(unit.path)
    complete = covers(result, unit.layers, unit.n_seeds, unit.quick)
    return result if complete and not anew else _extended(unit, result)


def _is_there(path: Path) -> bool:
    return path.exists() and path.with_suffix(".npz").exists()


def _unit(
    config: RunConfig, model: ModelSource, corpus: Source, task: Task, family: str, folder: Path
) -> FitUnit:
    key = FitKey(
        model=model.digest,
        corpus=corpus.digest,
        task=task.name,
        task_version=task.version,
        kind=task.kind,
        probe=PROBES[family],
        pooling=config.pooling,
        dtype=config.dtype,
        project=config.project,
        windows=WINDOW_RULE,
        plug_ins=digests(plug_ins_of(task, family)),
    ).digest
    path = folder / result_name(task.name, family, key)
    return FitUnit(task, PROBES[family], config.layers, config.seeds, config.quick, key, path)


def _extended(unit: FitUnit, result: Result) -> FitUnit:
    """The unit, asking also for what a stored result already holds, so that nothing is lost."""
    present = tuple(layer.layer for layer in result.layers)
    layers = tuple(sorted({*unit.layers, *present})) if unit.layers else ()
    n_seeds = max(unit.n_seeds, *(len(layer.cells) for layer in result.layers))
    quick = unit.quick and result.quick
    return replace(unit, layers=layers, n_seeds=n_seeds, quick=quick)
