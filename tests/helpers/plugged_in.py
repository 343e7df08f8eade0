"""Plug-ins for tests, runs of a tiny model with them, and measurements that behave otherwise."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import probes
from probes.measurements.measurement import get_measurement, measurements

TASK = '''\
from probes import Example, task

@task("mine", version=1, needs=["upos"], metric="accuracy")
def mine(sentence):
    """Nouns."""
    for i, tag in enumerate(sentence.upos):
        yield Example("noun" if tag == "NOUN" else "other", (i, i + 1), type=sentence.words[i])
'''

GUIDES = Path(__file__).parents[2] / "docs"
EXAMPLES = GUIDES.parent / "examples"


def guide_file(name, guide="adding-a-task.md"):
    """A file of a guide."""
    _, _, rest = (GUIDES / guide).read_text().partition(f"```python\n# {name}\n")
    return rest.partition("\n```")[0] + "\n"


def example_file(name):
    """A plug-in among the examples."""
    return (EXAMPLES / name).read_text()


def measurement_file(name, of):
    """A measurement of `examples/measurements` under another name."""
    text = (EXAMPLES / "measurements" / f"of_{of}.py").read_text()
    return text.replace(f"of_{of}", name)


def run_included(model, folder, *files, tasks, **settings):
    """A quick run on 60 sentences with files of plug-ins, in `folder`."""
    folders = {"cache_dir": folder / "cache", "output": folder / "results"}
    fixed = {"limit": 60, "quick": True, "device": "cpu", "probes": ("linear",)}
    settings = {**fixed, **folders, **settings}
    return probes.run_probes(str(model), include=files, tasks=tasks, **settings)


def change_measurement(monkeypatch, name, **changes):
    """Give a measurement other attributes until the test ends."""
    changed = replace(get_measurement(name), **changes)
    monkeypatch.setitem(measurements._entries, name, changed)
