"""Whether stored records are current: whether this version, with the plug-ins loaded now, would
compute the same.

A record that cannot be one of its measurement is *damaged*: reading refuses it
(`probes.frames.record_validation`). Any other is *current*, or of another version, which a reason
in words says. What is not loaded counts as unchanged: a measurement, a column of the user's data,
and a plug-in, of which the source counts that was written last.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import pandas as pd

from probes.frames.header_columns import values
from probes.measurements.measurement import get_measurement, measurements
from probes.measurements.plugin_keys import REGISTRIES
from probes.records.probe_spec import PROBES
from probes.records.record import Record
from probes.tasks.builtin import version_of
from probes.tasks.task import plain_name

Part = tuple[str, str]
"""The kind and name of a task, metric, probe family or measurement."""


class Definition(NamedTuple):
    """The columns of a header that say how its record was made; they tell if it is current."""

    measurement: str
    measurement_version: int
    task: str | None
    task_version: int | None
    task_metric: str | None
    probe: str | None
    probe_digest: str | None
    sources: str
    key_follows: bool


def why_outdated(record: Record) -> str:
    """The reason why this version would not compute a record; empty if it is current."""
    return _why_outdated(Definition(*values(record, Definition._fields)), {})


def reasons_outdated(headers: pd.DataFrame) -> list[str]:
    """`why_outdated` for every record of a frame."""
    columns = headers[[*Definition._fields]].astype(object)
    definitions = [
        Definition(*x)
        for x in columns.where(columns.notna(), None).itertuples(index=False, name=None)
    ]
    last_sources: dict[Part, str] = {}
    for _, sources in sorted(zip(headers["written"], headers["sources"], strict=True)):
        last_sources |= _sources(sources)
    # Many records are defined alike.
    reasons = {x: _why_outdated(x, last_sources) for x in dict.fromkeys(definitions)}
    return [reasons[x] for x in definitions]


def _why_outdated(definition: Definition, last_sources: Mapping[Part, str]) -> str:
    recorded_sources = _sources(definition.sources)
    for kind, name in dict.fromkeys((*recorded_sources, *_parts(definition))):
        recorded_source = recorded_sources.get((kind, name))
        if kind in REGISTRIES and name in REGISTRIES[kind]:
            origin = REGISTRIES[kind].origin(name)
            source = origin.sha256 if origin else None
        else:
            source = last_sources.get((kind, name), recorded_source)
        if recorded_source != source:
            return f"another source of the {kind} {name}"
    measurement, task, probe = definition.measurement, definition.task, definition.probe
    version = get_measurement(measurement).version if measurement in measurements else None
    for name, recorded_version, version_now in (
        (measurement, definition.measurement_version, version),
        (f"the task {task}", definition.task_version, version_of(task) if task else None),
    ):
        if version_now not in (None, recorded_version):
            return f"{name}: version {recorded_version}, now {version_now}"
    if probe in PROBES and PROBES[probe].digest != definition.probe_digest:
        return f"another specification of the {probe} probe"
    return "" if definition.key_follows else "another way of computing"


def _parts(definition: Definition) -> Iterator[Part]:
    """The parts that may be plug-ins now, whatever they were when the record was made."""
    yield "measurement", definition.measurement
    if definition.task and definition.task_metric and definition.probe:
        yield "task", plain_name(definition.task)
        yield "metric", definition.task_metric
        yield "probe family", definition.probe


def _sources(text: str) -> dict[Part, str]:
    """SHA-256 of the sources of plug-ins, from the column `sources` of a header."""
    return {(kind, name): sha256 for kind, name, sha256 in json.loads(text)} if text else {}
