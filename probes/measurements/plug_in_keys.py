"""What identifies code that does not ship, in the key of every result that it decided."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from probes.common.errors import UserError
from probes.common.origin import described, place_in
from probes.common.registry import Registry
from probes.records.header import PlugIn, TaskRecord
from probes.statistics.metrics import metrics
from probes.tasks.builtin import tasks
from probes.tasks.task import Task
from probes.training.families import families

REGISTRIES: dict[str, Registry[object]] = {
    registry.noun: registry  # type: ignore[misc]
    for registry in (tasks, metrics, families)
}


def plug_ins_of(task: Task, family: str) -> tuple[PlugIn, ...]:
    """The plug-ins among a task, its metrics and a probe family."""
    return tuple(
        PlugIn(
            kind=kind,
            name=name,
            source=origin.name,
            distribution=origin.distribution,
            sha256=origin.sha256,
        )
        for kind, name in _parts(task.name, (task.metric, *task.also), family)
        if (origin := REGISTRIES[kind].origin(name))
    )


def blame(error: Exception, task: Task, family: str) -> str:
    """What to say of an error that a metric or a probe family of a plug-in made.

    Empty if none is to blame: a mistake of ours, or one that has been put in words already.
    """
    if isinstance(error, UserError):
        return ""
    own = [
        (kind, name, origin)
        for kind, name in _parts(task.name, (task.metric, *task.also), family)
        if kind != "task" and (origin := REGISTRIES[kind].origin(name))
    ]
    for kind, name, origin in own:
        if place := place_in(error, origin):
            return f"the {kind} {name!r} raised {described(error)}. Mend {place}."
    if own:
        # What a plug-in gives may be noticed only where it is used.
        suspects = " and ".join(f"the {kind} {name!r} of {origin}" for kind, name, origin in own)
        return f"{described(error)}, with {suspects}. Mend what it gives (-v shows where)."
    return ""


def _parts(task: str, metrics: Iterable[str], family: str) -> Iterator[tuple[str, str]]:
    yield "task", task
    for name in metrics:
        yield "metric", name
    yield "probe family", family


def digests(plug_ins: Iterable[PlugIn]) -> dict[str, str]:
    """What of plug-ins goes into a key: by kind and name, the SHA-256 of their source."""
    return {f"{each.kind} {each.name}": each.sha256 for each in plug_ins}


def as_loaded(task: TaskRecord, family: str, plug_ins: Iterable[PlugIn]) -> bool:
    """Whether the parts of a result are those that are loaded now.

    What is not registered, being a plug-in that is not loaded, is taken at its word.
    """
    recorded = {(each.kind, each.name): each.sha256 for each in plug_ins}
    for kind, name in {*recorded, *_parts(task.name, (task.metric,), family)}:
        origin = REGISTRIES[kind].origin(name)
        now = origin and origin.sha256
        if name in REGISTRIES[kind] and recorded.get((kind, name)) != now:
            return False
    return True


def in_words(plug_ins: Iterable[PlugIn]) -> str:
    """What tells the sources of two results apart; empty if all ships."""
    return ", ".join(f"{name} {sha256[:8]}" for name, sha256 in digests(plug_ins).items())
