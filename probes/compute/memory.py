"""How much memory is free, and errors that explain a lack of it."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from probes.common.errors import UserError, out_of_memory

_SHARE = 0.25
"""The share of free memory that training may take if no budget is given."""


def default_budget(device: torch.device) -> int:
    """Bytes that training may take on `device` by default: a share of what is free."""
    if device.type == "cuda":
        # Memory that torch caches for reuse is free too.
        cached = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int(_SHARE * (torch.cuda.mem_get_info(device)[0] + cached))
    return int(_SHARE * free_memory())


def free_memory() -> int:
    """Bytes of main memory that this process can allocate without swapping."""
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
        pass  # no control group, or one without a limit ("max")
    return max(0, min(sizes))


def _kilobytes(path: str, name: str) -> list[int]:
    """The number of bytes in the line ``name: 123 kB`` of a file; empty if there is none."""
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return []
    return [1024 * int(line.split()[1]) for line in lines if line.startswith(f"{name}:")]


@contextmanager
def explain_out_of_memory(what: str, advice: str) -> Iterator[None]:
    """Turn a lack of memory inside the block into an error that says what to do.

    Args:
        what: what the memory was needed for ("fitting pos with linear probes").
        advice: what the user can do, as a sentence after a semicolon.

    Raises:
        UserError: the block ran out of memory.
    """
    try:
        yield
    except (MemoryError, RuntimeError, OSError) as error:
        if not out_of_memory(error):
            raise
        raise UserError(
            f"Out of memory while {what}; {advice} Finished work is kept, and the same command "
            "continues from there."
        ) from error
