"""The frame of a folder of results, kept in it as two Parquet files: headers and rows.

A record is read again only when its file has another size or time of change. So rebuilding the
leaderboard reads only the records that are new.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote, unquote

import pandas as pd

from probes import __version__
from probes.common.errors import UserError
from probes.common.files import published
from probes.common.garbage_collection import infrequent_garbage_collection
from probes.common.terminal import progress
from probes.measurements.frame import FILE_KINDS, File, Frame, frame_of
from probes.measurements.measurement import measurements
from probes.measurements.plugin_keys import plugin_failure
from probes.measurements.validation import validated
from probes.records.files import file_state, read_record, read_records, record_paths
from probes.records.record import SCHEMA_VERSION, Record

HEADERS, ROWS = ".record-headers.parquet", ".record-rows.parquet"
"""Files of the cache, in the folder of results."""

VERSION = f"{__version__} schema {SCHEMA_VERSION} frame 2"
"""A cache of another version is not used; to be raised when the same record gives another frame."""


def stored_frame(output: Path, read: Callable[[Path], Record] = read_record) -> Frame:
    """The records below `output`, in the order of their paths; the cache is brought up to date.

    Records that cannot be read are named in messages and left out.

    Args:
        read: reads a record that is not in the cache yet.
    """
    kept = _cached(output)
    files: dict[File, Path] = {
        (_name(path, output), *file_state(path)): path for path in record_paths(output)
    }
    known = [*kept.headers[[*FILE_KINDS]].itertuples(index=False, name=None)]
    is_kept = [file in files for file in known]
    new = frame_of(_read({file: files[file] for file in files.keys() - {*known}}, read))
    # What a measurement that is not loaded found is known only in a run that loads it.
    is_loaded = new.headers["measurement"].isin([*measurements])
    if not all(is_kept):
        kept = kept.only(is_kept)
    found = _joined(kept, new) if len(new.headers) else kept
    if not all(is_kept) or is_loaded.any():
        _write(output, found if is_loaded.all() else _joined(kept, new.only(is_loaded)))
    return found


def path_of(output: Path, name: str) -> Path:
    """The path that the frame calls `name`."""
    return output / unquote(name, errors="surrogateescape")


def _name(path: Path, output: Path) -> str:
    """A path within the folder, quoted as in a URL, since it may have bytes that are no UTF-8."""
    return quote(str(path.relative_to(output)), errors="surrogateescape")


def _joined(kept: Frame, new: Frame) -> Frame:
    """The records of both, in the order of their paths."""
    headers = pd.concat([kept.headers, new.headers], ignore_index=True)
    order = sorted(headers.index, key=lambda i: str(path_of(Path(), headers["path"][i])))
    rows = pd.concat([kept.rows, new.rows], ignore_index=True)
    return Frame(headers.take(order).reset_index(drop=True), rows)


def _read(files: dict[File, Path], read: Callable[[Path], Record]) -> dict[File, Record]:
    """Records by their files; those that cannot be used are left out with a message."""
    found = {}
    file_of = {path: file for file, path in sorted(files.items())}
    with infrequent_garbage_collection():
        for path, record in read_records(file_of, read).items():
            try:
                found[file_of[path]] = validated(record, path)
            except UserError as error:
                progress.say(f"left out {error}")
            except Exception as error:
                # A plug-in that has changed since may not understand what it wrote then.
                why = plugin_failure(error, record.measurement, None, "")
                if not why:
                    raise
                progress.say(f"left out {path}: {why}")
    return found


def _cached(output: Path) -> Frame:
    """The cache; empty if there is none, if it is damaged, or of another version."""
    empty = frame_of({})
    try:
        found = Frame(pd.read_parquet(output / HEADERS), pd.read_parquet(output / ROWS))
        one, other = (table.attrs["stamp"] for table in found)
        alike = all(a.dtypes.equals(b.dtypes) for a, b in zip(found, empty, strict=True))
        return found if one == other and one.startswith(f"{VERSION} ") and alike else empty
    # pyarrow's own errors are of these kinds.
    except (OSError, ValueError, LookupError, TypeError, RuntimeError):
        return empty


def _write(output: Path, frame: Frame) -> None:
    """Write the cache. Both files have the same stamp, so that no two of different runs are used.

    Rows come first: a process that ends between the two leaves a cache that is not used.
    """
    stamp = f"{VERSION} {uuid.uuid4()}"
    for name, table in ((ROWS, frame.rows), (HEADERS, frame.headers)):
        table.attrs["stamp"] = stamp
        with published(output / name) as temporary:
            table.to_parquet(temporary, index=False)
