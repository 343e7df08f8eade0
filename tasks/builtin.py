"""Imports every task that ships, so that each registers itself, in the order of tables."""

from collections.abc import Iterable

# isort: off
from tasks import pos, chunking, depth, agreement, srl
from tasks import deprel, distance, chunk_labelling, roles, main_clause, position, sentence_shape

# isort: on
from tasks.task import tasks

STANDARD = ("pos", "chunking", "depth", "agreement", "srl")
"""The tasks of a run that is not told which."""

TASK_GROUPS = ("standard", "all")
"""What `--tasks` takes beside names; of these a corpus need not serve every one."""


def expanded(asked: Iterable[str], own: Iterable[str] = ()) -> list[str]:
    """Names and groups of tasks as names, each once; `own` are further ones of the user's data."""
    groups = {"standard": STANDARD, "all": (*own, *tasks)}
    return list(dict.fromkeys(name for one in asked for name in groups.get(one, (one,))))


__all__ = [
    "STANDARD",
    "TASK_GROUPS",
    "agreement",
    "chunk_labelling",
    "chunking",
    "deprel",
    "depth",
    "distance",
    "expanded",
    "main_clause",
    "pos",
    "position",
    "roles",
    "sentence_shape",
    "srl",
    "tasks",
]
