"""Where definitions that do not ship come from, and how to take them back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from traceback import walk_tb

from probes.common.errors import printable


@dataclass(frozen=True)
class Origin:
    """Source code outside the suite that defines tasks, corpora, probe families or metrics.

    Attributes:
        name: what messages call it: the file as the user gave it, or the module.
        roots: the file, or the folders of the package. Absolute.
        sha256: of the file, or of all Python files of the package.
        distribution: name and version of the installed package; empty for a file.
    """

    name: str
    roots: tuple[Path, ...]
    sha256: str
    distribution: str = ""

    def __str__(self) -> str:
        return f"{self.name} of {self.distribution}" if self.distribution else self.name


@dataclass
class Loading:
    """One origin's code being run.

    Attributes:
        entries: noun and name of what it has registered, and a call that takes it back.
    """

    origin: Origin
    entries: list[tuple[str, str, Callable[[], object]]] = field(default_factory=list)

    def names(self, noun: str) -> tuple[str, ...]:
        """The names of one noun ("task", "corpus", "probe family", "metric") in order."""
        return tuple(name for its, name, _ in self.entries if its == noun)

    def take_back(self) -> None:
        """Remove everything that it has registered."""
        for _, _, remove in reversed(self.entries):
            remove()
        self.entries.clear()


_stack: list[Loading] = []


def current() -> Loading | None:
    """What is being loaded; None while the suite defines its own."""
    return _stack[-1] if _stack else None


@contextmanager
def loading(origin: Origin) -> Iterator[Loading]:
    """Ascribe to `origin` all that is registered meanwhile; an exception takes it back."""
    mine = Loading(origin)
    _stack.append(mine)
    try:
        yield mine
    except BaseException:
        mine.take_back()
        raise
    finally:
        _stack.pop()


def place_in(error: BaseException, origin: Origin) -> str:
    """The innermost line of `origin` that `error` came through; empty if it did not."""
    found = [
        (frame.f_code.co_filename, line)
        for frame, line in walk_tb(error.__traceback__)
        if _is_of(frame.f_code.co_filename, origin)
    ]
    if isinstance(error, SyntaxError) and error.filename and _is_of(error.filename, origin):
        found.append((error.filename, error.lineno or 1))
    if not found:
        return ""
    file, line = found[-1]
    return f"{file if origin.distribution else origin.name}, line {line}"


def _is_of(file: str, origin: Origin) -> bool:
    path = Path(file)
    return path.is_absolute() and any(path.resolve().is_relative_to(r) for r in origin.roots)


def described(error: BaseException) -> str:
    """Kind and message of an exception on one line: ``KeyError: 'Number'``."""
    message = error.msg if isinstance(error, SyntaxError) else str(error)
    text = printable(" ".join(message.split()))
    name = type(error).__name__
    return f"{name}: {text[:300]}{'…' * (len(text) > 300)}" if text else name
