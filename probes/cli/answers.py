"""Answers of commands that read results and write nothing, kept for when the same is asked again.

An answer is what a command printed. Its key covers all that this depends on: the code, arguments,
what the output can show, and the state of every file that the command may read.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from probes.common.kept_values import find, keep, key_of
from probes.common.terminal import output_console
from probes.measurements.plugin_keys import REGISTRIES

_YOUNG = 2_000_000_000
"""Nanoseconds in which a file system may not tell two changes of a file apart."""


class _Copying:
    """A stream that adds its name and text to `parts` whenever something is written to it."""

    def __init__(self, name: str, parts: list[tuple[str, str]]) -> None:
        self._stream, self._name, self._parts = getattr(sys, name), name, parts

    def write(self, text: str) -> int:
        self._parts.append((self._name, text))
        return int(self._stream.write(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def answered(arguments: list[str], paths: list[Path], run: Callable[[], int]) -> int:
    """Print the answer of a command, which is kept if it has no error.

    Args:
        arguments: the command with its arguments.
        paths: files and folders of results that it reads.
        run: prints the answer, and returns the exit status.
    """
    # The code of plug-ins may read whatever it likes. Windows has no time of the last change of an
    # entry, and may print without writing to a stream.
    is_shipped = all(of.is_shipped(name) for of in REGISTRIES.values() for name in of)
    if sys.stdout is None or sys.stderr is None or os.name == "nt" or not is_shipped:
        return run()
    key, changed = _key_and_change(arguments, paths)
    for answer in find(key):
        for name, text in answer:
            getattr(sys, name).write(text)
        return 0
    parts: list[tuple[str, str]] = []
    stdout: Any = _Copying("stdout", parts)
    stderr: Any = _Copying("stderr", parts)
    with redirect_stdout(stdout), redirect_stderr(stderr):
        status = run()
    # A file that changes while it is read has another state then, unless it changed just before.
    is_old = time.time_ns() - changed >= _YOUNG
    if status == 0 and is_old and _key_and_change(arguments, paths)[0] == key:
        keep(key, parts)
    return status


def _key_and_change(arguments: list[str], paths: list[Path]) -> tuple[str, int]:
    """The key of an answer, and the time of the last change of a file that it depends on."""
    states = sorted({*map(_state, _files(paths))})
    consoles = [output_console(stderr=stderr) for stderr in (False, True)]
    basis = (
        arguments,
        os.stat(".")[1:3],
        sorted((x, y) for x, y in os.environ.items() if x.startswith("PROBES_")),
        [(x.options, x.color_system, x.no_color, x.legacy_windows) for x in consoles],
        states,
    )
    return key_of("answer", *basis), max((max(state[1:3]) for state in states), default=0)


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    """Files and those in folders, with the random twins that commands find beside their records."""
    parents = set()
    for path in paths:
        # Evidence lies beside scores.
        for folder, _, names in os.walk(path.parent if path.is_file() else path):
            files = [Path(folder, name) for name in names]
            yield from files
            links = [os.path.dirname(os.path.realpath(x)) for x in files if x.is_symlink()]
            parents |= {Path(x).parent.parent for x in (os.path.realpath(folder), *links)}
    for parent in parents:
        yield from parent.glob("random*/*/*")
    yield from paths


def _state(path: Path) -> tuple[str, int, int, int, int]:
    """Path, times of the last change of content and of the entry, size, number of the file."""
    try:
        stat = path.stat()
    except OSError:
        return str(path), 0, 0, 0, 0
    return str(path), stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size, stat.st_ino
