"""What a script, a notebook, or a module that one of these imports has registered.

The user's own modules that code imports determine results as it does.
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


_NOT_OWN = [Path(__file__).resolve().parents[1] / n for n in ("probes", "common", "data", "tasks")]
_NOT_OWN += [
    Path(path).resolve()
    for name, path in sysconfig.get_paths().items()
    if name in ("stdlib", "platstdlib", "purelib", "platlib")
]


def own_imports(file: Path, content: bytes) -> dict[str, Path]:
    """The user's own modules that a file imports, and those that these import.

    Found are import statements, also within functions; modules of the standard library, of
    installed packages and of the suite are left out.

    Args:
        file: the file, beside which modules are searched for first.
        content: what is in it.

    Returns:
        files by names of modules.
    """
    return own_modules(_imported(content, ""), file.parent)


def own_modules(names: Iterable[str], folder: Path) -> dict[str, Path]:
    """The user's own modules of these names, and those that they import.

    Args:
        names: some may be no modules.
        folder: where modules are searched for first.
    """
    found: dict[str, Path] = {}
    todo = [iter(names)]
    while todo:
        for name in todo.pop():
            if name in found or not (spec := _find(name, str(folder))) or not spec.origin:
                continue
            path = Path(spec.origin).resolve()
            if path.is_file() and _is_own(path):
                found[name] = path
                if path.suffix == ".py":
                    inside = spec.submodule_search_locations is not None
                    package = name if inside else name.rpartition(".")[0]
                    todo.append(_imported(path.read_bytes(), package))
    return found


def _is_own(file: Path) -> bool:
    """Whether a file belongs neither to Python, to an installed package nor to the suite."""
    packages = {"site-packages", "dist-packages"} & set(file.parts)
    return not packages and not any(map(file.is_relative_to, _NOT_OWN))


def _imported(content: bytes, package: str) -> Iterator[str]:
    """What code may import: packages before what is in them; some names are no modules."""
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError):
        return  # whoever runs the code says so
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            if node.level and not package:
                continue
            module = resolve_name(module, package)
            names = [f"{module}.{each.name}" for each in node.names]
        for name in names:
            yield from accumulate(name.split("."), "{}.{}".format)


def _find(name: str, folder: str) -> ModuleSpec | None:
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
    """A module that no folder of `sys.path` has, such as one of ``pip install --editable``."""
    try:
        return find_spec(top)
    except ValueError:  # a module without a specification, such as `__main__`
        return None
