"""Adam on torch's fused kernel.

`torch.optim.Adam` calls the same kernel, but making one imports torch's compiler, which takes
more than a second.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


class Adam:
    """Adam (Kingma and Ba 2015, algorithm 1), updating parameters in place.

    Args:
        parameters: float32, contiguous, on one device.
    """

    _BETAS = (0.9, 0.99)
    _EPSILON = 1e-8

    def __init__(self, parameters: Sequence[Tensor]) -> None:
        self._parameters = list(parameters)
        self._means = [torch.zeros_like(p) for p in parameters]
        self._squares = [torch.zeros_like(p) for p in parameters]
        self._steps = [torch.zeros((), device=p.device) for p in parameters]

    def step(self, gradients: Sequence[Tensor], size: float) -> None:
        """One step of a size (α of the paper) against `gradients`.

        Raises:
            ValueError: a gradient is not of its parameters' shape; the kernel would not notice.
        """
        for of, gradient in zip(self._parameters, gradients, strict=True):
            if (gradient.shape, gradient.dtype) != (of.shape, of.dtype):
                raise ValueError(
                    f"a gradient of shape {tuple(gradient.shape)}, {gradient.dtype}, for "
                    f"parameters of shape {tuple(of.shape)}, {of.dtype}"
                )
        torch._foreach_add_(self._steps, 1)
        torch._fused_adam_(
            self._parameters,
            [gradient.contiguous() for gradient in gradients],
            self._means,
            self._squares,
            [],
            self._steps,
            lr=size,
            beta1=self._BETAS[0],
            beta2=self._BETAS[1],
            weight_decay=0.0,
            eps=self._EPSILON,
            amsgrad=False,
            maximize=False,
        )
