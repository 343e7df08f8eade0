"""Whether stored records are current.

A record is *current* if this version, with the plug-ins loaded now, would compute it in the same
way, and else *outdated*, with a reason in words. (Damaged records are refused when they are read,
see `probes.frames.record_validation`.)

What is not loaded, such as a measurement of a plug-in or a column of the user's data, counts as
unchanged. If records name several sources of a plug-in that is not loaded, those with the source
of the record written last are current.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from probes.frames.header_columns import values
from probes.measurements.measurement import get_measurement, measurements
from probes.measurements.plugin_keys import REGISTRIES
from probes.records.probe_spec import PROBES
from probes.records.record import Record
from probes.tasks.builtin import version_of
from probes.tasks.task import plain_name

# Pandas is slow to import.
if TYPE_CHECKING:
    import pandas as pd

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
    """The reason why a record is outdated; empty if it is current."""
    return _why_outdated(Definition(*values(record, Definition._fields)), {})


def reasons_outdated(headers: pd.DataFrame) -> list[str]:
    """`why_outdated` for every record of a frame, which may have several sources of a plug-in."""
    columns = headers[[*Definition._fields]].astype(object)
    definitions = [
        Definition(*x)
        for x in columns.where(columns.notna(), None).itertuples(index=False, name=None)
    ]
    # Many records are defined alike.
    distinct = dict.fromkeys(definitions)
    outdated = {x for x in distinct if _why_outdated(x, {})}
    last_sources: dict[Part, str] = {}
    for _, definition in sorted(
        zip(headers["written"], definitions, strict=True), key=itemgetter(0)
    ):
        if definition not in outdated:
            last_sources |= _sources(definition.sources)
    reasons = {x: _why_outdated(x, last_sources) for x in distinct}
    return [reasons[x] for x in definitions]


def _why_outdated(definition: Definition, last_sources: Mapping[Part, str]) -> str:
    recorded_sources = _sources(definition.sources)
    for kind, name in dict.fromkeys((*recorded_sources, *_parts(definition))):
        recorded_source = recorded_sources.get((kind, name))
        if kind in REGISTRIES and name in REGISTRIES[kind]:
            origin = REGISTRIES[kind].origin(name)
            source = origin.sha256 if origin else None
        else:
            # One that names no source is a column of the user's data.
            source = recorded_source and last_sources.get((kind, name), recorded_source)
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
    # Whether the key of a measurement covers those of scores is known only if it is loaded.
    if definition.key_follows or measurement not in measurements:
        return ""
    return "its key does not follow from its header"


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
