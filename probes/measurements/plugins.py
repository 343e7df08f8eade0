"""Finds what does not ship: files of `--include`, files put into tasks/, installed packages.

A plug-in is Python code and runs as such (see docs/adding-a-task.md). Running it registers what
it defines, under the origin that becomes part of its results' keys.
"""

from __future__ import annotations

import hashlib
import importlib
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec, module_from_spec, spec_from_loader
from pathlib import Path
from types import CodeType

import probes.tasks.builtin
from probes.common.errors import UserError
from probes.common.origin import Loading, Origin, described, loading, place_in
from probes.common.terminal import progress

GROUPS = ("probes.tasks", "probes.corpora", "probes.families", "probes.metrics")
"""Entry points of packages; each names a module that registers what it defines."""

TASKS = Path(probes.tasks.builtin.__file__).parent

broken: dict[str, str] = {}
"""Names of entry points, and of files in tasks/, that could not be loaded, and why."""

_loaded: dict[Path | str, Loading] = {}
"""By file, or by module of a package."""


def discover(include: Iterable[str | Path] = ()) -> None:
    """Load what stands in tasks/ and what is installed, once; then the files of `--include`.

    What is merely installed or lying about and cannot be loaded is named, and kept in `broken`.

    Raises:
        UserError: a file of `--include` cannot be loaded, or registers nothing.
    """
    for path in sorted(TASKS.glob("[!_]*.py")):
        if f"probes.tasks.{path.stem}" not in sys.modules:
            with _spared(path.stem):
                _load(path, str(Path("tasks", path.name)), f"probes.tasks.{path.stem}")
    # One look at all that is installed: each takes as long as the next.
    installed = entry_points()
    for group in GROUPS:
        for point in installed.select(group=group):
            if point.module not in _loaded:
                with _spared(point.name):
                    _install(point)
    for file in include:
        load_file(file)


def load_file(file: str | Path) -> Loading:
    """Load a file of plug-ins; a file that was changed since is loaded anew.

    Raises:
        UserError: it is not there or not Python, raises, takes a name that is in use, or registers
            nothing.
    """
    path = Path(file).expanduser()
    if not path.is_file():
        what = "is a folder; name a file in it" if path.is_dir() else "there is no such file"
        raise UserError(f"--include {file}: {what}.")
    if path.suffix != ".py":
        raise UserError(f"--include {file}: not a Python file; its name has to end in .py.")
    path = path.resolve()
    name = f"plugin_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    found = _load(path, str(file), name)
    if not found.entries:
        raise UserError(
            f"--include {file}: registers no task, corpus, probe family or metric; a task is a "
            "function under @task(…), see docs/adding-a-task.md."
        )
    return found


def included_tasks(files: Iterable[str | Path]) -> list[str]:
    """Names of the tasks that files of `--include`, loaded before, define."""
    loaded = (_loaded[Path(file).expanduser().resolve()] for file in files)
    return [name for found in loaded for name in found.names("task")]


def _load(path: Path, shown: str, name: str) -> Loading:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UserError(f"{shown}: cannot be read ({error.strerror or error}).") from error
    origin = Origin(shown, (path,), hashlib.sha256(content).hexdigest())
    if before := _loaded.get(path):
        if before.origin.sha256 == origin.sha256:
            return before
        before.take_back()
    with _blamed(origin), loading(origin) as found:
        loader = _Hashed(name, str(path), content)
        spec = spec_from_loader(name, loader)
        assert isinstance(spec, ModuleSpec)
        module = module_from_spec(spec)
        sys.modules[name] = module
        try:
            loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
    _loaded[path] = found
    return found


class _Hashed(SourceFileLoader):
    """Runs the very bytes that were hashed, and leaves no compiled file behind."""

    def __init__(self, name: str, path: str, content: bytes) -> None:
        super().__init__(name, path)
        self._content = content

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self._content, self.path)


def _install(point: EntryPoint) -> None:
    """Import the module of an entry point; what it registers is the distribution's."""
    distribution = f"{point.dist.name} {point.dist.version}" if point.dist else point.group
    roots = _package(point.module.partition(".")[0])
    origin = Origin(point.module, roots, _digest(roots), distribution)
    with _blamed(origin), loading(origin) as found:
        importlib.import_module(point.module)
    _loaded[point.module] = found


def _digest(roots: Iterable[Path]) -> str:
    """SHA-256 over the Python files of a package: helpers decide examples as much as rules."""
    digest = hashlib.sha256()
    for root in roots:
        for path in sorted(root.rglob("*.py")) if root.is_dir() else [root]:
            try:
                content = path.read_bytes()
            except OSError as error:
                raise UserError(f"{path}: cannot be read ({error.strerror or error}).") from error
            digest.update(f"{path.relative_to(root.parent)}\n".encode())
            digest.update(hashlib.sha256(content).digest())
    return digest.hexdigest()


def _package(name: str) -> tuple[Path, ...]:
    """The folders of a package, or the file of a module; found without importing it."""
    spec = find_spec(name)
    if spec is None:
        return ()
    places = spec.submodule_search_locations or [spec.origin or ""]
    return tuple(Path(place).resolve() for place in places)


@contextmanager
def _blamed(origin: Origin) -> Iterator[None]:
    """Turn whatever a plug-in raises while it is loaded into one line with file and line."""
    try:
        yield
    except (Exception, SystemExit) as error:
        where = place_in(error, origin) or str(origin)
        of = f" ({origin.distribution})" if origin.distribution else ""
        what = str(error) if isinstance(error, UserError) else described(error)
        raise UserError(f"{where}{of}: {what.rstrip('.')}. Mend the plug-in.") from error


@contextmanager
def _spared(name: str) -> Iterator[None]:
    """Name what cannot be loaded, and go on; it is an error only where it is asked for."""
    try:
        yield
    except UserError as error:
        if name not in broken:
            progress.say(f"left out {name}: {error}")
        broken[name] = str(error)


def require_whole(names: Iterable[str]) -> None:
    """Refuse names that stand for something that could not be loaded.

    Raises:
        UserError: with the reason.
    """
    for name in names:
        if name in broken:
            raise UserError(f"{name} could not be loaded: {broken[name]}")
