"""Devices and number formats by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from probes.common.errors import UserError

if TYPE_CHECKING:
    import torch

MAP = "map"
"""The device that means: spread the layers over all devices there are."""


def pick_device(device: str) -> torch.device:
    """The torch device called `device`; "auto" prefers CUDA, then MPS, then the CPU.

    Raises:
        UserError: there is no such device here.
    """
    import torch

    if device == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        picked = torch.device(device)
        torch.zeros(1, device=picked).item()
    except (RuntimeError, AssertionError, ImportError) as error:
        first = str(error).strip().split("\n")[0]
        raise UserError(f"--device {device}: {first}") from error
    if picked.type == "cpu" and picked.index:
        raise UserError(f"--device {device}: there is one CPU; say how much of it with --threads.")
    return picked


DType = Literal["auto", "float32", "bfloat16", "float16"]
