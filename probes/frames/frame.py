"""The long frame of any number of records, and `load`, by which every table, page and CSV file
finds the records below folders of results.

A frame is two tables: a line per record with the columns of its header, which
`probes.frames.header_columns` declares, and a line per number.

A run keeps both as Parquet files in the folder of results. A record is read again only when its
file has another size or time of change. The checksums of both files are kept in the user's own
cache folder: what is damaged, or comes from somebody else with the results, is not used.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import repeat
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pandas as pd

from probes import __version__
from probes.common.errors import DiskError, UserError, counted
from probes.common.files import default_cache, published, sha256
from probes.common.terminal import progress
from probes.frames.header_columns import HEADER_KINDS, NUMBER, TEXT, WHOLE, values
from probes.frames.record_status import reasons_outdated
from probes.frames.record_validation import validated
from probes.measurements.measurement import measurements as loaded_measurements
from probes.measurements.plugin_keys import RULES_OF_KEYS
from probes.records.record import SCHEMA_VERSION, Record
from probes.records.record_files import (
    are_published,
    arrays_exist,
    comparable_content,
    file_state,
    read_record,
    read_records,
    record_paths,
)
from probes.records.row import AxisValue, Row

ROW_KINDS = {
    "metric": TEXT,
    "value": NUMBER,
    "layer": WHOLE,
    "low": NUMBER,
    "high": NUMBER,
    "split": TEXT,
    "n": WHOLE,
    "p": NUMBER,
    "why": TEXT,
    # Further axes as JSON, such as {"head": 3}; empty if there are none.
    "axes": TEXT,
    # How often the layer was measured.
    "fits": WHOLE,
}

FILE_KINDS = {"path": TEXT, "changed": WHOLE, "size": WHOLE}
"""Columns on a record's file. Rows have its path, which says whose they are."""

File = tuple[str, int | None, int | None]
"""Path, time of change and size."""

HEADERS, ROWS = ".record-headers.parquet", ".record-rows.parquet"
"""Files of the cache, in the folder of results."""

VERSION = f"{__version__} schema {SCHEMA_VERSION} {RULES_OF_KEYS} frame 3"
"""A cache of another version is not used; to be raised when the same record gives another frame."""

_MOST_REASONS = 3
"""Number of reasons that one message has."""

IDENTITY = ["model", "revision", "full_key"]
"""Columns that are equal for duplicates. The key covers the weights, or the seed that they were
drawn with, the corpus, the task and its version (and so the view), the probe's specification,
pooling, projection and precision, and the measurement with its options."""

ReadRecord = Callable[[Path], Record]


@dataclass(frozen=True, eq=False)
class RecordFrame:
    """Any number of records as two tables, which together are one long frame.

    Attributes:
        headers: a line per record, with the columns `FILE_KINDS` and `HEADER_KINDS`, and perhaps
            ``file``, its path where ``path`` is within a folder.
        get_rows: gives a line per number, with `path` and the columns `ROW_KINDS`; among them may
            be rows of further records.
        read: reads a record.
        n_outdated: number of records that were left out, since they are not current.
    """

    headers: pd.DataFrame
    get_rows: Callable[[], pd.DataFrame]
    read: ReadRecord = read_record
    n_outdated: int = 0

    @cached_property
    def rows(self) -> pd.DataFrame:
        """A line per number."""
        return self.get_rows()

    @property
    def trimmed(self) -> RecordFrame:
        """A copy with the rows of these records alone."""
        is_own = self.rows["path"].isin(self.headers["path"])
        return replace(self, get_rows=partial(_constant_rows, self.rows[is_own]))

    @property
    def paths(self) -> list[Path]:
        """The files of the records."""
        # Names are quoted as in a URL, since they may have bytes that are no UTF-8.
        names = self.headers.get("file", self.headers["path"])
        return [Path(unquote(x, errors="surrogateescape")) for x in names]

    def only(self, selection: Any) -> RecordFrame:
        """The chosen records."""
        return replace(self, headers=self.headers[selection].reset_index(drop=True))

    def long(self, selection: Any, columns: Iterable[str]) -> pd.DataFrame:
        """The rows of the chosen records, in the order of headers, with columns of headers."""
        headers: pd.DataFrame = self.headers.loc[selection, ["path", *columns]]
        return headers.merge(self.rows, on="path")

    def records(self) -> dict[Path, Record]:
        """The records by path; those that cannot be read are named in messages and left out."""
        return read_records(self.paths, self.read)


