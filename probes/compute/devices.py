"""Devices and number formats by name, and the precision of matrix products."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Literal

from probes.common.errors import UserError, listed
from probes.common.terminal import progress

if TYPE_CHECKING:
    import torch

DType = Literal["float32", "bfloat16", "float16"]
"""dtype of the forward pass."""

MAP = "map"
"""Spread the layers over all available devices."""

KINDS = ("auto", "cpu", "cuda", "mps", MAP)


def require_device_name(device: str) -> None:
    """Check the name of a device, without importing torch.

    Raises:
        ValueError: a run cannot use such a device.
    """
    kind, colon, number = device.partition(":")
    if kind not in KINDS or (colon and not (kind == "cuda" and re.fullmatch("[0-9]{1,3}", number))):
        raise ValueError("give auto, cpu, cuda, cuda:N, mps or map")


def available_cores() -> int:
    """The number of processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def pick_device(device: str) -> torch.device:
    """The torch device called `device`; "auto" prefers CUDA, then MPS, then the CPU.

    Raises:
        UserError: this machine has no such device.
    """
    import torch

    if device == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        device = "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        picked = torch.device(device)
        # A name that torch knows may stand for a device that is missing or fails.
        torch.zeros(1, device=picked).item()
    except (RuntimeError, AssertionError, ImportError) as error:
        kind, _, number = device.partition(":")
        if kind == "cuda" and number and (n_devices := torch.cuda.device_count()):
            names = listed(f"cuda:{i}" for i in range(n_devices))
            raise UserError(f"--device {device}: there is no such device; use {names}.") from error
        if kind in ("cuda", "mps") and not getattr(torch, kind).device_count():
            raise UserError(
                f"--device {device}: no {kind.upper()} device is available; use --device cpu."
            ) from error
        first_line = str(error).strip().split("\n")[0]
        raise UserError(f"--device {device}: {first_line}") from error
    if picked.type == "mps":
        _distrust_mps()
    return picked


@cache
def _distrust_mps() -> None:
    """Warn of Apple's GPUs, once; see `require_products`."""
    progress.warn(
        "on Apple's GPUs torch returns wrong products in some cases (PyTorch issues 180776 and "
        "193487); compare some scores with those of --device cpu"
    )
    require_products("mps")


def require_products(device: str) -> None:
    """Compute a product on a device, with one factor transposed, as on the CPU.

    Raises:
        UserError: it is another one.
    """
    import torch

    matrix = torch.linspace(-1, 1, 192 * 96).sin().view(192, 96)
    product = (matrix.to(device) @ matrix.to(device).T).cpu()
    if not torch.allclose(product, matrix @ matrix.T, rtol=1e-4, atol=1e-4):
        raise UserError(
            f"--device {device}: a product of matrices differs from that of the CPU; use "
            "--device cpu, or another version of torch."
        )


def uses_cuda(device: str) -> bool:
    """Whether a run on `device` uses a CUDA GPU. Imports torch for "auto" and "map"."""
    if device not in ("auto", MAP):
        return device.startswith("cuda")
    import torch

    return torch.cuda.is_available()


@contextmanager
def exact_products() -> Iterator[None]:
    """Compute float32 products in full precision, whatever precision the process has set.

    Raises:
        UserError: the process used torch's newer switches, which cannot be mixed with these.
    """
    import torch

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
