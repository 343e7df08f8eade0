"""Old imports of plug-ins and notebooks, and what to write instead."""

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
"""By a module that no longer exists, the names that plug-ins imported from it."""


def moved(module: str) -> str:
    """The message for an import of `module`."""
    new = f"use `from probes import {', '.join(MOVED[module])}`"
    if module.startswith("probes."):
        return f"{module} has moved: {new}"
    # It may as well be a module of the user's own that cannot be found.
    return f"No module named {module!r}; that of the probing suite has moved: {new}"


class MovedModules:
    """Makes the import of a module that has moved fail with the new import in the message.

    Belongs at the end of `sys.meta_path`, where it is asked only for what no other finder finds.
    """

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> None:
        """Never find a module.

        Raises:
            ModuleNotFoundError: the module has moved.
        """
        if name in MOVED:
            raise ModuleNotFoundError(moved(name), name=name)
