"""`leaderboard.csv`: tidy rows, one per model, corpus, task, probe and layer.

Scores give the rows, evidence further columns of theirs. Evidence on request, and what plug-ins
measure, go to `measurements.csv`, one row per number; answers to items, overall and by phenomenon,
to `behaviour.csv`, too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pandas as pd

from probes.boards.leaderboard_columns import (
    BEHAVIOUR_COLUMNS,
    COLUMNS,
    INTEGERS,
    LONG_COLUMNS,
    ORDER,
)
from probes.boards.record_index import indexed
from probes.boards.record_lines import Line, RecordLines, lines_of
from probes.common.files import published
from probes.common.locks import SUFFIX, locked
from probes.common.terminal import progress
from probes.common.wording import counted
from probes.measurements.measurement import EVIDENCE, get_measurement
from probes.records.csv_text import csv_line
from probes.records.files import read_record
from probes.records.record import Record
from probes.records.result import SCORES, Result


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
        found = _without_duplicates(indexed(output, read).values())
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
    def rank(record: RecordLines) -> tuple[object, ...]:
        # As in `probes.measurements.joined_results.joined`.
        present = get_measurement(record.measurement).version
        return record.version == present, record.version, record.fullness

    ranked = sorted((each for each in evidence if each.measurement in EVIDENCE), key=rank)
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
