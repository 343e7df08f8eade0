"""How exactly matrix products are computed while probes train.

Factors are rounded where the processor gains by it; sums stay float32, and so do the parameters
themselves. On a CPU with instructions for bf16 that is what features are read as, and multiplied as
where it is the faster; on a GPU products are TF32. It is far below the noise of a batch, and used
for the steps of training and the looks at dev that choose where an MLP stops: the losses that are
reported and predictions are computed in full.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import NamedTuple

import torch

from probes.common.errors import UserError


class Rounding(NamedTuple):
    """What becomes of features in a step of training."""

    read: torch.dtype
    """What they are rounded to, which halves what a pass reads."""
    multiplied: torch.dtype
    """In what type they are then multiplied, and all other factors with them."""


def rounding(device: torch.device) -> Rounding:
    """That of training on `device`."""
    on_cpu = device.type == "cpu"
    return Rounding(
        torch.bfloat16 if on_cpu and has_bf16() else torch.float32,
        torch.bfloat16 if on_cpu and multiplies_bf16() else torch.float32,
    )


@contextmanager
def fast_products() -> Iterator[None]:
    """Let float32 products be TF32 on a GPU."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


@contextmanager
def exact_products() -> Iterator[None]:
    """Compute float32 products in full, whatever the process or its environment has set.

    Raises:
        UserError: it was set by both of torch's switches, which torch then refuses to read.
    """
    try:
        products = torch.get_float32_matmul_precision()
        convolutions = torch.backends.cudnn.allow_tf32
    except RuntimeError as error:
        raise UserError(
            "The precision of products was set by torch's fp32_precision, which the switches used "
            "here cannot be mixed with; use torch.set_float32_matmul_precision instead."
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
    """Whether the CPU has instructions for bf16; without, rounding costs time."""
    capabilities = torch.cpu.get_capabilities()
    return any(capabilities.get(name, False) for name in ("amx_bf16", "avx512_bf16"))


@cache
def multiplies_bf16() -> bool:
    """Whether the CPU multiplies bf16 faster than float32.

    Intel's do by their matrix units, which virtual machines may hide (docs/performance.md).
    """
    capabilities = torch.cpu.get_capabilities()
    intel = "Intel" in capabilities.get("cpu_name", "")
    return capabilities.get("amx_bf16", False) or (has_bf16() and not intel)
