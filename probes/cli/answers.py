"""Answers of commands that read results and write nothing, kept for when the same is asked again.

An answer is what a command printed. It is named by all that this depends on: the code, plug-ins,
arguments, what the output can show, and every file that the command may read.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from probes.common.kept_values import find, keep, key_of
from probes.common.terminal import output_console
from probes.measurements.plugin_keys import REGISTRIES

_YOUNG = 2_000_000_000
"""Nanoseconds in which a file system may not tell two changes of a file apart."""

Part = tuple[str, str]
"""The name of a stream and a text."""


class _Copying:
    """A stream that notes what is written to it."""

    def __init__(self, stream: Any, name: str, parts: list[Part]) -> None:
        self._stream, self._name, self._parts = stream, name, parts

    def write(self, text: str) -> int:
        self._parts.append((self._name, text))
        return int(self._stream.write(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def answered(arguments: list[str], named: Iterable[Path | None], run: Callable[[], int]) -> int:
    """Print the answer of a command, and keep it if it is one.

    Args:
        arguments: the command with its arguments.
        named: files and folders of results that it reads; all files in them count.
        run: prints the answer, and returns the exit status.
    """
    if sys.stdout is None or sys.stderr is None:
        return run()
    # Where `--recipes` names no file, its value is an empty path.
    paths = [path for path in named if path is not None and path != Path()]
    key, newest = _key(arguments, paths)
    parts: list[Part] = []
    if (answers := find(key)) is not None:
        for name, text in answers[0]:
            getattr(sys, name).write(text)
        return 0
    with ExitStack() as streams:
        streams.enter_context(redirect_stdout(_Copying(sys.stdout, "stdout", parts)))
        streams.enter_context(redirect_stderr(_Copying(sys.stderr, "stderr", parts)))
        status = run()
    # A file that changes while it is read has another state then, unless it changed just before.
    if status == 0 and time.time_ns() - newest >= _YOUNG and _key(arguments, paths)[0] == key:
        keep(key, parts)
    return status


def _key(arguments: list[str], paths: Iterable[Path]) -> tuple[str, int]:
    """The name of an answer, and the time of the last change of a file that it depends on."""
    states = sorted({*_states(paths)})
    consoles = [output_console(stderr=stderr) for stderr in (False, True)]
    basis = (
        arguments,
        os.getcwd(),
        sorted((x, y) for x, y in os.environ.items() if x.startswith("PROBES_")),
        [(x.options, x.color_system, x.no_color, x.legacy_windows) for x in consoles],
        [(kind, name, of.origin(name)) for kind, of in REGISTRIES.items() for name in of],
        states,
    )
    return key_of("answer", *basis), max((max(state[1:3]) for state in states), default=0)


State = tuple[str, int, int, int, int]
"""Path, times of the last change of content and of the entry, size, number in the file system."""


def _states(paths: Iterable[Path]) -> Iterator[State]:
    """Files and those in folders, with the random twins that commands find beside their records."""
    parents = set()
    for path in paths:
        yield _state(path)
        for folder, _, names in os.walk(path):
            yield from (_state(Path(folder, name)) for name in names)
            if names and len((resolved := Path(folder).resolve()).parents) > 1:
                parents.add(resolved.parents[1])
    for parent in parents:
        yield from map(_state, parent.glob("random*/*/*"))


def _state(path: Path) -> State:
    try:
        stat = path.stat()
    except OSError:
        return str(path), 0, 0, 0, 0
    return str(path), stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size, stat.st_ino
