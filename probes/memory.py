"""How much memory training may take, and how many layers that is at once."""

from __future__ import annotations

import os
from pathlib import Path

import torch

from probes.cells import BATCH, EVALUATION
from probes.config import ProbeSpec

_SHARE = 0.25
"""Of what is free, if no budget is given."""

_READ = 2 * BATCH + EVALUATION
"""Examples that lie in memory at once: of the largest step, and of an evaluation."""


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


def block_bytes(n_layers: int, n_features: int) -> int:
    """What the layers that mixes are made of take, beside what training needs for each mix.

    A block being read beside the last one, of all layers at once.
    """
    return 4 * 2 * n_layers * _READ * n_features


def group_layers(
    memory: int,
    device: torch.device,
    spec: ProbeSpec,
    n_features: int,
    n_examples: int,
    n_outputs: int,
    n_cells: int,
    long_spans: bool = False,
) -> tuple[int, bool]:
    """How many layers to fit at once within `memory` bytes, and whether to hold their features.

    Of each layer `n_cells` are fitted, label sets × seeds.

    On a CPU features are read from the map as they are needed, since that costs little, unless
    spans are long, whose means take time; on another device, and for these, they are held if
    those of one layer leave room for its fit.
    """
    cells = max(len(spec.strengths), n_cells)
    outputs = max(1, n_outputs)
    units = spec.hidden + outputs
    parameters = cells * (
        n_features * spec.hidden + units * outputs if spec.hidden else n_features * outputs
    )
    # Values, gradients, two moments, the best so far and a copy; a block being read beside the
    # last one; outputs of a batch and of an evaluation block with what is derived from them.
    working = 4 * (6 * parameters + 2 * _READ * n_features + 3 * cells * units * _READ)
    holding = 4 * n_features * n_examples
    hold = (device.type != "cpu" or long_spans) and working + holding <= memory
    return max(1, memory // (working + hold * holding)), hold
