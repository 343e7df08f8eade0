"""Imports every task that ships, so that each registers itself, in the order of tables."""

# isort: off
from tasks import pos, chunking, depth, agreement, srl

# isort: on
from tasks.task import tasks

__all__ = ["agreement", "chunking", "depth", "pos", "srl", "tasks"]
