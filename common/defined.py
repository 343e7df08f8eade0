"""What a script, a notebook, or a module that one of these imports has registered."""

from __future__ import annotations

import builtins
import hashlib
import io
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from probes.common.errors import UserError
from probes.common.files import sha256
from probes.common.origin import Origin, described
from probes.common.own_imports import own_modules

_run = 0
"""The number of the run, by which digests are kept."""

_STARTED = time.time()
"""A module whose file has changed since may be in use as it was before."""


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
                digest = digest_of(self.entry, self.file.parent if self.file else Path.cwd())
            except Exception as error:  # pickling calls code of all kinds
                raise UserError(
                    f"{what} of {self} depends on what has no digest ({described(error)}), so that "
                    "changes would go unnoticed; move it to a file of its own, and give that as "
                    "include=."
                ) from error
            roots = (self.file,) if self.file else ()
            self._made = _run, Origin(str(self), roots, digest)
        return self._made[1]


def digest_of(entry: object, folder: Path) -> str:
    """SHA-256 of an object, and of the user's own modules that its code refers to.

    The pickler of `datasets.fingerprint.Hasher` writes functions and classes of a script or a
    notebook with their code and all globals that it refers to. Those of modules it writes by name,
    so the files of modules are added.

    Args:
        folder: where modules are searched for first.
    """
    from datasets.utils._dill import Pickler

    words: set[str] = set()

    class Noting(Pickler):  # type: ignore[misc]
        """Notes all names and texts; some are names of modules."""

        def save(self, obj: Any, save_persistent_id: bool = True) -> None:
            if isinstance(obj, (FunctionType, type)) and obj.__module__ == "__mp_main__":
                obj.__module__ = "__main__"  # as the process is called that started this one
            if isinstance(obj, ModuleType):
                obj = obj.__name__
            if isinstance(obj, str):
                words.add(obj)
            if isinstance(obj, dict) and "__pydantic_core_schema__" in obj:
                obj = {name: value for name, value in obj.items() if name not in _COMPILED}
            if any(obj is each for each in _UNSEEN):
                raise ValueError(f"it calls {obj.__name__}()")
            super().save(obj, save_persistent_id)

    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        Noting(file, recurse=True).dump(entry)
    digest = hashlib.sha256(file.getvalue())
    for name, path in sorted(_modules(words, folder).items()):
        digest.update(f"{name} {sha256(path)}\n".encode())
        if name in sys.modules and path.stat().st_mtime > _STARTED:
            # Which text is in use is not known: what is measured with it holds for this session.
            digest.update(f"{_STARTED} {id(sys.modules[name].__spec__)}\n".encode())
    return digest.hexdigest()


_UNSEEN = (builtins.eval, builtins.exec, builtins.globals, builtins.__import__)
"""By these, code refers to what it does not name."""

_COMPILED = ("__pydantic_core_schema__", "__pydantic_validator__", "__pydantic_serializer__")
"""Made from the fields of a class, with its address in memory."""


def _modules(words: set[str], folder: Path) -> dict[str, Path]:
    names = [word for word in words if all(map(str.isidentifier, word.split(".")))]
    found = own_modules(names, folder)
    # A function that says "from package import module" has these as two names.
    inner = [f"{package}.{name}" for package in found for name in names]
    return own_modules([*names, *inner], folder)
