"""Where definitions that do not ship come from, and how to take them back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path


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
        defined: (noun, name) of what it has registered.
        undo: calls that take this back.
    """

    origin: Origin
    defined: list[tuple[str, str]] = field(default_factory=list)
    undo: list[Callable[[], object]] = field(default_factory=list)

    def take_back(self) -> None:
        """Remove everything that it has registered."""
        for call in reversed(self.undo):
            call()
        self.undo.clear()
        self.defined.clear()


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
