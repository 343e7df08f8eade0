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
from pathlib import Path
from typing import Any

if not Path(__file__).with_name("data").exists():
    # In a checkout, the folders of probes.data, probes.tasks and probes.common are beside this one.
    __path__.append(str(Path(__file__).parent.parent))

from probes.common.moved import MovedModules

sys.meta_path.append(MovedModules())

__version__ = "0.1.0"

_HOMES = {
    imported.name: statement.module
    for statement in ast.parse(Path(__file__).with_suffix(".pyi").read_text("utf-8")).body
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
    return sorted({*globals(), *_HOMES})
