"""Copies between the host's and a GPU's memory that neither of the two waits for.

They go from and to pinned memory. Towards the device, torch does not use a pinned block again
before the copy from it is done; from the device, `ToHost` waits before anything is read.
"""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor


def host_empty(*shape: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Host memory for what goes to `device`, or comes from it."""
    return torch.empty(*shape, dtype=dtype, pin_memory=device.type == "cuda")


def to_device(tensor: Tensor, device: torch.device) -> Tensor:
    """A host tensor on `device`; it must not be written to from now on."""
    if device.type != "cuda":
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)


class ToHost:
    """Tensors of one device on their way to the host, which a GPU goes on beside."""

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
                # Its memory is not to be given to anyone else before it was read.
                tensor.record_stream(stream)
        elif device.type != "cpu":
            # Metal is not to be called from the thread that waits.
            self._tensors = tuple(tensor.cpu() for tensor in tensors)

    def wait(self) -> tuple[Tensor, ...]:
        """The tensors in host memory, once they are there."""
        if self._arrived is not None:
            self._arrived.synchronize()
        return self._tensors


@cache
def _side_stream(device: torch.device) -> torch.cuda.Stream:
    """The stream on which a device's vectors leave it."""
    return torch.cuda.Stream(device)
