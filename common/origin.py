"""Registered entries of each plug-in, and how to unregister them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from traceback import walk_tb

from pydantic import ValidationError

from probes.common.errors import first_fault, printable


@dataclass(frozen=True)
class Origin:
    """The source of a plug-in: a file or an installed package.

    Attributes:
        name: name in messages: the file as the user gave it, or the module.
        roots: absolute paths of the file and of the user's modules that it imports, or of the
            package's folders.
        sha256: digest of these files, or of all Python files of the package; for a script or
            notebook, `probes.common.notebook_code.digest_of_object`.
        distribution: name and version of the installed package; empty for a file.
    """

    name: str
    roots: tuple[Path, ...]
    sha256: str
    distribution: str = ""

    def __str__(self) -> str:
        return f"{self.name} of {self.distribution}" if self.distribution else self.name


@dataclass
class PlugInEntries:
    """Registered entries of a plug-in.

    Attributes:
        entries: kind and name of each registered entry, and a function that unregisters it.
    """

    origin: Origin
    entries: list[tuple[str, str, Callable[[], object]]] = field(default_factory=list)

    def names(self, noun: str) -> tuple[str, ...]:
        """Names of the entries of a kind, such as "task" or "probe family", in order."""
        return tuple(name for kind, name, _ in self.entries if kind == noun)

    def unregister(self) -> None:
        """Remove everything that the plug-in has registered."""
        for _, _, remove in reversed(self.entries):
            remove()
        self.entries.clear()


_stack: list[PlugInEntries] = []


def current() -> PlugInEntries | None:
    """The plug-in that is being loaded, if any."""
    return _stack[-1] if _stack else None


@contextmanager
def loading(origin: Origin) -> Iterator[PlugInEntries]:
    """Record everything registered inside the block as `origin`'s; undo it on an exception."""
    plug_in = PlugInEntries(origin)
    _stack.append(plug_in)
    try:
        yield plug_in
    except BaseException:
        plug_in.unregister()
        raise
    finally:
        _stack.pop()


def failing_line(error: BaseException, origin: Origin) -> str:
    """File and line of the innermost frame of `error` within `origin`; empty if there is none."""
    locations = [
        (frame.f_code.co_filename, line)
        for frame, line in walk_tb(error.__traceback__)
        if _is_in_origin(frame.f_code.co_filename, origin)
    ]
    # A file with a syntax error does not run, so it has no frame.
    if isinstance(error, SyntaxError) and error.filename and _is_in_origin(error.filename, origin):
        locations.append((error.filename, error.lineno or 1))
    if not locations:
        return ""
    file, line = locations[-1]
    is_main_file = not origin.distribution and Path(file).resolve() == origin.roots[0]
    return f"{origin.name if is_main_file else file}, line {line}"


def _is_in_origin(file: str, origin: Origin) -> bool:
    path = Path(file)
    return path.is_absolute() and any(path.resolve().is_relative_to(r) for r in origin.roots)


def described(error: BaseException) -> str:
    """Type and message of an exception on one line: ``KeyError: 'Number'``."""
    if isinstance(error, ValidationError):
        field, value, reason = first_fault(error)
        value_text = "" if reason == "is missing" else f"={value!r:.80}:"
        return printable(f"{error.title}: {field}{value_text} {reason}")
    message = error.msg if isinstance(error, SyntaxError) else str(error)
    text = printable(" ".join(message.split()))
    name = type(error).__name__
    return f"{name}: {text[:300]}{'…' if len(text) > 300 else ''}" if text else name
