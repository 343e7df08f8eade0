"""The user's own modules that code imports: they determine results as it does."""

from __future__ import annotations

import ast
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec, resolve_name
from itertools import accumulate
from pathlib import Path

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
