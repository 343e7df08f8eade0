"""Which layer of a transformer knows what: layer-wise probing in one command.

From Python::

    import probes

    results = probes.run_probes("all-MiniLM-L6-v2", corpus="sample")
    results.table("linear")

Plug-ins and notebooks import from `probes` itself: inner modules may move, these names stay.
"""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

_FOLDER = Path(__file__).parent
_IN_WHEEL = (_FOLDER / "data").is_dir()


class _Finder:
    """Finds what a checkout has beside this folder.

    probes.common, probes.data and probes.tasks are folders at the top of a checkout; in a wheel
    they are inside this one.
    """

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """See `importlib.abc.MetaPathFinder`."""
        if _IN_WHEEL or name not in ("probes.common", "probes.data", "probes.tasks"):
            return None
        return PathFinder.find_spec(name, [str(_FOLDER.parent)])


# First, since the finder of another checkout's editable install may know these names too.
sys.meta_path.insert(0, _Finder)

__version__ = "0.1.0"

_HOMES = {
    imported.name: statement.module
    for statement in ast.parse((_FOLDER / "__init__.pyi").read_text("utf-8")).body
    if isinstance(statement, ast.ImportFrom) and statement.module
    for imported in statement.names
}
"""The module that defines each stable name. It is imported when the name is first used, so that
`import probes` is fast."""

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    """Import a stable name from the module that defines it."""
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'probes' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(_HOMES)
