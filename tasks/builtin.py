"""Imports every task that ships, so that each registers itself."""

from tasks import agreement, chunking, depth, pos, srl
from tasks.task import tasks

__all__ = ["agreement", "chunking", "depth", "pos", "srl", "tasks"]
