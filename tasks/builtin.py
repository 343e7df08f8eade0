"""The built-in tasks, in the order of tables.

Any other file in this folder is loaded as a plug-in (probes/measurements/plugins.py). Results
identify built-in tasks by version, and plug-ins by the content of their file.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import get_args

from probes.tasks.morphology import VERSION, is_morphological
from probes.tasks.task import Group, Task, plain_name
from probes.tasks.task import tasks as tasks

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
    "constituents",
)

TASK_GROUPS = ("standard", *get_args(Group), "all")
"""Values of `--tasks` that stand for several tasks. Tasks without annotation are skipped."""

for _name in SHIPPED:
    importlib.import_module(f"probes.tasks.{_name}")


def get_task(name: str) -> Task:
    """The task called `name`, built in or from a loaded plug-in.

    Raises:
        UserError: the name is unknown; the message suggests the closest one.
    """
    return tasks.get(name)


def table_order(name: str) -> tuple[int, str, str]:
    """Sort key for task names: built-in, loaded, others by name; sites after the layer."""
    known, plain = list(tasks), plain_name(name)
    return known.index(plain) if plain in known else len(known), plain, name


def version_of(name: str) -> int | None:
    """Current version of a task; None for a column of the user's data, or if not loaded."""
    name = plain_name(name)
    if name in tasks:
        return tasks.get(name).version
    return VERSION if is_morphological(name) else None


def views_of(name: str) -> tuple[str, ...]:
    """The views in which examples of one of the suite's tasks may be read."""
    if name == "agreement":
        return "masked", "cut"
    changed = name in ("bigram-shift", "coordination-inversion", "odd-man-out")
    return ("own",) if changed or get_task(name).window > 1 else ("plain",)


def group_of_task(name: str) -> Group:
    """Group of a task; "other" for a column of the user's data, or if not loaded."""
    name = plain_name(name)
    if name in tasks:
        return tasks.get(name).group
    return "morphology" if is_morphological(name) else "other"


def expanded(asked: Iterable[str], own: Mapping[str, Task] = MappingProxyType({})) -> list[str]:
    """Expand groups to task names, without duplicates. A task takes precedence over a group.

    Args:
        asked: names and groups of tasks.
        own: tasks made from the corpus, such as label columns, by name.
    """
    known = {**own, **{name: tasks.get(name) for name in tasks}}
    groups = {
        group: [n for n, each in known.items() if each.group == group] for group in TASK_GROUPS
    }
    groups |= {"standard": list(STANDARD), "all": list(known)}
    of_each = ([one] if one in known else groups.get(one, [one]) for one in asked)
    return list(dict.fromkeys(name for names in of_each for name in names))
