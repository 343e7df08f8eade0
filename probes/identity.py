"""What identifies code that does not ship, in the key of every result that it decided."""

from __future__ import annotations

from collections.abc import Iterable

from common.origin import Origin
from probes.families import families
from probes.metrics import metrics
from probes.records import PlugIn
from tasks.builtin import tasks
from tasks.task import Task


def plug_ins_of(task: Task, family: str) -> tuple[PlugIn, ...]:
    """The plug-ins among a task, its metrics and a probe family."""
    parts = [("task", task.name), *(("metric", name) for name in (task.metric, *task.also))]
    return tuple(
        PlugIn(
            kind=kind,
            name=name,
            source=origin.name,
            distribution=origin.distribution,
            sha256=origin.sha256,
        )
        for kind, name in (*parts, ("probe family", family))
        if (origin := _origin(kind, name))
    )


def digests(plug_ins: Iterable[PlugIn]) -> dict[str, str]:
    """What of plug-ins goes into a key: by kind and name, the SHA-256 of their source."""
    return {f"{each.kind} {each.name}": each.sha256 for each in plug_ins}


def as_loaded(plug_ins: Iterable[PlugIn]) -> bool:
    """Whether these are what is loaded now; one that is not loaded is taken at its word."""
    return all(
        (origin := _origin(each.kind, each.name)) is None or origin.sha256 == each.sha256
        for each in plug_ins
    )


def in_words(plug_ins: Iterable[PlugIn]) -> str:
    """What tells the sources of two results apart; empty if all ships."""
    return ", ".join(f"{name} {sha256[:8]}" for name, sha256 in digests(plug_ins).items())


def _origin(kind: str, name: str) -> Origin | None:
    registry = {"task": tasks, "metric": metrics, "probe family": families}[kind]
    return registry.origin(name)  # type: ignore[attr-defined,no-any-return]
