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

from probes.precision import multiplies_bf16


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
    packed: dict[int, tuple[Tensor, nn.Parameter]] = {}  # layers may share a weight
    for parent in list(model.modules()):
        for name, layer in list(parent.named_children()):
            if type(layer) not in (nn.Linear, Conv1D) or not _can_pack(layer.weight):
                continue
            weight = layer.weight
            if id(weight) not in packed:
                plain = weight if type(layer) is nn.Linear else weight.t()
                packed[id(weight)] = weight, pack(plain)
            setattr(parent, name, PackedLinear(packed[id(weight)][1], layer.bias))


def pack(weight: Tensor) -> nn.Parameter:
    """A weight, shape (out, in), in blocks as oneDNN reads them; same type, same number."""
    with torch.no_grad():
        blocks = torch.ops.mkldnn._reorder_linear_weight(weight.detach().contiguous())
    return nn.Parameter(blocks, requires_grad=False)


def _can_pack(weight: Tensor) -> bool:
    return weight.device.type == "cpu" and (
        weight.dtype == torch.float32 or (weight.dtype == torch.bfloat16 and multiplies_bf16())
    )