# Loading.


def load(
    *folders: Path,
    measurements: Collection[str] | None = None,
    read: ReadRecord = read_record,
    cached: bool = True,
    write: bool = False,
    say: bool = True,
) -> RecordFrame:
    """All records below the folders as one frame, without duplicates.

    Of duplicates, the one in the folder named first is kept, and within a folder the most complete
    one. Published records come after all others. Records that cannot be read, or cannot be of their
    measurement, are named in messages and left out. So are outdated ones (see
    `probes.frames.record_status`), which one message counts.

    Args:
        measurements: only these.
        read: reads a record that is not in the cache of a folder.
        cached: whether the caches in the folders are used.
        write: whether they are brought up to date.
        say: whether outdated records are counted in a message.
    """
    records: dict[Path, Record] = {}

    def read_validated(path: Path) -> Record:
        return records.get(path) or validated(read(path), path)

    if not folders:
        return frame_of({})
    parts = []
    folders = tuple(dict.fromkeys(folders))
    for number, folder in enumerate(folders):
        part, new = _folder_frame(folder, read_validated, cached=cached, write=write)
        records |= new
        part = replace(
            part, headers=part.headers.assign(file=_prefix(folder) + part.headers["path"])
        )
        ranks = [number + len(folders) * shipped for shipped in are_published(part.paths)]
        parts.append(replace(part, headers=part.headers.assign(folder=ranks)))
    headers = pd.concat([part.headers for part in parts]).drop_duplicates("file")
    if len(folders) > 1:
        headers["path"] = headers["file"]
    headers = headers.sort_values("folder", kind="stable", ignore_index=True)

    def rows() -> pd.DataFrame:
        if len(folders) == 1:
            return parts[0].rows
        folder_rows: list[pd.DataFrame] = []
        for folder, part in zip(folders, parts, strict=True):
            part_rows = part.rows.assign(path=_prefix(folder) + part.rows["path"])
            # One folder may be in another.
            for earlier_rows in folder_rows:
                part_rows = part_rows[~part_rows["path"].isin(earlier_rows["path"])]
            folder_rows.append(part_rows)
        return pd.concat(folder_rows)

    frame = RecordFrame(headers, rows, read_validated)
    if measurements is not None:
        frame = frame.only(headers["measurement"].isin([*measurements]))
    return _current(_most_complete(frame), say=say)


def frame_of_files(records: Mapping[Path, Record]) -> RecordFrame:
    """The frame of records that were read from files, without duplicates, current or not."""
    files: dict[File, Record] = {
        (quote(str(path), errors="surrogateescape"), *file_state(path)): record
        for path, record in records.items()
    }
    frame = replace(frame_of(files), read=records.__getitem__)
    return _most_complete(replace(frame, headers=frame.headers.assign(folder=0)))


def _current(frame: RecordFrame, *, say: bool) -> RecordFrame:
    """The records that are current; a message counts the others."""
    reasons = reasons_outdated(frame.headers)
    if say and (kinds := Counter(filter(None, reasons))):
        for path, reason in zip(frame.paths, reasons, strict=True):
            if reason:
                progress.detail(f"left out {path}: {reason}")
        first = [reason for reason, _ in kinds.most_common(_MOST_REASONS)]
        first += ["…"] * (len(kinds) > len(first))
        progress.say(
            f"left out {counted(kinds.total(), 'record')} that this version would compute "
            f"differently ({'; '.join(first)}); run their commands again, or load the plug-in that "
            "they come from (-v lists them)"
        )
    # Typed, since an empty list would select no columns.
    is_current = pd.Series([not x for x in reasons], frame.headers.index, dtype=bool)
    return replace(frame.only(is_current), n_outdated=len(reasons) - sum(is_current))


