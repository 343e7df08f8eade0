"""Registry entries defined in a script, a notebook, or a module that one of these imports.

Their digests include the user's own modules that their code imports.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
import io
import sys
import sysconfig
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec, resolve_name
from itertools import accumulate
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from probes.common.errors import UserError
from probes.common.files import sha256
from probes.common.origin import Origin, described

_run = 0
"""Number of the run; digests are kept for one run."""

_STARTED = time.time()
"""Time of this import. A module with a newer file may be loaded in an older version."""


def begin_run() -> None:
    """Forget digests, since code may have changed since the last run."""
    global _run
    _run += 1


@dataclass
class DefinedEntry:
    """A registry entry that comes neither from `--include` nor from an entry point.

    Attributes:
        module: the module that registered the entry.
        file: the module's file; None in an interactive session.
        entry: the registered object.
        on_removal: called when the entry is replaced.
    """

    module: str
    file: Path | None
    entry: object
    on_removal: Callable[[], object]
    _made: tuple[int, Origin] | None = None

    @classmethod
    def of_caller(cls, entry: object, on_removal: Callable[[], object]) -> DefinedEntry | None:
        """Make an entry of the module that calls the suite; None if the suite is its own caller."""
        frame = sys._getframe(1)
        while (module := str(frame.f_globals.get("__name__"))).partition(".")[0] == "probes":
            assert frame.f_back is not None
            frame = frame.f_back
        if module == "importlib._bootstrap":  # it is importing a module of the suite
            return None
        file = frame.f_globals.get("__file__")
        return cls(module, Path(file).resolve() if file else None, entry, on_removal)

    def __str__(self) -> str:
        if self.file is None:
            return "this session"
        cwd = Path.cwd()
        return str(self.file.relative_to(cwd) if self.file.is_relative_to(cwd) else self.file)

    def origin(self, name: str) -> Origin:
        """Origin of the entry, computed once per run; messages call the entry `name`.

        Raises:
            UserError: something that the entry depends on has no digest.
        """
        if self._made is None or self._made[0] != _run:
            try:
                digest = digest_of_object(self.entry, self.file.parent if self.file else Path.cwd())
            except Exception as error:  # pickling calls code of all kinds
                raise UserError(
                    f"{name} of {self} depends on something without a digest ({described(error)}), "
                    "so changes would go unnoticed. Move it to its own file, and pass that as "
                    "include=."
                ) from error
            roots = (self.file,) if self.file else ()
            self._made = _run, Origin(str(self), roots, digest)
        return self._made[1]


def digest_of_object(entry: object, folder: Path) -> str:
    """SHA-256 of an object, and of the user's own modules that its code refers to.

    The pickler of `datasets.fingerprint.Hasher` writes functions and classes of a script or a
    notebook with their code and all globals in it. Functions and classes of modules are written by
    name only, so the files of these modules are added. `folder` is searched first for modules.
    """
    from datasets.utils._dill import Pickler

    words: set[str] = set()

    class StringCollector(Pickler):  # type: ignore[misc]
        """Collects all strings, some of which are names of modules."""

        def save(self, obj: Any, save_persistent_id: bool = True) -> None:
            if isinstance(obj, (FunctionType, type)) and obj.__module__ == "__mp_main__":
                obj.__module__ = "__main__"  # its name in the parent process
            if isinstance(obj, ModuleType):
                obj = obj.__name__
            if isinstance(obj, str):
                words.add(obj)
            if isinstance(obj, dict) and any(name in obj for name in _NOT_CODE):
                obj = {name: value for name, value in obj.items() if name not in _NOT_CODE}
            if any(obj is function for function in _UNSEEN):
                raise ValueError(f"it calls {obj.__name__}()")
            super().save(obj, save_persistent_id)

    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        StringCollector(file, recurse=True).dump(entry)
    digest = hashlib.sha256(file.getvalue())
    names = [word for word in words if all(map(str.isidentifier, word.split(".")))]
    # In a function, "from package import module" gives two names.
    members = [f"{package}.{name}" for package in own_modules(names, folder) for name in names]
    for name, path in sorted(own_modules([*names, *members], folder).items()):
        digest.update(f"{name} {sha256(path)}\n".encode())
        if name in sys.modules and path.stat().st_mtime > _STARTED:
            # The loaded version is unknown, so the digest is valid only for this session.
            digest.update(f"{_STARTED} {id(sys.modules[name].__spec__)}\n".encode())
    return digest.hexdigest()


_UNSEEN = (builtins.eval, builtins.exec, builtins.globals, builtins.__import__)
"""Functions through which code depends on objects that it does not name."""

_NOT_CODE = (
    "__pydantic_core_schema__",  # addresses in memory
    "__pydantic_validator__",
    "__pydantic_serializer__",
    "__firstlineno__",  # changes with the lines above (Python 3.13)
    "__static_attributes__",  # names in any order
)
"""Attributes of classes that differ although the same was defined."""


_NOT_OWN = [Path(__file__).resolve().parents[1] / n for n in ("probes", "common", "data", "tasks")]
_NOT_OWN += [
    Path(path).resolve()
    for name, path in sysconfig.get_paths().items()
    if name in ("stdlib", "platstdlib", "purelib", "platlib")
]


def own_imports(file: Path, content: bytes) -> dict[str, Path]:
    """Files of the user's own modules that `file` imports, directly or indirectly, by name.

    Import statements within functions count. Modules of the standard library, of installed packages
    and of the suite do not. The folder of the file is searched first.
    """
    return own_modules(_imported(content, ""), file.parent)


def own_modules(names: Iterable[str], folder: Path) -> dict[str, Path]:
    """Files of the user's own modules among any `names`, and of modules that they import.

    `folder` is searched first.
    """
    files: dict[str, Path] = {}
    todo = [iter(names)]
    while todo:
        for name in todo.pop():
            if name in files or not (spec := _module_spec(name, str(folder))) or not spec.origin:
                continue
            path = Path(spec.origin).resolve()
            if path.is_file() and _is_own(path):
                files[name] = path
                if path.suffix == ".py":
                    is_package = spec.submodule_search_locations is not None
                    package = name if is_package else name.rpartition(".")[0]
                    todo.append(_imported(path.read_bytes(), package))
    return files


def _is_own(file: Path) -> bool:
    """Whether a file is outside of Python, installed packages and the suite."""
    packages = {"site-packages", "dist-packages"} & set(file.parts)
    return not packages and not any(map(file.is_relative_to, _NOT_OWN))


def _imported(content: bytes, package: str) -> Iterator[str]:
    """Yield names that code may import, packages before their members; not all are modules."""
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError):
        return  # running the code raises the error
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            if node.level and not package:
                continue
            module = resolve_name(module, package)
            names = [f"{module}.{alias.name}" for alias in node.names]
        for name in names:
            yield from accumulate(name.split("."), "{}.{}".format)


def _module_spec(name: str, folder: str) -> ModuleSpec | None:
    top = name.partition(".")[0]
    if top == "probes" or top in sys.stdlib_module_names:
        return None
    places: list[str] | None = [folder, *sys.path]
    spec = None
    for qualified in accumulate(name.split("."), "{}.{}".format):
        spec = PathFinder.find_spec(qualified, places) if places else None
        if spec is None and qualified == top:
            spec = _installed_for_editing(top)
        places = spec.submodule_search_locations if spec else None
    return spec


def _installed_for_editing(top: str) -> ModuleSpec | None:
    """Find a module outside `sys.path`, such as one from ``pip install --editable``."""
    try:
        return find_spec(top)
    except ValueError:  # a module without a specification, such as `__main__`
        return None
