"""Free memory, copies between host and GPU, and errors when memory runs out."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path, PurePosixPath

import torch
from torch import Tensor

from probes.common.errors import UserError, out_of_memory

_SHARE, _SHARE_OF_GPU = 0.5, 0.25
"""Shares of free memory that training may take by default."""


def default_budget(device: torch.device) -> int:
    """Bytes that training may take on `device` by default: a share of what is free."""
    if device.type == "cuda":
        # Memory that torch caches for reuse is free too.
        cached = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int(_SHARE_OF_GPU * (torch.cuda.mem_get_info(device)[0] + cached))
    return int(_SHARE * free_memory())


def free_memory() -> int:
    """Bytes of main memory that this process can allocate without swapping."""
    sizes = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    sizes += _bytes_in_line("/proc/meminfo", "MemAvailable")
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY:
        sizes += [limit - used for used in _bytes_in_line("/proc/self/status", "VmSize")]
    return max(0, min([*sizes, *free_in_groups()]))


_LIMITS = {
    "cgroup2": (("memory.max", "memory.high"), "memory.current", "inactive_file"),
    "cgroup": (("memory.limit_in_bytes",), "memory.usage_in_bytes", "total_inactive_file"),
}
"""By file system: files with a control group's memory limits, file with the group's usage, and the
line of `memory.stat` that counts cached files, which the kernel drops when memory is needed."""


def free_in_groups(root: Path = Path("/")) -> list[int]:
    """Bytes left by each limit on this process's control group and on the groups around it.

    A host may have version 1 and 2 side by side. In a container, the mounted root is its own group
    or one around it.

    Args:
        root: where `/proc` and `/sys` are.
    """
    try:
        groups = (root / "proc/self/cgroup").read_text().splitlines()
        mounts = (root / "proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return []
    # "4:memory:/a/b" in version 1, "0::/a/b" in version 2.
    paths = {names: path for _, names, path in (line.split(":", 2) for line in groups)}
    group_paths = {
        "cgroup2": paths.get(""),
        "cgroup": next(
            (path for names, path in paths.items() if "memory" in names.split(",")), None
        ),
    }
    free_bytes: list[int] = []
    for mount in mounts:
        before, _, after = mount.partition(" - ")
        top, point = before.split()[3:5]
        kind, _, options = after.split()[:3]
        path = group_paths.get(kind)
        if path is None or (kind == "cgroup" and "memory" not in options.split(",")):
            continue
        inner = PurePosixPath(path)
        below = inner.relative_to(top) if inner.is_relative_to(top) else PurePosixPath()
        for group in (below, *below.parents):
            free_bytes += _bytes_left(root / point.lstrip("/") / group, *_LIMITS[kind])
    return free_bytes


def _bytes_left(group: Path, limits: Sequence[str], usage: str, droppable: str) -> list[int]:
    """Bytes left by each limit on one group; empty if it has no limit."""

    def numbers(name: str) -> list[list[str]]:
        try:
            return [line.split() for line in (group / name).read_text().splitlines()]
        except OSError:
            return []

    allowed = [int(n) for name in limits for (n,) in numbers(name) if n != "max"]
    used = sum(int(n) for (n,) in numbers(usage))
    used -= sum(int(n) for name, n in numbers("memory.stat") if name == droppable)
    return [limit - used for limit in allowed]


def _bytes_in_line(path: str, name: str) -> list[int]:
    """Bytes from the line ``name: 123 kB`` of a file; empty if there is no such line."""
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return []
    return [1024 * int(line.split()[1]) for line in lines if line.startswith(f"{name}:")]


@contextmanager
def explain_out_of_memory(action: str, advice: str) -> Iterator[None]:
    """Turn an out-of-memory error inside the block into one that says what to do.

    Args:
        action: the operation that needs the memory ("fitting pos with linear probes").
        advice: a remedy for the user, as a sentence after a semicolon.

    Raises:
        UserError: the block ran out of memory.
    """
    try:
        yield
    except (MemoryError, RuntimeError, OSError) as error:
        if not out_of_memory(error):
            raise
        raise UserError(
            f"Out of memory while {action}; {advice} Finished work is kept; run the same command "
            "again to continue."
        ) from error


def host_empty(*shape: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """An empty host tensor to copy to or from `device`; pinned for a GPU."""
    return torch.empty(*shape, dtype=dtype, pin_memory=device.type == "cuda")


def to_device(tensor: Tensor, device: torch.device) -> Tensor:
    """Copy a host tensor to `device`. The tensor must not be written to afterwards."""
    if device.type != "cuda":
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)


def device_of_sums(device: torch.device) -> torch.device:
    """The device for float64 sums of what is on `device`: the CPU unless it is a CUDA GPU."""
    return device if device.type == "cuda" else torch.device("cpu")


def numbers_of(scalars: Sequence[Tensor]) -> list[float]:
    """The numbers in some scalars of one or several GPUs; the host waits once."""
    if not scalars:
        return []
    return torch.stack([scalar.to(scalars[0].device) for scalar in scalars]).tolist()


class ToHost:
    """Copies tensors of one device to the host while the GPU continues to compute.

    The copies may be read after `wait`. (For copies to a GPU, torch itself keeps a pinned block
    from being reused too early.)
    """

    def __init__(self, *tensors: Tensor) -> None:
        device = tensors[0].device
        self._arrived: torch.cuda.Event | None = None
        self._tensors = tensors
        if device.type == "cuda":
            stream = _side_stream(device)
            stream.wait_stream(torch.cuda.current_stream(device))
            with torch.cuda.stream(stream):
                self._tensors = tuple(
                    host_empty(*t.shape, dtype=t.dtype, device=device).copy_(t, non_blocking=True)
                    for t in tensors
                )
                self._arrived = stream.record_event()
            for tensor in tensors:
                # Keeps the memory from being reused before it has been read.
                tensor.record_stream(stream)
        elif device.type != "cpu":
            # The waiting thread must not call Metal.
            self._tensors = tuple(tensor.cpu() for tensor in tensors)

    def wait(self) -> tuple[Tensor, ...]:
        """Wait for the copies, and return the tensors in host memory."""
        if self._arrived is not None:
            self._arrived.synchronize()
        return self._tensors


@cache
def _side_stream(device: torch.device) -> torch.cuda.Stream:
    """The stream for copies from a device."""
    return torch.cuda.Stream(device)
