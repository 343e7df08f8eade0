"""Locks between processes: one computes what the others wait for, or leave to it.

Whoever holds a lock deletes its file before letting go. Since `filelock` looks, once it has a
lock, whether the file still has its name, no two processes ever hold the same one.
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
        waiting: said if another process has it first.

    Raises:
        BusyError: another process has it and `wait` is false.
        UserError: the file cannot be made.
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
    """Delete files of locks in `folder` that nobody holds: those of runs that were killed."""
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        # UserError: a folder that can only be read.
        with contextlib.suppress(BusyError, UserError), locked(path, wait=False):
            pass


def mark_used(path: Path) -> BinaryIO:
    """A handle on the file at `path`; while it is open, `unused` does not get it.

    Raises:
        OSError: there is no such file.
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
    """Hold the file at `path`, if there is one, so that nobody begins to use it.

    Raises:
        BusyError: somebody uses it.
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
