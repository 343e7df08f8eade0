"""Values kept for later commands in the user's cache folder, such as tests that take long.

The key of a value is a digest of all that it depends on: of what its caller says, of the suite's
code and of the libraries. The file is a database of SQLite, which several processes may write at
once. One that is damaged or cannot be written costs time, and nothing else.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from probes.common.files import default_cache, digest_of_code
from probes.common.terminal import progress

FILE = "kept.sqlite"

MOST = 64 << 20
"""Bytes of the file; a larger one is begun anew."""

_LIBRARIES = "numpy", "scipy", "pandas", "pyarrow", "pydantic", "rich"
"""Libraries that compute or print values."""

_PACKAGES = "common", "data", "tasks", "probes"
"""Folders with the code of the suite in a checkout; an installed suite is in one folder."""

_FOLDER = Path(__file__).resolve().parents[1]
_CODE = digest_of_code(
    [_FOLDER / x for x in _PACKAGES] if (_FOLDER / "probes").is_dir() else [_FOLDER], "[!.]*.py"
)
"""Made at import, for the code that runs: later there may be a newer one on disk."""

T = TypeVar("T")


def key_of(kind: str, *basis: object) -> str:
    """Key of a value of some kind.

    Args:
        basis: whatever it depends on, with a `repr` that says all of it.
    """
    return hashlib.sha256(repr((kind, *basis, versions())).encode(errors="replace")).hexdigest()


@cache
def versions() -> tuple[str, ...]:
    """Digest of the suite's code, and the versions of Python and of libraries."""
    from importlib.metadata import version

    return _CODE, platform.python_version(), *(f"{x} {version(x)}" for x in _LIBRARIES)


def kept(key: Callable[[], str], make: Callable[[], T]) -> T:
    """The value of a key, which is made and kept if there is none; it consists of what JSON has.

    Args:
        key: makes the key, also afterwards: of what changed meanwhile nobody knows what was read.
    """
    value: T
    for value in find(name := key()):
        return value
    value = make()
    if key() == name:
        keep(name, value)
    return value


def find(key: str) -> list[Any]:
    """A list with the value of a key; empty if there is none."""
    try:
        for (content,) in _execute("SELECT content FROM kept WHERE key = ?", key):
            written_key, value = json.loads(zlib.decompress(content))
            if written_key != key:  # as if an index is damaged
                raise ValueError("of another key")
            return [value]
    except (ValueError, TypeError, zlib.error) as error:
        progress.say(f"{default_cache() / FILE}: a value is damaged ({error}); it is made anew")
    return []


def keep(key: str, value: Any) -> None:
    """Keep a value that consists of what JSON has, unless it is very long."""
    content = zlib.compress(json.dumps([key, value]).encode(), 1)
    if len(content) <= MOST // 8:
        _execute("INSERT OR REPLACE INTO kept VALUES (?, ?)", key, content)


def _execute(statement: str, *values: object) -> list[tuple[Any, ...]]:
    """The rows that a statement gives; none if the file is not usable. A damaged one is deleted."""
    path = default_cache() / FILE
    try:
        import sqlite3
    except ImportError:  # as in some builds of Python
        return []
    try:
        if not path.parent.is_dir():
            path.parent.mkdir(parents=True, exist_ok=True)
        if os.path.exists(path) and os.path.getsize(path) > MOST:
            path.unlink()
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as database:
            # A process that is killed may leave a damaged file, but none beside it.
            database.execute("PRAGMA journal_mode = MEMORY")
            database.execute("PRAGMA synchronous = OFF")
            database.execute("CREATE TABLE IF NOT EXISTS kept (key TEXT PRIMARY KEY, content BLOB)")
            return database.execute(statement, values).fetchall()
    except (sqlite3.OperationalError, OSError) as error:  # locked, no room, not to be written
        progress.detail(f"{path}: not used ({error})")
    except sqlite3.Error as error:
        progress.say(f"{path}: damaged ({error}); what it kept is made anew")
        with contextlib.suppress(OSError):
            path.unlink()
    return []
