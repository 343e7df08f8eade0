"""Results from stored records: scores joined with the evidence behind them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from probes.common.errors import UserError
from probes.common.terminal import progress
from probes.measurements.columns import subject
from probes.measurements.counting import marked, newest_records
from probes.measurements.measurement import get_measurement, measurements
from probes.measurements.validation import as_result, validated
from probes.records.files import (
    find_records,
    read_record,
)
from probes.records.record import Record, fullness
from probes.records.result import SCORES, Result


def joined(records: Mapping[Path, Record]) -> dict[Path, Result]:
    """The results among records by their paths, each with the evidence that belongs to it.

    What is of older definitions, or evidence behind other scores, is left out, and so is, with a
    message, what cannot be read.
    """
    evidence: dict[tuple[str, ...], list[Record]] = defaultdict(list)
    results: dict[Path, Result] = {}
    for path, record in newest_records(records).items():
        try:
            if isinstance(record := validated(record, path), Result):
                results[path] = record
            elif record.probe is not None:
                evidence[subject(record)].append(record)
        except UserError as error:
            progress.say(f"left out {error}")
    return {
        path: result.with_evidence(*_ranked(evidence.get(subject(result), ())))
        for path, result in results.items()
    }


def _ranked(records: Sequence[Record]) -> list[Record]:
    """Of several records of a measurement, that which counts comes last.

    It is one with default options, then the most complete.
    """
    counts = Counter(record.measurement for record in records)

    def rank(record: Record) -> tuple[object, ...]:
        if counts[record.measurement] == 1:
            return ()
        default = record.measurement not in measurements or record.settings == get_measurement(
            record.measurement
        ).options().model_dump(mode="json")
        return default, fullness(record.extent)

    return sorted(records, key=rank)


def find_results(folder: Path) -> dict[Path, Result]:
    """All results below `folder` by their paths; see `probes.records.files.find_records`."""
    return joined(find_records(folder))


def read_result(path: Path) -> Result:
    """The result at `path`, with the evidence beside it; it may be of an older definition.

    Raises:
        UserError: it cannot be read, or is not a record of scores.
    """
    record = read_record(path)
    if record.measurement != SCORES:
        raise UserError(f"{path}: a record of {record.measurement}; name that of the scores.")
    as_result(record, path)
    return joined(marked({**find_records(path.parent), path: record}))[path]
