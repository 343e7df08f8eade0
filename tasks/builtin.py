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
from probes.tasks.task import Task, TaskGroup, plain_name
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

TASK_GROUPS = ("standard", *get_args(TaskGroup), "all")
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
    names, plain = list(tasks), plain_name(name)
    return names.index(plain) if plain in names else len(names), plain, name


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
    changes_words = name in ("bigram-shift", "coordination-inversion", "odd-man-out")
    return ("own",) if changes_words or get_task(name).window > 1 else ("plain",)


def group_of_task(name: str) -> TaskGroup:
    """Group of a task; "other" for a column of the user's data, or if not loaded."""
    name = plain_name(name)
    if name in tasks:
        return tasks.get(name).group
    return "morphology" if is_morphological(name) else "other"


def expand_groups(
    names: Iterable[str], corpus_tasks: Mapping[str, Task] = MappingProxyType({})
) -> list[str]:
    """Expand groups to task names, without duplicates. A task takes precedence over a group.

    Args:
        names: names and groups of tasks.
        corpus_tasks: tasks made from the corpus, such as label columns, by name.
    """
    by_name = {**corpus_tasks, **{name: tasks.get(name) for name in tasks}}
    groups = {
        group: [n for n, task in by_name.items() if task.group == group] for group in TASK_GROUPS
    }
    groups |= {"standard": list(STANDARD), "all": list(by_name)}
    name_lists = ([name] if name in by_name else groups.get(name, [name]) for name in names)
    return list(dict.fromkeys(name for members in name_lists for name in members))
