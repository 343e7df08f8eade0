"""The tasks that ship with the suite, in the order of tables.

Any other file in this folder is loaded as a plug-in (probes/measurements/plugins.py). Results
identify the tasks listed here by their version, and plug-ins by the content of their file.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable

from probes.tasks.task import Task, plain_name, tasks

STANDARD = ("pos", "chunking", "depth", "agreement", "srl")
"""The tasks of a run without `--tasks`."""

SHIPPED = (
    *STANDARD,
    "deprel",
    "distance",
    "chunk_labelling",
    "roles",
    "main_clause",
    "position",
    "sentence_shape",
    "entities",
    "coreference",
    "proto_roles",
    "factuality",
    "supersense",
    "genericity",
    "sense",
    "main_arguments",
    "changed_order",
    "odd_man_out",
    "word_content",
)

TASK_GROUPS = ("standard", "all")
"""Values of `--tasks` that stand for several tasks; those that the corpus lacks are skipped."""

for _name in SHIPPED:
    importlib.import_module(f"probes.tasks.{_name}")


def get_task(name: str) -> Task:
    """The task called `name`, of the suite or of a plug-in that has been loaded.

    Raises:
        UserError: the name is unknown; the message suggests the closest one.
    """
    return tasks.get(name)


def table_order(name: str) -> tuple[int, str, str]:
    """Sorts names of tasks: the suite's, loaded ones, others by name; sites after the layer."""
    known, plain = list(tasks), plain_name(name)
    return known.index(plain) if plain in known else len(known), plain, name


def expanded(asked: Iterable[str], own: Iterable[str] = ()) -> list[str]:
    """Task names with groups expanded, without duplicates.

    Args:
        asked: names and groups of tasks.
        own: names of tasks made from the user's own data, part of the group "all".
    """
    groups = {"standard": STANDARD, "all": (*own, *tasks)}
    return list(dict.fromkeys(name for one in asked for name in groups.get(one, (one,))))


__all__ = ["SHIPPED", "STANDARD", "TASK_GROUPS", "expanded", "get_task", "table_order", "tasks"]
