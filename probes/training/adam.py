"""Adam on torch's fused kernel.

`torch.optim.Adam` calls the same kernel, but creating one imports torch's compiler, which takes
more than a second.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor


class Adam:
    """Adam (Kingma and Ba 2015, algorithm 1), updating parameters in place.

    Args:
        parameters: float32, contiguous, on one device, each with a first dimension of layers.
        sizes: initial step size (α of the paper) at each layer.
    """

    _BETAS = (0.9, 0.99)
    _EPSILON = 1e-8

    def __init__(self, parameters: Sequence[Tensor], sizes: Sequence[float]) -> None:
        self._shapes = [(p.shape, p.dtype) for p in parameters]
        # The kernel takes one step size for all parameters of a call.
        self._groups = [
            _Group(layers, sizes[layers.start], _at(layers, parameters))
            for layers in _equal_neighbours(sizes)
        ]

    def step(self, gradients: Sequence[Tensor], share: float) -> None:
        """Take a step of `share` times the initial size against `gradients`.

        Raises:
            ValueError: a gradient has not the shape and dtype of its parameters, which the kernel
                does not check.
        """
        for (shape, dtype), gradient in zip(self._shapes, gradients, strict=True):
            if (gradient.shape, gradient.dtype) != (shape, dtype):
                raise ValueError(
                    f"gradient of shape {tuple(gradient.shape)}, {gradient.dtype}, for "
                    f"parameters of shape {tuple(shape)}, {dtype}"
                )
        gradients = [gradient.contiguous() for gradient in gradients]
        for group in self._groups:
            torch._foreach_add_(group.steps, 1)
            torch._fused_adam_(
                group.parameters,
                _at(group.layers, gradients),
                group.means,
                group.squares,
                [],
                group.steps,
                lr=share * group.size,
                beta1=self._BETAS[0],
                beta2=self._BETAS[1],
                weight_decay=0.0,
                eps=self._EPSILON,
                amsgrad=False,
                maximize=False,
            )


class _Group:
    """Neighbouring layers with the same step size, and the kernel's state for them."""

    def __init__(self, layers: slice, size: float, parameters: list[Tensor]) -> None:
        self.layers, self.size, self.parameters = layers, size, parameters
        self.means = [torch.zeros_like(p) for p in parameters]
        self.squares = [torch.zeros_like(p) for p in parameters]
        self.steps = [torch.zeros((), device=p.device) for p in parameters]


def _equal_neighbours(sizes: Sequence[float]) -> list[slice]:
    """The largest slices of equal step sizes."""
    inner = [i for i in range(1, len(sizes)) if sizes[i] != sizes[i - 1]]
    return [slice(a, b) for a, b in pairwise([0, *inner, len(sizes)])]


def _at(layers: slice, tensors: Sequence[Tensor]) -> list[Tensor]:
    return [tensor[layers] for tensor in tensors]
