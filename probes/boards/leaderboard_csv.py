"""`leaderboard.csv`: tidy rows, one per model, corpus, task, probe and layer.

Scores give the rows, evidence further columns of theirs. Evidence on request, and what plug-ins
measure, go to `measurements.csv`, one row per number; answers to items, overall and by phenomenon,
to `behaviour.csv`, too.

An index keeps what each record contributes as long as its file has the same size and time of
change. So rebuilding the leaderboard reads only the records that are new.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pandas as pd
from pydantic import TypeAdapter

from probes import __version__
from probes.boards.record_lines import (
    BEHAVIOUR_COLUMNS,
    COLUMNS,
    INTEGERS,
    LONG_COLUMNS,
    ORDER,
    Line,
    RecordLines,
    lines_of,
)
from probes.common.errors import UserError
from probes.common.files import published
from probes.common.garbage_collection import infrequent_garbage_collection
from probes.common.locks import SUFFIX, locked
from probes.common.terminal import progress
from probes.common.wording import counted
from probes.measurements.definitions import rank_of, replaced
from probes.measurements.measurement import EVIDENCE, measurements
from probes.measurements.plugin_keys import plugin_failure
from probes.records.files import file_state, read_record, read_records, record_paths
from probes.records.record import SCHEMA_VERSION, Record
from probes.records.result import SCORES, Result
from probes.records.table import csv_line
from probes.records.values import Frozen


def tidy(results: Iterable[Result]) -> pd.DataFrame:
    """One row per result and layer, with the columns `COLUMNS`."""
    rows = _rows(results)
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(dict.fromkeys(INTEGERS, "Int64"))


def _rows(results: Iterable[Result]) -> list[Line]:
    records = [record for result in results for record in (result, *result.evidence.values())]
    return _leaderboard([lines_of(record) for record in records])


def _in_order(rows: Iterable[Line]) -> list[Line]:
    return sorted(rows, key=lambda row: tuple(row[name] for name in ORDER))


def write_tidy(path: Path, results: Iterable[Result]) -> None:
    """Write these results as a file like `leaderboard.csv`."""
    _write(path, COLUMNS, _in_order(_rows(results)))


def write_leaderboard(output: Path, read: Callable[[Path], Record] = read_record) -> Path:
    """Rebuild `<output>/leaderboard.csv`, and the other files if anything belongs there.

    Args:
        read: reads a record that is not in the index of the folder yet.
    """
    path = output / "leaderboard.csv"
    # Without the lock, of two runs that end together the one that read first may write last.
    with locked(path.with_suffix(SUFFIX)):
        lines_by_path = indexed(output, read)
        older = replaced(
            {path: lines.definitions for path, lines in lines_by_path.items()},
            lambda path: rank_of(read(path), path),
        )
        found = _without_duplicates(x for path, x in lines_by_path.items() if path not in older)
        _write(path, COLUMNS, _in_order(_leaderboard(found)))
        for name, columns, lines in (
            ("measurements.csv", LONG_COLUMNS, [x for each in found for x in each.long]),
            ("behaviour.csv", BEHAVIOUR_COLUMNS, [x for each in found for x in each.behaviour]),
        ):
            if lines or (output / name).exists():
                _write(output / name, columns, lines)
    return path


def _leaderboard(records: Iterable[RecordLines]) -> list[Line]:
    """The rows of all scores, with the columns of the evidence that belongs to them."""
    records = list(records)
    evidence: dict[tuple[str, ...], list[RecordLines]] = defaultdict(list)
    for record in records:
        if record.measurement != SCORES:
            evidence[record.subject].append(record)
    return [
        row
        for record in records
        if record.measurement == SCORES
        for row in _with_evidence(record, evidence.get(record.subject, []))
    ]


def _with_evidence(scores: RecordLines, evidence: Iterable[RecordLines]) -> Iterator[Line]:
    ranked = sorted(
        (each for each in evidence if each.measurement in EVIDENCE), key=lambda x: x.fullness
    )
    found = {record.measurement: record.layers for record in ranked}
    header = {**scores.header, "evidence": " ".join(name for name in EVIDENCE if name in found)}
    of_evidence = [columns for each in found.values() for columns in each]
    for layer, own in scores.layers:
        row = {**header, "layer": layer, **own}
        for of_layer, columns in of_evidence:
            if of_layer in (None, layer):
                row |= columns
        yield {name: row.get(name) for name in COLUMNS}


def _without_duplicates(records: Iterable[RecordLines]) -> list[RecordLines]:
    """One record of every measurement, the most complete; the first of equal ones."""
    kept: dict[tuple[str, ...], RecordLines] = {}
    differing = 0
    for record in records:
        other = kept.setdefault(record.identity, record)
        if other is not record:
            differing += _numbers(other) != _numbers(record)
            if record.fullness > other.fullness:
                kept[record.identity] = record
    if differing:
        progress.say(f"left out {counted(differing, 'duplicate result')} of the leaderboard")
    return list(kept.values())


def _numbers(record: RecordLines) -> object:
    aside = {"seconds", "suite_version"}
    header = {name: value for name, value in record.header.items() if name not in aside}
    return header, record.layers, record.long


def _write(path: Path, columns: tuple[str, ...], rows: Iterable[Line]) -> None:
    with published(path) as temporary:
        lines = [csv_line(columns), *(csv_line(row[name] for name in columns) for row in rows)]
        temporary.write_text("".join(lines), encoding="utf-8", newline="")


INDEX = ".leaderboard-index.json"
"""Its name, in the folder of results."""

_VERSION = f"{__version__} schema {SCHEMA_VERSION} index 5"
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
