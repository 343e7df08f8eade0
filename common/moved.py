"""Helpful errors for imports of modules that have moved."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType

MOVED = {
    "common": ("UserError",),
    "data": ("Corpus", "Registered", "Remote", "Sentence", "corpora"),
    "tasks": ("Example", "Excluded", "Task", "task"),
    "probes.config": ("ProbeSpec",),
    "probes.families": ("probe_family",),
    "probes.heads": ("ProbeFamily", "shared_input", "shared_input_gradient"),
    "probes.metrics": ("Gold", "Metric", "class_parts", "mean_parts", "mean_value", "metrics"),
    "probes.plugins": ("load_file",),
    "probes.run": ("Results", "run_probes"),
}
"""Modules that no longer exist, and the names that plug-ins imported from them."""


def moved(module: str) -> str:
    """The message for an import of `module`."""
    new = f"use `from probes import {', '.join(MOVED[module])}`"
    if module.startswith("probes."):
        return f"{module} has moved: {new}"
    # It may also be a missing module of the user's own.
    return f"No module named {module!r}; that of the probing suite has moved: {new}"


class MovedModules:
    """Import finder that raises an error with the new import for modules that have moved.

    It must be last in `sys.meta_path`, so that it is only asked for modules that no other finder
    finds.
    """

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> None:
        """Find nothing.

        Raises:
            ModuleNotFoundError: the module has moved.
        """
        if name in MOVED:
            raise ModuleNotFoundError(moved(name), name=name)
