"""What a run needs: which units are done already, and which remain. No torch here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from common.errors import UserError
from common.files import folder_name
from data.sources import Source
from probes.config import PROBES, WINDOW_RULE, Family, ProbeSpec, RunConfig
from probes.models import ModelSource
from probes.results import FitKey, Result, covers, read_result
from tasks.builtin import tasks
from tasks.task import Task


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
            if not (unit.path.exists() and unit.path.with_suffix(".npz").exists()):
                todo.append(unit)
                continue
            if config.overwrite == "never":
                raise UserError(
                    f"{unit.path} is there already, and --overwrite is 'never'; "
                    "name another --output, or use --overwrite missing."
                )
            result = read_result(unit.path)
            complete = covers(result, config.layers, config.seeds, config.quick)
            if complete and config.overwrite != "always":
                done.append(result)
            else:
                todo.append(_extended(unit, result))
    return Plan(folder, paths, tuple(done), tuple(todo))


def _unit(
    config: RunConfig, model: ModelSource, corpus: Source, task: Task, family: Family, folder: Path
) -> FitUnit:
    key = _key(model.digest, corpus.digest, task.name, task.version, family, config)
    path = folder / f"{folder_name(task.name)}-{family}-{key[:8]}.json"
    return FitUnit(task, PROBES[family], config.layers, config.seeds, config.quick, key, path)


def _key(
    model: str, corpus: str, task: str, version: int, family: Family, how: RunConfig | Result
) -> str:
    """Digest of what decides a unit's scores, by this version's tasks and probes.

    Args:
        model, corpus: their digests.
        how: says the pooling, the precision and the projection.
    """
    return FitKey(
        model=model,
        corpus=corpus,
        task=task,
        task_version=version,
        probe=PROBES[family],
        pooling=how.pooling,
        dtype=how.dtype,
        project=how.project,
        windows=WINDOW_RULE,
    ).digest


def is_current(result: Result) -> bool:
    """Whether a result is what this version would compute for the same inputs.

    A task that is not registered, being a column of the user's data, is taken at its word.
    """
    name, family = result.task.name, result.probe.family
    version = tasks.get(name).version if name in tasks else result.task.version
    key = _key(result.model.digest, result.corpus.digest, name, version, family, result)
    return result.key == key


def _extended(unit: FitUnit, result: Result) -> FitUnit:
    """The unit, asking also for what a stored result already holds, so that nothing is lost."""
    present = tuple(layer.layer for layer in result.layers)
    layers = tuple(sorted({*unit.layers, *present})) if unit.layers else ()
    n_seeds = max(unit.n_seeds, *(len(layer.cells) for layer in result.layers))
    quick = unit.quick and result.quick
    return replace(unit, layers=layers, n_seeds=n_seeds, quick=quick)