def _most_complete(frame: RecordFrame) -> RecordFrame:
    """The most complete record of every measurement; of equal ones the first.

    Duplicates with other content are counted in a message; -v names them.
    """
    headers = frame.headers
    several = headers.duplicated(IDENTITY, keep=False)
    if not several.any():
        return frame
    paths = dict(zip(headers.index, frame.paths, strict=True))
    # Scores can be compared with others only if their predictions are there.
    complete = [
        not x or arrays_exist(paths[i], frame.read(paths[i]))
        for i, x in zip(headers.index, several, strict=True)
    ]
    ranks = {"folder": True, "n_measured": False, "n_fits": False, "complete": False}
    ordered = headers.assign(complete=complete).sort_values(
        [*ranks], ascending=[*ranks.values()], kind="stable"
    )
    is_kept = ~ordered.duplicated(IDENTITY).sort_index()
    pairs = headers[~is_kept].reset_index().merge(headers[is_kept].reset_index(), on=IDENTITY)
    files = ((paths[i], paths[j]) for i, j in zip(pairs["index_x"], pairs["index_y"], strict=True))
    differing = [
        (x, y)
        for x, y in files
        if comparable_content(frame.read(x)) != comparable_content(frame.read(y))
    ]
    if differing:
        duplicates = counted(len(differing), "duplicate result")
        progress.say(f"left out {duplicates} with other content; -v says which")
        for path, kept_path in differing:
            progress.detail(f"left out {path}: {kept_path} has the same key and other content")
    return frame.only(is_kept)


# The cache of a folder, in which paths are relative to it.


def _folder_frame(
    folder: Path, read: ReadRecord, *, cached: bool, write: bool
) -> tuple[RecordFrame, dict[Path, Record]]:
    """All records below a folder, in the order of their paths, and those that were read."""
    stored = _cached_frame(folder) if cached else frame_of({})
    files = {(_file_name(path, folder), *file_state(path)): path for path in record_paths(folder)}
    stored_files = [*stored.headers[[*FILE_KINDS]].itertuples(index=False, name=None)]
    is_kept = [file in files for file in stored_files]
    old = stored if all(is_kept) else stored.only(is_kept).trimmed
    file_of = {files[file]: file for file in sorted(files.keys() - {*stored_files})}
    new_records = read_records(file_of, read)
    if not new_records and all(is_kept):
        return stored, new_records
    new = frame_of({file_of[path]: record for path, record in new_records.items()})
    frame = _union(old, new)
    if write:
        # What a measurement that is not loaded found is known only in a run that loads it.
        is_loaded = new.headers["measurement"].isin([*loaded_measurements])
        if not all(is_kept) or is_loaded.any():
            _write_cache(
                folder, frame if is_loaded.all() else _union(old, new.only(is_loaded).trimmed)
            )
        # Records take more memory than their rows as a table.
        frame, new_records = replace(frame, get_rows=partial(_constant_rows, frame.rows)), {}
    return frame, new_records


def _constant_rows(rows: pd.DataFrame) -> pd.DataFrame:
    return rows


def _union(old: RecordFrame, new: RecordFrame) -> RecordFrame:
    """The records of both, in the order of their paths."""
    headers = pd.concat([old.headers, new.headers], ignore_index=True)
    paths = [unquote(path, errors="surrogateescape") for path in headers["path"]]
    order = sorted(range(len(paths)), key=paths.__getitem__)

    def rows() -> pd.DataFrame:
        # Copies of all rows take time and memory.
        parts = [x.rows for x in (old, new) if len(x.headers)] or [new.rows]
        return pd.concat(parts, ignore_index=True) if len(parts) > 1 else parts[0]

    return RecordFrame(headers.take(order).reset_index(drop=True), rows)


def _cached_frame(folder: Path) -> RecordFrame:
    """The cache; empty if there is none, or if it is not the one that was written here."""
    empty = frame_of({})
    if not (folder / HEADERS).is_file():
        return empty
    if _is_sealed(folder):
        # Another version of pandas or pyarrow may read other types, or nothing.
        with contextlib.suppress(OSError, ValueError, LookupError, TypeError, RuntimeError):
            headers = pd.read_parquet(folder / HEADERS)
            if headers.dtypes.equals(empty.headers.dtypes):
                return RecordFrame(headers, partial(_stored_rows, folder))
    # Copies have no checksums here, nor have caches where these cannot be written.
    say = progress.say if _last_checksums(folder) else progress.detail
    say(
        f"{folder / HEADERS}: damaged, or not written by this version on this machine; all records "
        "are read again"
    )
    return empty


def _is_sealed(folder: Path) -> bool:
    """Whether both files of the cache of a folder are those that were last written on this machine.

    Checksums beside them would be no proof: whoever makes up a cache can make these up as well.
    """
    try:
        return _last_checksums(folder) == _checksums(folder)
    except OSError:
        return False


