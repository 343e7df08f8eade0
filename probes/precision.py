"""How exactly matrix products are computed while probes train.

Factors are rounded where the processor gains by it; sums stay float32, and so do the parameters
themselves. That is bf16 on a CPU with matrix units for it, TF32 on a GPU. It is far below the noise
of a batch, and used for the steps of training alone: losses and predictions are computed in full.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import torch


def product_dtype(device: torch.device) -> torch.dtype:
    """What the factors of a training step's products are rounded to."""
    rounds = device.type == "cpu" and _has_matrix_units()
    return torch.bfloat16 if rounds else torch.float32


@contextmanager
def fast_products() -> Iterator[None]:
    """Let float32 products be TF32 on a GPU."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


@cache
def _has_matrix_units() -> bool:
    """Whether the CPU multiplies bf16 matrices natively; without, rounding costs time."""
    return bool(torch.cpu.get_capabilities().get("amx_bf16", False))
