"""The user's own modules that a file of plug-ins imports: they determine results as it does."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import resolve_name
from itertools import accumulate
from pathlib import Path

import probes
import probes.common
import probes.data
import probes.tasks
from probes.common.by_value import is_installed

_SUITE = [
    Path(package.__file__ or "").resolve().parent
    for package in (probes, probes.common, probes.data, probes.tasks)
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
    found: dict[str, Path] = {}
    todo = [(content, "")]
    while todo:
        for name in _imported(*todo.pop()):
            if name in found or not (spec := _find(name, str(file.parent))) or not spec.origin:
                continue
            path = Path(spec.origin).resolve()
            known = is_installed(path) or any(map(path.is_relative_to, _SUITE))
            if path.is_file() and not known:
                found[name] = path
                if path.suffix == ".py":
                    inside = spec.submodule_search_locations is not None
                    todo.append((path.read_bytes(), name if inside else name.rpartition(".")[0]))
    return found


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
        places = spec.submodule_search_locations if spec else None
    return spec
