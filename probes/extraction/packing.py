"""Linear layers of a model on a CPU, with weights laid out once as oneDNN multiplies them.

`torch.nn.Linear` hands its product to MKL, which lays the weights out anew at every call and is
slower on processors of other makers than Intel's (docs/performance.md).
"""

from __future__ import annotations

import platform
import sys
from typing import Any

import torch
from torch import Tensor, nn

from probes.compute.precision import has_bf16


class PackedLinear(nn.Module):
    """x Wᵀ + b for inference: what `torch.nn.Linear` computes, up to the order of its sums.

    Args:
        packed: see `pack`.
        bias: shape (out,), or None.
    """

    def __init__(self, packed: nn.Parameter, bias: nn.Parameter | None) -> None:
        super().__init__()
        self.packed = packed
        self.bias = bias

    @property
    def weight(self) -> Tensor:
        """A plain copy, shape (out, in), for models that read a layer's weight themselves."""
        return self.packed.to_dense()

    def forward(self, inputs: Tensor) -> Tensor:
        """Shape (…, in) to (…, out)."""
        linear = torch.ops.mkldnn._linear_pointwise
        product: Tensor = linear(inputs, self.packed, self.bias, "none", [], "")
        return product


def packs() -> bool:
    """Whether weights can be packed here: oneDNN on an x86 processor, memory not limited.

    Where the address space is limited and runs out, oneDNN ends the process without an error.
    """
    known = torch.backends.mkldnn.is_available() and platform.machine() in ("x86_64", "AMD64")
    return known and not _memory_is_limited()


def _memory_is_limited() -> bool:
    if sys.platform == "win32":
        return False
    import resource

    return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY


def pack_linears(model: Any) -> None:
    """Replace the linear layers of `model`, in place, by packed ones where there are such.

    Kinds of layers derived from these are left as they are: they may compute something else.
    """
    from transformers.pytorch_utils import Conv1D

    if not packs():
        return
    # By weight, which layers may share. The weights themselves are not held: each goes when it is
    # packed, so that a model is not in memory twice.
    places: dict[int, list[tuple[nn.Module, str]]] = {}
    for parent in model.modules():
        for name, layer in parent.named_children():
            if type(layer) in (nn.Linear, Conv1D) and _can_pack(layer.weight):
                places.setdefault(id(layer.weight), []).append((parent, name))
    for (parent, name), *others in places.values():
        layer = getattr(parent, name)
        packed = pack(layer.weight if type(layer) is nn.Linear else layer.weight.t())
        for where, called in [(parent, name), *others]:
            setattr(where, called, PackedLinear(packed, getattr(where, called).bias))


def pack(weight: Tensor) -> nn.Parameter:
    """A weight, shape (out, in), in blocks as oneDNN reads them; same type, same number."""
    with torch.no_grad():
        blocks = torch.ops.mkldnn._reorder_linear_weight(weight.detach().contiguous())
    return nn.Parameter(blocks, requires_grad=False)


def _can_pack(weight: Tensor) -> bool:
    return weight.device.type == "cpu" and (
        weight.dtype == torch.float32 or (weight.dtype == torch.bfloat16 and has_bf16())
    )
