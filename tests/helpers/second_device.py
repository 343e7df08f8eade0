"""A device called "elsewhere", simulated on the CPU: what it holds cannot be mixed with the rest.

Tensors on it hold one on the CPU, where every operation is run. An operation with operands on both
sides is an error, as on a GPU, and so are reading its memory from numpy and float64, which Apple's
GPUs lack. What makes the host wait for a GPU is listed with the line that asks for it: copies to
the host, numbers and masks read there, results whose size depends on values, and copies to the
device other than by `to_device`, which on CUDA go through pinned memory.

It cannot see where a kernel waits by itself (factorisations of CUDA's libraries), or memory that
the allocator must ask the driver for.
"""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter, tree_map
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

from probes.compute import devices
from probes.training import cached_features, standardisation

NAME = "elsewhere"
aten = torch.ops.aten

CROSSING = {aten._to_copy.default, aten.copy_.default}
INDEXING = {aten.index.Tensor, aten.index_put_.default}
"""A GPU's tensor may be indexed by one on the CPU."""

VALUES_DECIDE = {
    aten._local_scalar_dense.default,
    aten.nonzero.default,
    aten.masked_select.default,
    aten.equal.default,
    aten.bincount.default,
    aten._unique2.default,
    aten.unique_consecutive.default,
    aten.repeat_interleave.Tensor,
}
"""Operations on the device for which the host waits: it needs a value, or a size that values give."""

waits: list[str] = []
"""File, line and operation of all that made the host wait."""


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


class Threads(ThreadPoolExecutor):
    """Threads in which the device is simulated too: torch has its modes by thread."""

    def submit(self, function, /, *args, **kwargs):
        def simulated():
            with Simulation():
                return function(*args, **kwargs)

        return super().submit(simulated)


def run(function, args, kwargs):
    tensors = [x for x in tree_iter((args, kwargs)) if isinstance(x, torch.Tensor)]
    there = [x for x in tensors if isinstance(x, Elsewhere)]
    here = [x for x in tensors if not isinstance(x, Elsewhere) and x.dim()]
    if there and here and function not in CROSSING | INDEXING:
        raise MixedError(f"{function} has operands on two devices")
    device = kwargs.get("device")
    wrapped = bool(there) if device is None else torch.device(device).type == NAME
    if function is aten.copy_.default:
        wrapped = isinstance(args[0], Elsewhere)
    if host_waits(function, args, there, wrapped):
        note(function)
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


def host_waits(function, args, there, wrapped):
    if function is aten.copy_.default:
        return isinstance(args[1], Elsewhere) != wrapped
    if function is aten._to_copy.default:
        return bool(there) != wrapped
    if function in INDEXING and there:
        indices = [x for x in args[1] if x is not None]
        return any(x.dtype == torch.bool or not isinstance(x, Elsewhere) for x in indices)
    return bool(there) and function in VALUES_DECIDE


def note(function):
    """List an operation under the innermost line outside torch; copies by `to_device` do not wait."""
    frame = sys._getframe(2)
    while "torch" in Path(frame.f_code.co_filename).parts or frame.f_globals is globals():
        frame = frame.f_back
    if frame.f_code.co_name != "to_device":
        file = Path(frame.f_code.co_filename)
        waits.append(f"{file.parent.name}/{file.name}:{frame.f_lineno} {function}")


def _unwrapped(x):
    return x.inner if isinstance(x, Elsewhere) else x


def simulate() -> None:
    """Register the device, and what the simulation does not reach by itself."""
    _setup_privateuseone_for_python_backend(NAME)
    devices.KINDS += (NAME,)
    cached_features.ThreadPoolExecutor = standardisation.ThreadPoolExecutor = Threads
    make = torch.tensor

    def tensor(data, *, device=None, **kwargs):
        made = make(data, **kwargs)
        return made if device is None else made.to(device)

    torch.tensor = tensor
    # Its tensors have no version counters.
    torch.inference_mode = lambda mode=True: torch.set_grad_enabled(not mode)
    torch.__future__.set_swap_module_params_on_conversion(True)
