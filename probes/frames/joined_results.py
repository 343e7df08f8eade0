"""Results from stored records: scores joined with the evidence behind them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from probes.common.errors import UserError
from probes.frames.header_columns import evidence_key
from probes.frames.record_status import reasons_outdated
from probes.frames.record_validation import as_result, read_validated
from probes.measurements.measurement import get_measurement, measurements
from probes.records.record import Record, completeness
from probes.records.record_files import read_record, read_records, record_paths
from probes.records.result import SCORES, Result

# Pandas is slow to import.
if TYPE_CHECKING:
    from probes.frames.frame import ReadRecord


def results_with_evidence(records: Mapping[Path, Record]) -> dict[Path, Result]:
    """The results among records by their paths, each with the evidence that belongs to it.

    Evidence behind other scores is left out.
    """
    evidence: dict[tuple[str, ...], list[Record]] = defaultdict(list)
    for record in records.values():
        if record.probe is not None and not isinstance(record, Result):
            evidence[evidence_key(record)].append(record)
    return {
        path: result.with_evidence(*_evidence_in_order(evidence.get(evidence_key(result), ())))
        for path, result in records.items()
        if isinstance(result, Result)
    }


def _evidence_in_order(records: Sequence[Record]) -> list[Record]:
    """Records of evidence; of several of one measurement, the one to use comes last.

    Default options come before others, then the most complete record.
    """
    counts = Counter(record.measurement for record in records)

    def rank(record: Record) -> tuple[object, ...]:
        if counts[record.measurement] == 1:
            return ()
        default = record.measurement not in measurements or record.settings == get_measurement(
            record.measurement
        ).options().model_dump(mode="json")
        return default, completeness(record.extent)

    return sorted(records, key=rank)


def find_results(folder: Path, read: ReadRecord = read_record) -> dict[Path, Result]:
    """All results below `folder` by their paths, read afresh; see `probes.frames.frame.load`.

    Args:
        read: reads a record.
    """
    from probes.frames.frame import load

    return results_with_evidence(load(folder, read=read, cached=False, say=False).records())


def read_result(path: Path) -> Result:
    """The result at `path`, with the evidence beside it.

    Raises:
        UserError: it cannot be read, is outdated, or is not a record of scores.
    """
    from probes.frames.frame import frame_of, numbered

    record = read_record(path)
    if record.measurement != SCORES:
        raise UserError(f"{path}: a record of {record.measurement}; name that of the scores.")
    result = as_result(record, path)
    paths = (other for other in record_paths(path.parent) if other != path)
    records = {path: result, **read_records(paths, read_validated)}
    reasons = reasons_outdated(frame_of(numbered(records.values())).headers)
    by_path = dict(zip(records, reasons, strict=True))
    if by_path[path]:
        raise UserError(f"{path}: {by_path[path]}; run its command again.")
    return results_with_evidence({x: y for x, y in records.items() if not by_path[x]})[path]
