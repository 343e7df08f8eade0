"""How exactly matrix products are computed while probes train.

Factors are rounded where the processor gains by it; sums stay float32, and so do the parameters
themselves. That is bf16 on a CPU with instructions for it, TF32 on a GPU. It is far below the noise
of a batch, and used for the steps of training and the looks at dev that choose where an MLP stops:
the losses that are reported and predictions are computed in full.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import torch

from common.errors import UserError


def product_dtype(device: torch.device) -> torch.dtype:
    """What the factors of a training step's products are rounded to."""
    return torch.bfloat16 if device.type == "cpu" and multiplies_bf16() else torch.float32


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
def multiplies_bf16() -> bool:
    """Whether the CPU has instructions for products of bf16; without, rounding costs time."""
    capabilities = torch.cpu.get_capabilities()
    return any(capabilities.get(name, False) for name in ("amx_bf16", "avx512_bf16"))
