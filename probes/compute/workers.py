"""Work on many blocks, each by one thread from beginning to end.

Torch splits each operation among its threads instead, so that one reads what another wrote. Where
the cores of a virtual machine share no cache, that costs more than the operation itself
(docs/performance.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

_MOST = 4
"""Threads at once: each holds blocks of its own, and more than a few wait for memory."""

Item = TypeVar("Item")

Made = TypeVar("Made")


def n_workers() -> int:
    """How many items are worked on at once."""
    return min(torch.get_num_threads(), _MOST)


def each(function: Callable[[Item], Made], items: Iterable[Item]) -> list[Made]:
    """What `function` makes of each item, in their order, by torch's number of threads or four.

    Raises:
        Exception: the first that a call raises; what was not begun by then is left out.
    """
    n_threads = torch.get_num_threads()
    try:
        with ThreadPoolExecutor(n_workers(), "worker", torch.set_num_threads, (1,)) as pool:
            return list(pool.map(function, items))
    finally:
        # It holds for the thread that calls it, but for MKL, where it holds for all.
        torch.set_num_threads(n_threads)
