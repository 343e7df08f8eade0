"""Loads plug-ins: files of `--include`, files put into tasks/, installed packages.

A plug-in is Python code, and loading it runs the code (see docs/adding-a-task.md). This registers
tasks, measurements and so on, with their origin, which is part of the keys of results.
"""

from __future__ import annotations

import hashlib
import importlib
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec, module_from_spec, spec_from_loader
from pathlib import Path
from types import CodeType

import probes.tasks.builtin
from probes.common.errors import UserError
from probes.common.files import digest_of_code, sha256
from probes.common.notebook_code import begin_run, own_imports
from probes.common.origin import Origin, PlugInEntries, described, failing_line, loading
from probes.common.terminal import progress

GROUP = "probes.plug_ins"
"""Group of entry points; each names a module that registers plug-ins."""

TASKS = Path(probes.tasks.builtin.__file__).parent

broken: dict[str, str] = {}
"""Error by name of an entry point, or of a file in tasks/, that could not be loaded."""

_loaded: dict[Path | str, PlugInEntries] = {}
"""Plug-ins by file, or by module of an installed package."""

_helpers: dict[Path, str] = {}
"""Digest at import of each module that plug-ins import, by file."""

_STARTED = time.time()
"""Files changed after this time may differ from the modules in use."""


def discover(include: Iterable[str | Path] = ()) -> None:
    """Load the files in tasks/ and the installed packages, once; then the files of `include`.

    A file in tasks/ or a package that cannot be loaded is reported and noted in `broken`.
    """
    begin_run()
    for name, load in _plug_ins_not_loaded():
        try:
            load()
        except UserError as error:
            if name not in broken:
                progress.say(f"ignored {name}: {error}")
            broken[name] = str(error)
    for file in include:
        load_file(file)


def _plug_ins_not_loaded() -> Iterator[tuple[str, Callable[[], object]]]:
    """Names of plug-ins that are not loaded yet, with functions that load them."""
    for path in sorted(TASKS.glob("[!_]*.py")):
        if (module := f"probes.tasks.{path.stem}") not in sys.modules:
            yield path.stem, partial(_load, path, str(Path("tasks", path.name)), module)
    for point in entry_points(group=GROUP):
        if point.module not in _loaded:
            yield point.name, partial(_install, point)


def load_file(file: str | Path) -> PlugInEntries:
    """Load a file of plug-ins, or load it again if it has changed.

    Returns:
        the registered plug-ins.

    Raises:
        UserError: the file does not exist, is not Python, raises an error, uses a name that is
            taken, or registers nothing.
    """
    path = Path(file).expanduser()
    if not path.is_file():
        problem = "is a folder; name a file in it" if path.is_dir() else "there is no such file"
        raise UserError(f"--include {file}: {problem}.")
    if path.suffix != ".py":
        raise UserError(f"--include {file}: not a Python file; its name must end in .py.")
    path = path.resolve()
    name = f"plugin_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    plug_ins = _load(path, str(file), name)
    if not plug_ins.entries:
        raise UserError(
            f"--include {file}: registers no task, corpus, probe family, metric or measurement; a "
            "task is a function under @task(…), see docs/adding-a-task.md, a measurement one "
            "under @measurement(…), see docs/adding-a-measurement.md."
        )
    return plug_ins


def included_tasks(files: Iterable[str | Path]) -> list[str]:
    """Names of the tasks defined by files of `--include`, which must have been loaded."""
    loaded = (_loaded[Path(file).expanduser().resolve()] for file in files)
    return [name for plug_ins in loaded for name in plug_ins.names("task")]


