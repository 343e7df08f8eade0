"""Locks between processes.

The holder of a lock deletes the file before releasing it. This is safe: after acquiring a lock,
`filelock` checks that the file still exists under its name.
"""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from filelock import FileLock, Timeout

from probes.common.errors import UserError
from probes.common.files import writing
from probes.common.terminal import progress

SUFFIX = ".lock"


class BusyError(Exception):
    """Another process holds the lock."""


@contextlib.contextmanager
def locked(path: Path, *, waiting: str = "", wait: bool = True) -> Iterator[None]:
    """Hold the lock whose file is `path`.

    Args:
        waiting: reason to wait, shown as "waiting …" if another process holds the lock.

    Raises:
        BusyError: another process holds the lock, and `wait` is false.
        UserError: the file cannot be created.
    """
    lock = FileLock(path)
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(timeout=0)
        except Timeout as error:
            if not wait:
                raise BusyError(str(path)) from error
            if waiting:
                progress.say(f"waiting {waiting}", "waiting", lock=str(path))
            lock.acquire()
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        lock.release()


def sweep_locks(folder: Path) -> None:
    """Delete the lock files in `folder` that killed runs left; nobody holds them."""
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        # UserError: the folder is read-only.
        with contextlib.suppress(BusyError, UserError), locked(path, wait=False):
            pass


def mark_used(path: Path) -> BinaryIO:
    """Mark the file at `path` as in use (a shared lock) until the returned handle is closed.

    Raises:
        OSError: the file does not exist.
    """
    file = path.open("rb")
    try:
        fcntl.flock(file, fcntl.LOCK_SH)
    except BaseException:
        file.close()
        raise
    return file


@contextlib.contextmanager
def unused(path: Path) -> Iterator[None]:
    """Keep other processes from using the file at `path`, if it exists (an exclusive lock).

    Raises:
        BusyError: a process has marked the file as used (`mark_used`).
    """
    try:
        file = path.open("rb")
    except FileNotFoundError:
        yield
        return
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BusyError(str(path)) from error
        yield
