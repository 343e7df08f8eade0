"""Which layer of a transformer knows what: layer-wise probing in one command.

From Python::

    import probes

    results = probes.run_probes("all-MiniLM-L6-v2", corpus="sample")
    results.table("linear")

Plug-ins and notebooks import from here alone. Inner modules may move; these names stay.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from probes.cli.run import Results, run_probes
    from probes.common.errors import UserError
    from probes.data.downloads import Remote
    from probes.data.registered import Registered, corpora
    from probes.data.sentence import ROOT, SPLITS, Corpus, Frame, Sentence
    from probes.measurements.plugins import load_file
    from probes.records.probe_spec import ProbeSpec
    from probes.statistics.gold import Gold
    from probes.statistics.metrics import Metric, class_parts, metrics
    from probes.tasks.task import Example, Excluded, Task, task
    from probes.training.families import probe_family
    from probes.training.family import ProbeFamily, shared_input, shared_input_gradient

if not Path(__file__).with_name("data").exists():
    # In a checkout, probes.data, probes.tasks and probes.common lie beside this folder.
    __path__.append(str(Path(__file__).parent.parent))

__version__ = "0.1.0"

_MODULES = {
    "probes.cli.run": ("Results", "run_probes"),
    "probes.common.errors": ("UserError",),
    "probes.data.downloads": ("Remote",),
    "probes.data.registered": ("Registered", "corpora"),
    "probes.data.sentence": ("ROOT", "SPLITS", "Corpus", "Frame", "Sentence"),
    "probes.measurements.plugins": ("load_file",),
    "probes.records.probe_spec": ("ProbeSpec",),
    "probes.statistics.gold": ("Gold",),
    "probes.statistics.metrics": ("Metric", "class_parts", "metrics"),
    "probes.tasks.task": ("Example", "Excluded", "Task", "task"),
    "probes.training.families": ("probe_family",),
    "probes.training.family": ("ProbeFamily", "shared_input", "shared_input_gradient"),
}
"""Where each public name is defined; imported when it is first used, so that
`import probes` stays light."""

_HOMES = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "ROOT",
    "SPLITS",
    "Corpus",
    "Example",
    "Excluded",
    "Frame",
    "Gold",
    "Metric",
    "ProbeFamily",
    "ProbeSpec",
    "Registered",
    "Remote",
    "Results",
    "Sentence",
    "Task",
    "UserError",
    "class_parts",
    "corpora",
    "load_file",
    "metrics",
    "probe_family",
    "run_probes",
    "shared_input",
    "shared_input_gradient",
    "task",
]


def __getattr__(name: str) -> Any:
    """Import a public name from its module."""
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'probes' has no attribute {name!r}")