def _last_checksums(folder: Path) -> str:
    try:
        return _checksum_file(folder).read_text(encoding="utf-8")
    except (OSError, ValueError, RuntimeError):  # there may be no home directory
        return ""


def _checksum_file(folder: Path) -> Path:
    """The file in the user's cache folder that says what the cache of a folder of results is."""
    digest = hashlib.sha256(str(folder.resolve()).encode(errors="surrogateescape")).hexdigest()
    return default_cache() / "frames" / digest[:32]


def _checksums(folder: Path) -> str:
    files = folder / HEADERS, folder / ROWS
    return " ".join([VERSION, *(sha256(x) if x.is_file() else "none" for x in files)])


def _stored_rows(folder: Path) -> pd.DataFrame:
    try:
        return pd.read_parquet(folder / ROWS)
    except (OSError, ValueError, RuntimeError) as error:
        raise UserError(f"{folder / ROWS}: damaged ({error}); delete it and run again.") from error


def _write_cache(folder: Path, frame: RecordFrame) -> None:
    """Write the cache, then its checksums: one that is only half written is not used."""
    for name, table in ((ROWS, frame.rows), (HEADERS, frame.headers)):
        with published(folder / name) as temporary:
            table.to_parquet(temporary, index=False)
    try:
        with published(_checksum_file(folder)) as temporary:
            temporary.write_text(_checksums(folder), encoding="utf-8")
    except (DiskError, RuntimeError) as error:
        progress.say(f"the cache of {folder} will not be used: {error}")


def _prefix(folder: Path) -> str:
    return quote(f"{folder}/", errors="surrogateescape")


def _file_name(path: Path, folder: Path) -> str:
    return quote(str(path.relative_to(folder)), errors="surrogateescape")


# Frames of records.


def numbered(records: Iterable[Record]) -> dict[File, Record]:
    """Records without files, by their numbers."""
    return {(str(i), None, None): record for i, record in enumerate(records)}


def frame_of(
    records: Mapping[File, Record], header: Collection[str] = HEADER_KINDS.keys()
) -> RecordFrame:
    """The frame of records that were `validated`.

    Args:
        records: by their files.
        header: columns of headers, if not all.
    """
    lines = [(*file, *values(record, header)) for file, record in records.items()]
    names = (*FILE_KINDS, *header)
    by_column = [*zip(*lines, strict=True)] or [()] * len(names)
    headers = _typed(dict(zip(names, map(list, by_column), strict=True)))
    return RecordFrame(headers, lambda: _rows_of({file[0]: x for file, x in records.items()}))


def _rows_of(records: Mapping[str, Record]) -> pd.DataFrame:
    columns: dict[str, list[Any]] = {name: [] for name in ("path", *ROW_KINDS)}
    for path, record in records.items():
        rows = record.rows
        for name in Row._fields[:-1]:
            columns[name] += getattr(rows, name)
        columns["path"] += repeat(path, len(rows))
        columns["axes"] += _axes_as_json(record)
        columns["fits"] += [x if x is None else record.extent.get(x) for x in rows.layer]
    return _typed(columns)


def _typed(columns: Mapping[str, list[Any]]) -> pd.DataFrame:
    kinds = FILE_KINDS | HEADER_KINDS | ROW_KINDS
    text = pd.Series(["text"]).dtype  # whatever this version of pandas infers
    return pd.DataFrame(
        {
            name: pd.Series(x, dtype=text if kinds[name] == TEXT else kinds[name])
            for name, x in columns.items()
        }
    )


def _axes_as_json(record: Record) -> Iterator[str]:
    """The values of each row on further axes."""
    names, texts = record.rows.axes, dict[tuple[object, ...], str]()
    for axis_values in zip(*names.values(), strict=True) if names else repeat((), len(record.rows)):
        # 1 and 1.0 are equal, and different values.
        key = (*axis_values, *map(type, axis_values))
        if key not in texts:
            axes = {name: x for name, x in zip(names, axis_values, strict=True) if x is not None}
            texts[key] = json.dumps(axes) if axes else ""
        yield texts[key]


def axes_by_text(rows: pd.DataFrame) -> dict[str, dict[str, AxisValue]]:
    """The axes that every distinct text in the column `axes` stands for."""
    return {text: json.loads(text) if text else {} for text in rows["axes"].unique()}
