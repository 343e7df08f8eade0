"""The tasks that ship, in the order of tables; each module of `SHIPPED` registers its own.

Any other file in this folder is found too (see probes/measurements/plugins.py). What sets a
listed one apart is that its version identifies it in results; the others are identified by their
content.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable

from probes.tasks.task import Task, tasks

STANDARD = ("pos", "chunking", "depth", "agreement", "srl")
"""The tasks of a run that is not told which."""

SHIPPED = (
    *STANDARD,
    "deprel",
    "distance",
    "chunk_labelling",
    "roles",
    "main_clause",
    "position",
    "sentence_shape",
)

TASK_GROUPS = ("standard", "all")
"""What `--tasks` takes beside names; of these a corpus need not serve every one."""

for _name in SHIPPED:
    importlib.import_module(f"probes.tasks.{_name}")


def get_task(name: str) -> Task:
    """The task called `name`: one that ships, or one of a plug-in that has been loaded.

    Raises:
        UserError: there is none; the message names the nearest one.
    """
    return tasks.get(name)


def expanded(asked: Iterable[str], own: Iterable[str] = ()) -> list[str]:
    """Names and groups of tasks as names, each once; `own` are further ones of the user's data."""
    groups = {"standard": STANDARD, "all": (*own, *tasks)}
    return list(dict.fromkeys(name for one in asked for name in groups.get(one, (one,))))


__all__ = ["SHIPPED", "STANDARD", "TASK_GROUPS", "expanded", "get_task", "tasks"]
