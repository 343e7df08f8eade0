"""The precision of matrix products in training.

Factors are rounded where the processor is faster for it; sums and parameters stay float32. A CPU
with instructions for bf16 reads features as bf16, and multiplies them as bf16 if that is faster; on
a GPU products are TF32. The error is far below the noise of a batch. Rounding is used for training
steps and for the dev losses that choose where an MLP stops; reported losses and predictions are
computed in float32.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import NamedTuple

import torch

from probes.common.errors import UserError


class Rounding(NamedTuple):
    """The dtypes of features in a training step."""

    read: torch.dtype
    """What they are rounded to; bf16 halves the bytes that a pass reads."""
    multiplied: torch.dtype
    """What they, and all other factors of products, are then multiplied as."""


def rounding(device: torch.device) -> Rounding:
    """The dtypes for training on `device`."""
    on_cpu = device.type == "cpu"
    return Rounding(
        torch.bfloat16 if on_cpu and has_bf16() else torch.float32,
        torch.bfloat16 if on_cpu and multiplies_bf16() else torch.float32,
    )


@contextmanager
def fast_products() -> Iterator[None]:
    """Compute float32 products as TF32 on a GPU."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


@contextmanager
def exact_products() -> Iterator[None]:
    """Compute float32 products in full precision, whatever the process has set.

    Raises:
        UserError: the precision was set by torch's newer switches, which cannot be mixed with
            those used here.
    """
    try:
        products = torch.get_float32_matmul_precision()
        convolutions = torch.backends.cudnn.allow_tf32
    except RuntimeError as error:
        raise UserError(
            "The precision of products was set by torch's fp32_precision, which cannot be mixed "
            "with the switches used here; use torch.set_float32_matmul_precision instead."
        ) from error
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = False
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(products)
        torch.backends.cudnn.allow_tf32 = convolutions


@cache
def has_bf16() -> bool:
    """Whether the CPU has instructions for bf16; without them, rounding costs time."""
    capabilities = torch.cpu.get_capabilities()
    return any(capabilities.get(name, False) for name in ("amx_bf16", "avx512_bf16"))


@cache
def multiplies_bf16() -> bool:
    """Whether the CPU multiplies bf16 faster than float32.

    Intel CPUs do with AMX, which virtual machines may hide (docs/performance.md).
    """
    capabilities = torch.cpu.get_capabilities()
    intel = "Intel" in capabilities.get("cpu_name", "")
    return capabilities.get("amx_bf16", False) or (has_bf16() and not intel)
