"""Adam on torch's fused kernel.

`torch.optim.Adam` calls the same kernel, but creating one imports torch's compiler, which takes
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
        learning_rate: the initial one (α of the paper).
    """

    _BETAS = (0.9, 0.99)
    _EPSILON = 1e-8

    def __init__(self, parameters: Sequence[Tensor], learning_rate: float) -> None:
        self._parameters, self._learning_rate = list(parameters), learning_rate
        self._means = [torch.zeros_like(p) for p in parameters]
        self._squares = [torch.zeros_like(p) for p in parameters]
        self._steps = [torch.zeros((), device=p.device) for p in parameters]

    def step(self, gradients: Sequence[Tensor], share: float) -> None:
        """Take a step against `gradients` with `share` times the initial learning rate.

        Raises:
            ValueError: a gradient has not the shape and dtype of its parameters, which the kernel
                does not check.
        """
        for parameter, gradient in zip(self._parameters, gradients, strict=True):
            if (gradient.shape, gradient.dtype) != (parameter.shape, parameter.dtype):
                raise ValueError(
                    f"gradient of shape {tuple(gradient.shape)}, {gradient.dtype}, for "
                    f"parameters of shape {tuple(parameter.shape)}, {parameter.dtype}"
                )
        torch._foreach_add_(self._steps, 1)
        torch._fused_adam_(
            self._parameters,
            [gradient.contiguous() for gradient in gradients],
            self._means,
            self._squares,
            [],
            self._steps,
            lr=share * self._learning_rate,
            beta1=self._BETAS[0],
            beta2=self._BETAS[1],
            weight_decay=0.0,
            eps=self._EPSILON,
            amsgrad=False,
            maximize=False,
        )