def _load(path: Path, label: str, name: str) -> PlugInEntries:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UserError(f"{label}: cannot be read ({error.strerror or error}).") from error
    helpers = own_imports(path, content)
    origin = Origin(label, (path, *helpers.values()), _digest_with_helpers(content, helpers))
    if before := _loaded.get(path):
        if before.origin.sha256 == origin.sha256:
            return before
        before.unregister()
    _forget_changed(label, helpers)
    with _blamed(origin), loading(origin) as plug_ins:
        loader = _Hashed(name, str(path), content)
        spec = spec_from_loader(name, loader)
        assert isinstance(spec, ModuleSpec)
        module = module_from_spec(spec)
        sys.modules[name] = module
        # As for a script, modules beside the file come first; here they would else be hidden by
        # folders of the checkout.
        sys.path.insert(0, str(path.parent))
        try:
            loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
        finally:
            sys.path.remove(str(path.parent))
    _loaded[path] = plug_ins
    return plug_ins


def _digest_with_helpers(content: bytes, helpers: Mapping[str, Path]) -> str:
    """Digest of a file together with the user's own modules that it imports."""
    digest = hashlib.sha256(content)
    if helpers:
        digest = hashlib.sha256(digest.digest())
        for name, path in sorted(helpers.items()):
            digest.update(f"{name} {sha256(path)}\n".encode())
    return digest.hexdigest()


def _forget_changed(label: str, helpers: Mapping[str, Path]) -> None:
    """Forget helper modules if their files have changed, so that they are imported again."""
    changed = False
    for name, path in helpers.items():
        digest, loaded = sha256(path), sys.modules.get(name)
        if loaded is not None:
            file = Path(loaded.__file__ or "").resolve()
            if file != path:
                raise UserError(
                    f"{label}: imports {name}, but another module of this name is in use, {file}; "
                    f"rename {path}."
                )
            is_older = path.stat().st_mtime < _STARTED
            changed |= _helpers.get(path, digest if is_older else "") != digest
        _helpers[path] = digest
    # All of them, since an unchanged one may hold objects of a changed one.
    for name in helpers if changed else ():
        sys.modules.pop(name, None)


class _Hashed(SourceFileLoader):
    """Runs exactly the bytes that were hashed, and leaves no compiled file behind."""

    def __init__(self, name: str, path: str, content: bytes) -> None:
        super().__init__(name, path)
        self._content = content

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self._content, self.path)


def _install(point: EntryPoint) -> None:
    """Import the module of an entry point, on behalf of its distribution."""
    distribution = f"{point.dist.name} {point.dist.version}" if point.dist else point.group
    roots = _package(point.module.partition(".")[0])
    origin = Origin(point.module, roots, _digest_of_package(roots), distribution)
    with _blamed(origin), loading(origin) as plug_ins:
        importlib.import_module(point.module)
    _loaded[point.module] = plug_ins


def _digest_of_package(roots: Iterable[Path]) -> str:
    """SHA-256 of all Python files of a package, since helpers also affect results."""
    try:
        return digest_of_code(roots)
    except OSError as error:
        raise UserError(f"{error.filename}: cannot be read ({error.strerror or error}).") from error


def _package(name: str) -> tuple[Path, ...]:
    """Find the folders of a package, or the file of a module, without importing it."""
    spec = find_spec(name)
    if spec is None:
        return ()
    paths = spec.submodule_search_locations or [spec.origin or ""]
    return tuple(Path(path).resolve() for path in paths)


@contextmanager
def _blamed(origin: Origin) -> Iterator[None]:
    """Turn any error of loading a plug-in into one line that names file and line."""
    try:
        yield
    except (Exception, SystemExit) as error:
        where = failing_line(error, origin) or str(origin)
        of = f" ({origin.distribution})" if origin.distribution else ""
        problem = str(error) if isinstance(error, UserError) else described(error)
        raise UserError(f"{where}{of}: {problem.rstrip('.')}. Fix the plug-in.") from error


def require_loaded(names: Iterable[str]) -> None:
    """Raise UserError if a name belongs to a plug-in that could not be loaded."""
    for name in names:
        if name in broken:
            raise UserError(f"{name} could not be loaded: {broken[name]}")
