"""How much memory there is, and what to say when there is too little."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from probes.common.errors import UserError, out_of_memory

_SHARE = 0.25
"""Of what is free, if no budget is given."""


def available(device: torch.device) -> int:
    """Bytes that training may take on `device` unless it is told: a share of what is free."""
    if device.type == "cuda":
        # What torch keeps for reuse is free too.
        kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int(_SHARE * (torch.cuda.mem_get_info(device)[0] + kept))
    return int(_SHARE * free_memory())


def free_memory() -> int:
    """Bytes of main memory that this process can have without swapping."""
    sizes = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    sizes += _kilobytes("/proc/meminfo", "MemAvailable")
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY:
        sizes += [limit - used for used in _kilobytes("/proc/self/status", "VmSize")]
    group = Path("/sys/fs/cgroup")
    try:
        allowed = int((group / "memory.max").read_text())
        sizes.append(allowed - int((group / "memory.current").read_text()))
    except (OSError, ValueError):
        pass  # no control group, or one that sets no bound ("max")
    return max(0, min(sizes))


def _kilobytes(path: str, name: str) -> list[int]:
    """The bytes that a line ``name: 123 kB`` of a file states; none if there is none."""
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return []
    return [1024 * int(line.split()[1]) for line in lines if line.startswith(f"{name}:")]


@contextmanager
def telling(what: str, advice: str) -> Iterator[None]:
    """Turn a lack of memory into an error that the user can do something about.

    Args:
        what: what the memory was for.
        advice: what to do.

    Raises:
        UserError: memory could not be had.
    """
    try:
        yield
    except (MemoryError, RuntimeError, OSError) as error:
        if not out_of_memory(error):
            raise
        raise UserError(
            f"Out of memory while {what}; {advice} What was finished is kept, and the same "
            "command goes on from there."
        ) from error
