"""Only the newest definition of a task or measurement counts; older records are left out."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from probes.measurements.plugin_keys import digests, is_current
from probes.records.files import file_state
from probes.records.record import Record
from probes.tasks.task import plain_name

Definitions = tuple[tuple[str, int, str], ...]
"""Digests of what is defined and of how, with the version between."""

Rank = tuple[bool, str]
"""Whether this version and the loaded plug-ins would compute a record; when it was written."""


def definitions(record: Record) -> Definitions:
    """The definitions that a record depends on: its task, how that is probed, its measurement.

    A plug-in counts as defined last for all models and corpora. Tasks and measurements of the suite
    may have another version for each, since published results are not computed again.
    """
    model, corpus, task, probe = record.model, record.corpus, record.task, record.probe
    vectors = record.base and record.base.name, record.pooling, record.dtype, record.project
    here = model.name, model.revision, model.digest, corpus.name, corpus.digest, vectors
    by_kind = {kind: digests(x for x in record.plug_ins if x.kind == kind) for kind in _KINDS}
    parts: list[tuple[str, object, int, object]] = []
    if task and probe:
        of_task = by_kind["task"], by_kind["metric"]
        parts.append(("task", plain_name(task.name), task.version, (task.metric, of_task)))
        parts.append(("", (task.name, probe.family), 0, record.inputs))
    source = by_kind["measurement"]  # which says of a plug-in what options there are
    options = "" if source else sorted(record.settings.items())
    asked = task and task.name, probe and probe.family, record.measurement, options
    parts.append(("measurement", asked, record.measurement_version, source))
    return tuple(
        (_digest(kind, name, () if by_kind.get(kind) else here), version, _digest(definition))
        for kind, name, version, definition in parts
    )


_KINDS = "task", "metric", "measurement"


def _digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def replaced(found: Mapping[Path, Definitions], rank: Callable[[Path], Rank]) -> set[Path]:
    """The files of records that depend on a definition which is not the newest.

    Args:
        found: see `definitions`.
        rank: of a record: the definition counts that this version would compute, then one of the
            highest version, then the one with the record that was written last.
    """
    left_out: set[Path] = set()
    for place in (0, 1, -1):
        known: dict[str, dict[tuple[int, str], list[Path]]] = defaultdict(lambda: defaultdict(list))
        for path, parts in found.items():
            if path not in left_out:
                name, version, definition = parts[place if place < len(parts) else -1]
                known[name][version, definition].append(path)
        for several in known.values():
            if len(several) > 1:
                ranks = {x: max(map(rank, paths)) for x, paths in several.items()}
                newest = max(several, key=lambda x: (ranks[x][0], x[0], ranks[x][1]))
                left_out.update(*(paths for x, paths in several.items() if x != newest))
    return left_out


def rank_of(record: Record, path: Path) -> Rank:
    """The rank of the record at `path`; those of older versions do not say when they were made."""
    changed = datetime.fromtimestamp(file_state(path)[0] / 1e9, UTC)
    return is_current(record), record.provenance.get("written", changed.isoformat())


def older_records(records: Mapping[Path, Record]) -> set[Path]:
    """The files of records whose task, probe family or measurement was defined again."""
    found = {path: definitions(record) for path, record in records.items()}
    return replaced(found, lambda path: rank_of(records[path], path))


def newest(records: Mapping[Path, Record]) -> dict[Path, Record]:
    """The records without those of older definitions, but for those that are marked as such."""
    older = older_records(records)
    return {path: x for path, x in records.items() if x.older or path not in older}


def marked(records: Mapping[Path, Record]) -> dict[Path, Record]:
    """The records; those of older definitions, or of another version, are marked as older."""
    older = older_records(records)
    return {
        path: record.model_copy(update={"older": path in older or not is_current(record)})
        for path, record in records.items()
    }
