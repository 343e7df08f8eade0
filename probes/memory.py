"""How much memory training may take."""

from __future__ import annotations

import os
from pathlib import Path

import torch

_SHARE = 0.25
"""Of what is free, if no budget is given."""


def available(device: torch.device) -> int:
    """Bytes that training may take on `device` unless it is told: a share of what is free."""
    if device.type == "cuda":
        return int(_SHARE * torch.cuda.mem_get_info(device)[0])
    return int(_SHARE * _free())


def _free() -> int:
    """Bytes of main memory that can be had without swapping; of all of it where none can tell."""
    info = Path("/proc/meminfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return 1024 * int(line.split()[1])
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
