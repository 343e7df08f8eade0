"""Records on disk: a JSON file each, and beside it its arrays, if it has any, as an archive.

`Index` reads each record of a run once.
"""

from __future__ import annotations

import json
import re
import struct
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from tokenize import TokenError
from typing import Any, TypeVar
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from probes.common.errors import UserError, counted
from probes.common.files import published, sha256
from probes.common.origin import described
from probes.common.process import infrequent_garbage_collection
from probes.common.terminal import progress
from probes.records.record import SCHEMA_VERSION, Record, record_name

PUBLISHED = "published"
"""Folder of the results that ship with the suite, in the one that users write to."""


_UNREADABLE = (
    MemoryError, OSError, ValueError, BadZipFile, EOFError, KeyError, RuntimeError, struct.error,
    zlib.error, TypeError, OverflowError, SyntaxError, TokenError,
)  # fmt: skip
"""Errors that reading a damaged archive may raise: RuntimeError if its kind is unknown or it is
encrypted, TypeError if it is a single array, and the last three for the text before an array."""

MISFITS = ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RuntimeError
"""Errors from content that does not fit together."""

T = TypeVar("T")

Arrays = Mapping[str, NDArray[Any]]


class SchemaError(UserError):
    """A record has another schema than this version reads.

    Attributes:
        version: its schema.
    """

    def __init__(self, path: Path, version: object) -> None:
        self.version = version
        super().__init__(
            f"{path}: result schema {version}, this version reads {SCHEMA_VERSION}; "
            "use the suite's version that wrote it, or another --output."
        )


def write_record(path: Path, record: Record, arrays: Arrays) -> None:
    """Write a record and its arrays; each file is written whole or not at all.

    The arrays are written first, so that where the JSON is, they are too.
    """
    if arrays:
        with published(path.with_suffix(".npz")) as temporary:
            np.savez_compressed(temporary, allow_pickle=False, **arrays)
    with published(path) as temporary:
        temporary.write_bytes(record.model_dump_json().encode())


def path_in_results(path: Path) -> Path:
    """Location of the record at `path` within a folder of results: model, corpus, file."""
    return Path(*path.absolute().parts[-3:])


def name_of(record: Record) -> str:
    """The name of a record's file."""
    task, family = record.task, record.probe
    names = task.name if task else "", family.family if family else ""
    return record_name(*names, record.measurement, record.key)


def arrays_exist(path: Path, record: Record) -> bool:
    """Whether the file of arrays of the record at `path` is there, if it has any."""
    return not record.arrays or path.with_suffix(".npz").exists()


def read_record(path: Path) -> Record:
    """Read the record at `path`.

    Raises:
        UserError: it cannot be read.
        SchemaError: it has another schema.
    """
    try:
        content = _regular(path).read_bytes()
        try:
            record = Record.model_validate_json(content)
            # Pydantic takes one of several values of a name; this reading refuses them.
            _require_distinct_names(content)
            version = record.schema_version
        except ValidationError:
            # Another schema has other fields. The user must hear of the version, not of a field.
            version = json.loads(content)["schema_version"]
            if version == SCHEMA_VERSION or not isinstance(version, int):
                raise
        if version != SCHEMA_VERSION:
            raise SchemaError(path, version)
        return record
    except FileNotFoundError as error:
        raise UserError(f"{path}: there is no such file.") from error
    except (OSError, *MISFITS) as error:
        raise unreadable(path, error) from error


def _regular(path: Path) -> Path:
    """The path of a file; pipes and devices, of which reading may never end, raise ValueError."""
    if path.exists() and not path.is_file():
        raise ValueError("no regular file")
    return path


def _require_distinct_names(content: bytes) -> None:
    """Raise ValueError if a JSON object has two values of one name."""
    try:
        # Arrays of numbers, which are most of a record, have no names. (What looks like one inside
        # of a text vanishes as well, and other names may become equal.)
        json.loads(_ARRAY.sub(b"0", content), object_pairs_hook=_of_pairs)
    except ValueError:
        json.loads(content, object_pairs_hook=_of_pairs)


_ARRAY = re.compile(rb"""\[[^][{}"]*\]""")


