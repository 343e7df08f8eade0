"""Records that count: one of every measurement, and of each the newest definition.

Decided by columns of the frame, in one way for CSV files, tables and pages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from probes.common.terminal import progress
from probes.common.wording import counted
from probes.measurements.plugin_keys import is_current
from probes.records.files import content_of, file_state, find_records, is_complete, is_published
from probes.records.record import Record

if TYPE_CHECKING:
    import pandas as pd

IDENTITY = ["model", "revision", "full_key"]
"""Columns that are equal for duplicates. The key covers weights or seed, corpus, task and its
version, probe, vectors, and the measurement with its options."""

DEFINED = ("task", "probe", "measurement")
"""Kinds of things that may be defined again: a task, how it is probed, a measurement. For each, a
header says where it is defined (``task_place``), how (``task_definition``), and its version."""


Read = Callable[[Path], Record]


def unique(headers: pd.DataFrame, paths: Sequence[Path], read: Read) -> pd.DataFrame:
    """The most complete record of every measurement; of equal ones the first.

    Those with another content than the one that is kept are counted in a message; -v names them.

    Args:
        headers: with the columns `IDENTITY`, ``n_measured`` and ``n_fits``, and perhaps
            ``folder``, of which the least wins, and ``complete``.
        paths: of the record of each line.
        read: reads a record.
    """
    ranks = [x for x in ("folder", "n_measured", "n_fits", "complete") if x in headers]
    ascending = [name == "folder" for name in ranks]
    ordered = headers.sort_values(ranks, ascending=ascending, kind="stable")
    is_kept = ~ordered.duplicated(IDENTITY).sort_index()
    kept = headers[is_kept]
    pairs = headers[~is_kept].reset_index().merge(kept.reset_index(), on=IDENTITY)
    both = ((paths[i], paths[j]) for i, j in zip(pairs["index_x"], pairs["index_y"], strict=True))
    differing = [(x, y) for x, y in both if content_of(read(x)) != content_of(read(y))]
    if differing:
        duplicates = counted(len(differing), "duplicate result")
        progress.say(f"left out {duplicates} with other content; -v says which")
        for path, other in differing:
            progress.detail(f"left out {path}: {other} has the same key and other content")
    return kept


def newest(headers: pd.DataFrame, paths: Sequence[Path], read: Read) -> pd.DataFrame:
    """The headers of records whose task, probing and measurement are of the newest definition.

    What this version with its plug-ins would compute counts, then the highest version, then what
    was written last. A plug-in is defined for all models and corpora at once; the suite's own tasks
    and measurements may have another version for each, since published results are not computed
    again.

    Args:
        headers, paths, read: as of `unique`.
    """
    for kind in DEFINED:
        place, definition, version = (f"{kind}_{x}" for x in ("place", "definition", "version"))
        several = headers.groupby(place)[definition].transform("nunique") > 1
        if not several.any():
            continue
        rivals = headers[several]
        files = [paths[i] for i in rivals.index]
        rivals = rivals.assign(
            current=[is_current(read(path)) for path in files],
            written=[_written(read(path), path) for path in files],
        )
        ordered = rivals.sort_values(["current", version, "written"], kind="stable")
        best = ordered.drop_duplicates(place, keep="last").set_index(place)[definition]
        headers = headers.drop(rivals.index[rivals[definition] != rivals[place].map(best)])
    return headers


def _written(record: Record, path: Path) -> str:
    """The time at which a record was written; those of older versions do not say."""
    changed = datetime.fromtimestamp(file_state(path)[0] / 1e9, UTC).isoformat()
    return record.provenance.get("written", changed)


def unique_records(
    *folders: Path, find: Callable[[Path], dict[Path, Record]] = find_records
) -> dict[Path, Record]:
    """All records below the folders by path, one of every measurement.

    Of duplicates, the one in the folder named first is kept, and within a folder the most complete
    one. Published records come after all others, whatever the order of the folders.

    Args:
        find: gives all records below a folder.
    """
    from probes.measurements.frame import header_table

    found: dict[Path, tuple[tuple[bool, int], Path, Record]] = {}
    for number, folder in enumerate(folders):
        for path, record in find(folder).items():
            resolved = path.resolve()
            found.setdefault(resolved, ((is_published(resolved), number), path, record))
    every = sorted(found.values(), key=lambda each: each[0])
    records = [record for *_, record in every]
    headers = header_table(records, [*IDENTITY, "n_measured", "n_fits"])
    headers["folder"] = [n + len(folders) * published for (published, n), *_ in every]
    # Scores can be compared with others only if their predictions are there.
    headers["complete"] = [is_complete(path, record) for _, path, record in every]
    paths = [path for _, path, _ in every]
    known = dict(zip(paths, records, strict=True))
    kept = unique(headers, paths, known.__getitem__)
    return {paths[i]: known[paths[i]] for i in kept.index}


def older_records(records: Mapping[Path, Record]) -> set[Path]:
    """The files of records whose task, probe family or measurement was defined again."""
    from probes.measurements.frame import header_table

    paths = list(records)
    columns = [f"{kind}_{x}" for kind in DEFINED for x in ("place", "definition", "version")]
    headers = header_table(records.values(), columns)
    kept = newest(headers, paths, records.__getitem__)
    return {*paths} - {paths[i] for i in kept.index}


def newest_records(records: Mapping[Path, Record]) -> dict[Path, Record]:
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
