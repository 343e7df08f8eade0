"""Asynchronous copies between the memory of the host and that of a GPU.

They use pinned memory. On the way to the device, torch does not reuse a pinned block before the
copy from it is done; on the way back, `ToHost.wait` waits before anything is read.
"""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor


def host_empty(*shape: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """An empty host tensor to copy to or from `device`; pinned for a GPU."""
    return torch.empty(*shape, dtype=dtype, pin_memory=device.type == "cuda")


def to_device(tensor: Tensor, device: torch.device) -> Tensor:
    """Copy a host tensor to `device`; it must not be written to afterwards."""
    if device.type != "cuda":
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)


class ToHost:
    """Tensors of one device that are copied to the host while a GPU continues to compute."""

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
                # Its memory must not be reused before it has been read.
                tensor.record_stream(stream)
        elif device.type != "cpu":
            # Metal must not be called from the thread that waits.
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
