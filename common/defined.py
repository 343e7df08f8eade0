"""What a script, a notebook, or a module that one of these imports has registered."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from probes.common.by_value import UntoldError, digest_by_value
from probes.common.errors import UserError
from probes.common.origin import Origin

_run = 0
"""The number of the run, by which digests are kept."""


def begin_run() -> None:
    """Make new digests: what entries refer to may have changed since the last run."""
    global _run
    _run += 1


@dataclass
class Defined:
    """An entry of a registry that no file of `--include` and no entry point has brought.

    Attributes:
        module: the module that registered it.
        file: its file; None in a session.
        entry: what it registered.
        on_removal: to be called when the entry is replaced.
    """

    module: str
    file: Path | None
    entry: object
    on_removal: Callable[[], object]
    _made: tuple[int, Origin] | None = None

    @classmethod
    def here(cls, entry: object, on_removal: Callable[[], object]) -> Defined | None:
        """As registered by the module whose code is running; None if that is the suite's own."""
        frame = sys._getframe(1)
        while (module := str(frame.f_globals.get("__name__"))).partition(".")[0] == "probes":
            assert frame.f_back is not None
            frame = frame.f_back
        if module == "importlib._bootstrap":  # which is running a module of the suite
            return None
        file = frame.f_globals.get("__file__")
        return cls(module, Path(file).resolve() if file else None, entry, on_removal)

    def __str__(self) -> str:
        if self.file is None:
            return "this session"
        here = Path.cwd()
        return str(self.file.relative_to(here) if self.file.is_relative_to(here) else self.file)

    def origin(self, what: str) -> Origin:
        """Its origin, the same throughout a run.

        Args:
            what: what messages call it.

        Raises:
            UserError: a part of what it depends on has no digest.
        """
        if self._made is None or self._made[0] != _run:
            try:
                sha256 = digest_by_value(self.entry, self.module)
            except UntoldError as error:
                raise UserError(
                    f"{what} of {self} depends on {error}, whose changes would go unnoticed; move "
                    "it to a file of its own, and give that as include=."
                ) from error
            roots = (self.file,) if self.file else ()
            self._made = _run, Origin(str(self), roots, sha256)
        return self._made[1]
