"""Plug-ins that a record depends on, and whether its key follows from what it says.

Keys identify plug-ins by the digests of their sources.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from probes.common.errors import UserError
from probes.common.origin import described, failing_line
from probes.common.registry import Registry
from probes.data.registered import corpora
from probes.extraction.reading.windows import LEFT_TO_RIGHT_RULE, WINDOW_RULE
from probes.measurements.measurement import get_measurement, measurements
from probes.records.header import PlugIn
from probes.records.record import NUMERICS, RESAMPLING, Inputs, Record, record_key
from probes.statistics.metrics import metrics
from probes.tasks.builtin import tasks
from probes.tasks.task import SITE_VERSIONS, Task, plain_name
from probes.training.families import probe_families

REGISTRIES: dict[str, Registry[object]] = {
    registry.noun: registry  # type: ignore[misc]
    for registry in (tasks, metrics, probe_families, measurements, corpora)
}


RULES_OF_KEYS = f"{WINDOW_RULE}, {LEFT_TO_RIGHT_RULE}, {RESAMPLING}, {NUMERICS}, {SITE_VERSIONS}"
"""Versions in keys that are not of one task or measurement. `key_follows` depends on them."""


def plug_ins_of(
    task: Task | None = None, family: str = "", measurement: str = ""
) -> tuple[PlugIn, ...]:
    """The plug-ins among a task, its metrics, a probe family and a measurement."""
    return tuple(
        PlugIn(
            kind=kind,
            name=name,
            source=origin.name,
            distribution=origin.distribution,
            sha256=origin.sha256,
        )
        for kind, name in parts_of(task, family, measurement)
        if (origin := REGISTRIES[kind].origin(name))
    )


def source_of(plug_ins: Iterable[PlugIn]) -> str:
    """SHA-256 of the measurement among plug-ins; empty if there is none."""
    return "".join(plug_in.sha256 for plug_in in plug_ins if plug_in.kind == "measurement")


def plugin_failure(error: Exception, measurement: str, task: Task | None, family: str) -> str:
    """The message for an error caused by a plug-in's measurement, metric or probe family.

    Empty if no plug-in is involved, or if the error is already a message for the user.
    """
    if isinstance(error, UserError):
        return ""
    plug_ins = [
        (kind, name, origin)
        for kind, name in reversed([*parts_of(task, family, measurement)])
        if kind != "task" and (origin := REGISTRIES[kind].origin(name))
    ]
    for kind, name, origin in plug_ins:
        if line := failing_line(error, origin):
            return f"the {kind} {name!r} raised {described(error)}. Fix {line}."
    if plug_ins:
        # A bad return value may cause an error only later.
        suspects = " and ".join(
            f"the {kind} {name!r} of {origin}" for kind, name, origin in plug_ins
        )
        return f"{described(error)}, with {suspects}. Fix the value it returns (-v shows where)."
    return ""


def parts_of(task: Task | None, family: str, measurement: str = "") -> Iterator[tuple[str, str]]:
    """Kinds and names of a task, its metrics, a probe family and a measurement."""
    if task:
        yield "task", plain_name(task.name)
        for name in (task.metric, *task.also):
            yield "metric", name
        yield "probe family", family
    if measurement:
        yield "measurement", measurement


def digests(plug_ins: Iterable[PlugIn]) -> dict[str, str]:
    """Part of a key: SHA-256 of the sources of plug-ins, by kind and name."""
    return {f"{plug_in.kind} {plug_in.name}": plug_in.sha256 for plug_in in plug_ins}


def plug_ins_text(plug_ins: Iterable[PlugIn]) -> str:
    """The plug-ins as text, with short digests; empty if there are none."""
    return ", ".join(f"{name} {sha256[:8]}" for name, sha256 in digests(plug_ins).items())


def key_follows(record: Record) -> bool:
    """Whether this version gives a record's inputs, settings and versions the key that it has."""
    task = record.task
    # Keys are made before a model is loaded, when it may be unknown if it is causal.
    rules = {LEFT_TO_RIGHT_RULE}
    if not (record.model.causal and record.encoding.texts_in_several_windows):
        rules.add(WINDOW_RULE)
    inputs = Inputs(
        model=record.model.digest,
        corpus=record.corpus.digest_of_task or record.corpus.digest,
        pooling=record.pooling,
        dtype=record.dtype,
        windows="",
        chats=record.encoding.chats,
        task=task.name if task else "",
        task_version=task.version if task else 0,
        kind=task.kind if task else "",
        probe=record.probe,
        project=record.project if record.probe else None,
        ranking=task.ranking if task else None,
        plug_ins=digests(x for x in record.plug_ins if x.kind != "measurement"),
    )
    name = record.measurement
    spans_tasks = name in measurements and get_measurement(name).spans_tasks
    # The record lacks the number of documents, the base's data type and the keys of scores.
    input_digests = {
        inputs.model_copy(update={"windows": rule, "few_documents": few}).digest
        for rule in rules
        for few in (False, True)
    }
    if record.base or spans_tasks:
        input_digests = {record.inputs}
    source = source_of(record.plug_ins)
    version = record.measurement_version
    keys = {record_key(digest, name, version, record.settings, source) for digest in input_digests}
    return record.key in keys