def _of_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object; readers differ in which value they take of a name that occurs twice."""
    if len(content := dict(pairs)) < len(pairs):
        raise ValueError(f"{Counter(name for name, _ in pairs).most_common(1)[0][0]} occurs twice")
    return content


def unreadable(path: Path, error: Exception) -> UserError:
    """The error for a record that cannot be read."""
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        reason = ": ".join((".".join(map(str, first["loc"])), first["msg"])).lstrip(": ")
    else:
        text = str(error) if isinstance(error, ValueError | OSError) else described(error)
        reason = text.split("\n")[0]
    return UserError(
        f"{path}: not a readable result ({reason}); if it was one, delete it and run again."
    )


def read_arrays(path: Path, names: Iterable[str] = ()) -> Arrays:
    """Read the arrays of the record at `path`.

    Args:
        names: arrays that must be there.

    Raises:
        UserError: there are none, or they cannot be read.
    """
    archive = path.with_suffix(".npz")
    try:
        with np.load(_regular(archive), allow_pickle=False) as stored:
            arrays = dict(stored)
        # A damaged table of contents may name fewer than there are.
        if missing := set(names) - arrays.keys():
            raise ValueError(f"it lacks {', '.join(sorted(missing))}")
        if odd := [name for name, array in arrays.items() if not isinstance(array, np.ndarray)]:
            raise ValueError(f"{odd[0]} is no array")
        return arrays
    except _UNREADABLE as error:
        raise unreadable_arrays(path, error) from error


def has_arrays(path: Path, names: Iterable[str]) -> bool:
    """Whether the arrays of the record at `path` can be listed, and these are among them."""
    try:
        with np.load(_regular(path.with_suffix(".npz")), allow_pickle=False) as stored:
            return set(names) <= set(stored.files)
    except _UNREADABLE:
        return False


def arrays_digest(path: Path) -> str:
    """SHA-256 of the file of arrays of the record at `path`; empty if there is none.

    Raises:
        UserError: it cannot be read.
    """
    archive = path.with_suffix(".npz")
    try:
        return sha256(_regular(archive)) if archive.exists() else ""
    except (OSError, ValueError) as error:
        raise unreadable_arrays(path, error) from error


def if_readable(read: Callable[[], T]) -> T | None:
    """Result of `read`; None, with a message, if arrays cannot be read."""
    try:
        return read()
    except UserError as error:
        progress.say(f"not tested: {error}")
        return None


def unreadable_arrays(path: Path, error: Exception) -> UserError:
    """The error for arrays that cannot be read."""
    return UserError(
        f"{path.with_suffix('.npz')}: not readable ({error}); delete it and run again."
    )


def read_records(
    paths: Iterable[Path], read: Callable[[Path], Record] = read_record
) -> dict[Path, Record]:
    """The records at `paths`, in this order.

    A record that cannot be read is named in a message and left out, so that the others can be used.
    Those of another schema are counted in one message for each folder.
    """
    records = {}
    n_by_schema: Counter[tuple[Path, object]] = Counter()
    with infrequent_garbage_collection():
        for path in paths:
            try:
                records[path] = read(path)
            except SchemaError as error:
                n_by_schema[path.parent, error.version] += 1
            except UserError as error:
                progress.say(f"left out {error}")
    for (folder, version), n in n_by_schema.items():
        progress.say(
            f"left out {counted(n, 'result')} of schema {version} in {folder}; this version reads "
            f"schema {SCHEMA_VERSION}: run the same command again to compute them anew"
        )
    return records


def file_state(path: Path) -> tuple[int, int]:
    """Time of a file's last change in nanoseconds, and its size."""
    try:
        stat = path.stat()
    except OSError:  # a link to nowhere: who reads it says so
        return 0, 0
    return stat.st_mtime_ns, stat.st_size


def record_paths(folder: Path) -> list[Path]:
    """The files of records below `folder`, in order.

    Published ones are found only if `folder` is their folder or one in it.
    """
    paths = sorted(folder.rglob("*-????????.json"))
    return [path for path in paths if not is_published(path.relative_to(folder))]


def is_published(path: Path) -> bool:
    """Whether a result's file lies in a folder of published results."""
    # The folders of its model and corpus may have any name.
    return PUBLISHED in path.parts[:-3]


def are_published(paths: Sequence[Path]) -> list[bool]:
    """`is_published` for many files, which may be links."""
    # Resolving links takes longer than all else.
    resolved = {folder: folder.resolve() for folder in dict.fromkeys(x.parent for x in paths)}
    return [is_published(resolved[path.parent] / path.name) for path in paths]


def or_published(*folders: Path) -> str:
    """Hint for the error that there are no results: the folder of published ones, if any."""
    published_folders = [path for folder in folders if (path := folder / PUBLISHED).is_dir()]
    return f", or name {published_folders[0]}" if published_folders else ""


class Index:
    """Records by their files; one is read again only when its file has changed."""

    def __init__(self) -> None:
        self._records: dict[Path, tuple[tuple[int, int], Record]] = {}

    def read(self, path: Path) -> Record:
        """The record at `path`; see `read_record`."""
        state = file_state(path)
        state_and_record = self._records.get(path)
        if state_and_record is None or state_and_record[0] != state:
            state_and_record = self._records[path] = state, read_record(path)
        return state_and_record[1]

    def add(self, path: Path, record: Record) -> None:
        """Add a record that has just been written to `path`."""
        self._records[path] = file_state(path), record


def comparable_content(record: Record) -> dict[str, Any]:
    """Content of a record that a second computation must repeat.

    Place, time and machine are left out, and so are names of arrays, since predictions or sums may
    be stored. The model's digest covers that of its configuration, which older records lack.
    """
    fields = ("seconds", "provenance", "suite_version", "encoding", "schema_version", "arrays")
    of_models = {name: {"configuration"} for name in ("model", "base")}
    return record.model_dump(exclude={**dict.fromkeys(fields, True), **of_models})
