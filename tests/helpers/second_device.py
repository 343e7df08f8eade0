"""A device called "elsewhere", simulated on the CPU: what it holds cannot be mixed with the rest.

Tensors on it hold one on the CPU, where every operation is run. An operation with operands on both
sides is an error, as on a GPU, and so are reading its memory from numpy and float64, which Apple's
GPUs lack. What crosses from one side to the other, and so makes the host wait on a GPU, is counted.
"""

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter, tree_map
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

from probes.compute import devices

NAME = "elsewhere"
aten = torch.ops.aten

CROSSING = {aten._to_copy.default, aten.copy_.default}
INDEXING = {aten.index.Tensor, aten.index_put_.default}
"""A GPU's tensor may be indexed by one on the CPU."""

crossings = 0


class MixedError(RuntimeError):
    """An operation with operands on both devices."""


class Elsewhere(torch.Tensor):
    """A tensor that lies on the device."""

    @staticmethod
    def __new__(cls, inner):
        made = torch.Tensor._make_wrapper_subclass(
            cls,
            inner.shape,
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            device=torch.device(NAME, 0),
        )
        made.inner = inner
        return made

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        return run(function, args, kwargs or {})

    def tolist(self):
        return self.cpu().tolist()


class Simulation(TorchDispatchMode):
    """Sees operations that make tensors on the device from nothing, too."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        return run(function, args, kwargs or {})


def run(function, args, kwargs):
    global crossings
    tensors = [x for x in tree_iter((args, kwargs)) if isinstance(x, torch.Tensor)]
    there = [x for x in tensors if isinstance(x, Elsewhere)]
    here = [x for x in tensors if not isinstance(x, Elsewhere) and x.dim()]
    if there and here and function not in CROSSING | INDEXING:
        raise MixedError(f"{function} has operands on two devices")
    device = kwargs.get("device")
    wrapped = bool(there) if device is None else torch.device(device).type == NAME
    if function is aten.copy_.default:
        wrapped = isinstance(args[0], Elsewhere)
        crossings += isinstance(args[1], Elsewhere) != wrapped
    elif function is aten._to_copy.default:
        crossings += bool(there) != wrapped
    elif there and function in (aten._local_scalar_dense.default, aten.nonzero.default):
        crossings += 1
    if device is not None:
        kwargs = {**kwargs, "device": torch.device("cpu")}
    known = {id(x.inner): x for x in there}
    found = function(*tree_map(_unwrapped, args), **tree_map(_unwrapped, kwargs))

    def outside(x):
        if wrapped and isinstance(x, torch.Tensor) and x.dtype == torch.float64:
            raise TypeError(f"{function}: float64 does not exist here")
        if id(x) in known:  # An operation in place returns its operand.
            return known[id(x)]
        return Elsewhere(x) if wrapped and isinstance(x, torch.Tensor) else x

    return tree_map(outside, found)


def _unwrapped(x):
    return x.inner if isinstance(x, Elsewhere) else x


def simulate() -> None:
    """Register the device, and what the simulation does not reach by itself."""
    _setup_privateuseone_for_python_backend(NAME)
    devices.KINDS += (NAME,)
    make = torch.tensor

    def tensor(data, *, device=None, **kwargs):
        made = make(data, **kwargs)
        return made if device is None else made.to(device)

    torch.tensor = tensor
    # Its tensors have no version counters.
    torch.inference_mode = lambda mode=True: torch.set_grad_enabled(not mode)
    torch.__future__.set_swap_module_params_on_conversion(True)
