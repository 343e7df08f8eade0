"""Where the modules went that plug-ins used to import."""

from __future__ import annotations

MOVED = {
    "common.errors": ("UserError",),
    "data.downloads": ("Remote",),
    "data.registered": ("Registered", "corpora"),
    "data.sentence": ("ROOT", "SPLITS", "Corpus", "Frame", "Sentence"),
    "probes.config": ("ProbeSpec",),
    "probes.families": ("probe_family",),
    "probes.heads": ("ProbeFamily", "shared_input", "shared_input_gradient"),
    "probes.metrics": ("Gold", "Metric", "class_parts", "mean_parts", "mean_value", "metrics"),
    "probes.plugins": ("load_file",),
    "probes.run": ("Results", "run_probes"),
    "tasks.task": ("Example", "Excluded", "Task", "task"),
}
"""Modules that no longer exist, and the stable names that were imported from them."""

FOLDERS = ("common", "data", "tasks")
"""Folders of the repository that used to be packages, and are now parts of `probes`."""


def moved(module: str) -> str:
    """What to write instead of an import of `module`; empty if it is not one of the old modules."""
    package = module.partition(".")[0]
    if module in MOVED:
        return f"{module} has moved: use `from probes import {', '.join(MOVED[module])}`"
    if package in FOLDERS:
        return (
            f"the suite's {package} is probes.{package} now: use `from probes import …`, whose "
            "names are in probes/__init__.pyi"
        )
    return ""
