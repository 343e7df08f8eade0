"""The index behind `leaderboard.csv`: what each record contributes, by its file.

What a record contributes is kept as long as its file has the same size and time of change, so that
rebuilding the leaderboard reads only the records that are new.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from pydantic import TypeAdapter

from probes import __version__
from probes.boards.record_lines import RecordLines, lines_of
from probes.common.errors import UserError
from probes.common.files import published
from probes.common.garbage_collection import infrequent_garbage_collection
from probes.common.terminal import progress
from probes.measurements.measurement import measurements
from probes.measurements.plugin_keys import plugin_failure
from probes.records.base import Frozen
from probes.records.files import file_state, read_record, read_records, record_paths
from probes.records.record import SCHEMA_VERSION, Record

INDEX = ".leaderboard-index.json"
"""Its name, in the folder of results."""

_VERSION = f"{__version__} schema {SCHEMA_VERSION} index 4"
"""An index of another version is not used; to be raised when the same record gives other lines."""


class _Entry(Frozen):
    changed: int
    """Time of the file's last change, in nanoseconds."""
    size: int
    lines: RecordLines


_ENTRIES = TypeAdapter(dict[str, _Entry])


def indexed(output: Path, read: Callable[[Path], Record] = read_record) -> dict[Path, RecordLines]:
    """What the records below `output` contribute, by their files; the index is brought up to date.

    Records that cannot be read are named in messages and left out.
    """
    known = _read(output / INDEX)
    entries: dict[str, _Entry] = {}
    new: dict[Path, tuple[int, int]] = {}
    for path in record_paths(output):
        name, state = str(path.relative_to(output)), file_state(path)
        entry = known.get(name)
        if entry and (entry.changed, entry.size) == state:
            entries[name] = entry
        else:
            new[path] = state
    with infrequent_garbage_collection():
        for path, record in read_records(new, read).items():
            try:
                lines = lines_of(record, path)
            except UserError as error:
                progress.say(f"left out {error}")
                continue
            except Exception as error:
                # A plug-in that has changed since may not understand what it wrote then.
                why = plugin_failure(error, record.measurement, None, "")
                if not why:
                    raise
                progress.say(f"left out {path}: {why}")
                continue
            changed, size = new[path]
            entry = _Entry(changed=changed, size=size, lines=lines)
            entries[str(path.relative_to(output))] = entry
    # What a measurement that is not loaded found is known only in a run that loads it.
    kept = {
        name: entry
        for name, entry in entries.items()
        if entry is known.get(name) or entry.lines.measurement in measurements
    }
    if kept != known:
        content = {"version": _VERSION, "entries": _ENTRIES.dump_python(kept, mode="json")}
        with published(output / INDEX) as temporary:
            temporary.write_text(json.dumps(content), encoding="utf-8")
    return {output / name: entries[name].lines for name in sorted(entries)}


def _read(path: Path) -> dict[str, _Entry]:
    """The entries of the index; none if there is no index, or it is of another version."""
    try:
        content = json.loads(path.read_bytes())
        if content["version"] != _VERSION:
            return {}
        return _ENTRIES.validate_python(content["entries"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}
