"""Values kept for later commands in the user's cache folder, such as tests that take long.

A value is named by a digest of all that it depends on: of what its caller says, of the suite's code
and of the libraries. The file is a database of SQLite, which several processes may write at once.
Whoever asks does without a file that is damaged or cannot be written.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from probes.common.files import default_cache, digest_of_code
from probes.common.terminal import progress

if TYPE_CHECKING:
    from sqlite3 import Connection

FILE = "kept.sqlite"

MOST = 64 << 20
"""Bytes that the values may take; then the older half of them is deleted."""

_LIBRARIES = "numpy", "scipy", "pandas", "pydantic", "rich"
"""Libraries that compute or print values."""

T = TypeVar("T")


def key_of(kind: str, *basis: object) -> str:
    """Name of a value of some kind.

    Args:
        basis: whatever it depends on, with a `repr` that says all of it.
    """
    return hashlib.sha256(repr((kind, *basis, *versions())).encode(errors="replace")).hexdigest()


@cache
def versions() -> tuple[str, ...]:
    """Digest of the suite's code, and the versions of Python and of libraries."""
    from importlib.metadata import version

    roots = Path(__file__).parents[1]
    # A checkout has these folders beside others; a wheel has nothing else.
    folders = [x for name in ("common", "data", "tasks", "probes") if (x := roots / name).is_dir()]
    folders = folders if (roots / "probes").is_dir() else [roots]
    of_code = digest_of_code(folders, "[!.]*.py")
    return of_code, platform.python_version(), *(f"{x} {version(x)}" for x in _LIBRARIES)


def kept(key: str, make: Callable[[], T]) -> T:
    """The value of a key, which is made and kept if there is none; it consists of what JSON has."""
    if (values := find(key)) is not None:
        value: T = values[0]
        return value
    value = make()
    keep(key, value)
    return value


def find(key: str) -> list[Any] | None:
    """A list of the one value of a key; None if there is none."""

    def read(database: Connection) -> list[Any] | None:
        row = database.execute("SELECT content FROM kept WHERE key = ?", (key,)).fetchone()
        return None if row is None else [_value(key, row[0])]

    path = default_cache() / FILE
    if not os.path.exists(path):
        return None
    with contextlib.suppress(OSError):
        os.utime(path)  # the time of its last use
    return _with_database(path, read)


def keep(key: str, value: Any) -> None:
    """Keep a value that consists of what JSON has, unless it is very long."""
    content = json.dumps(value)
    if len(content) > MOST // 8:
        return

    def write(database: Connection) -> None:
        row = key, _checksum(key, content) + content
        database.execute("INSERT OR REPLACE INTO kept (key, content) VALUES (?, ?)", row)
        pages, free, size = (
            database.execute(f"PRAGMA {x}").fetchone()[0]
            for x in ("page_count", "freelist_count", "page_size")
        )
        if (pages - free) * size > MOST:
            database.execute("DELETE FROM kept WHERE rowid <= (SELECT avg(rowid) FROM kept)")

    _with_database(default_cache() / FILE, write)


def is_sound(path: Path) -> bool:
    """Whether every value in a file is what was written."""
    import sqlite3

    try:
        with contextlib.closing(sqlite3.connect(path)) as database:
            for key, content in database.execute("SELECT key, content FROM kept"):
                _value(key, content)
    except (sqlite3.Error, ValueError, TypeError):
        return False
    return True


def _with_database(path: Path, use: Callable[[Connection], T]) -> T | None:
    """What `use` returns of the database in a file; None if it cannot be used.

    A damaged file is deleted.
    """
    import sqlite3

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as database:
            # Who is killed may leave a damaged file, but none beside it.
            database.execute("PRAGMA journal_mode = MEMORY")
            database.execute("PRAGMA synchronous = OFF")
            database.execute("CREATE TABLE IF NOT EXISTS kept (key TEXT PRIMARY KEY, content TEXT)")
            return use(database)
    except (sqlite3.OperationalError, OSError) as error:  # locked, no room, not to be written
        progress.detail(f"{path}: not used ({error})")
    except (sqlite3.Error, ValueError, TypeError) as error:
        progress.say(f"{path}: damaged ({error}); what it kept is computed anew")
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
    return None


def _value(key: str, content: str) -> Any:
    """The value in a row.

    Raises:
        ValueError: it is not what was written.
    """
    checksum, text = content[:_LENGTH], content[_LENGTH:]
    if checksum != _checksum(key, text):
        raise ValueError("a checksum is wrong")
    return json.loads(text)


_LENGTH = 32


def _checksum(key: str, text: str) -> str:
    return hashlib.sha256(f"{key} {text}".encode()).hexdigest()[:_LENGTH]
