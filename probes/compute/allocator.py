"""Memory that is freed between operations stays with the process while a model runs.

By default the C library gives large blocks back to the system and asks for them again, and
the system clears every page anew, which costs the more the larger the batch
(docs/performance.md).
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3

_DYNAMIC_LIMIT = 32 << 20
"""Bytes up to which glibc raises its threshold by itself; restored afterwards."""


@contextmanager
def kept_memory() -> Iterator[None]:
    """Keep freed blocks for reuse inside; give them back to the system at the end."""
    libc = _glibc()
    if libc is None:
        yield
        return
    libc.mallopt(_M_MMAP_THRESHOLD, 1 << 30)
    libc.mallopt(_M_TRIM_THRESHOLD, (1 << 31) - 1)
    try:
        yield
    finally:
        libc.mallopt(_M_MMAP_THRESHOLD, _DYNAMIC_LIMIT)
        libc.mallopt(_M_TRIM_THRESHOLD, 2 * _DYNAMIC_LIMIT)
        give_back()


def give_back() -> None:
    """Give freed blocks back to the system.

    Blocks of many sizes leave gaps between them that fit no later one. Done now and then, what is
    kept does not grow with the work.
    """
    if (libc := _glibc()) is not None:
        libc.malloc_trim(ctypes.c_size_t(0))


def _glibc() -> ctypes.CDLL | None:
    """The C library; None for another one, with an allocator of its own."""
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None
    known = libc is not None and hasattr(libc, "mallopt") and hasattr(libc, "malloc_trim")
    return libc if known else None
