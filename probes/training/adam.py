"""Adam on torch's fused kernel, given gradients that are computed by hand."""

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

    def __init__(self, parameters: Sequence[Tensor], learning_rate: float) -> None:
        self._parameters, self._learning_rate = list(parameters), learning_rate
        self._adam = torch.optim.Adam(
            self._parameters, lr=learning_rate, betas=(0.9, 0.99), eps=1e-8, fused=True
        )

    def step(self, gradients: Sequence[Tensor], share: float) -> None:
        """Take a step against `gradients` with `share` times the initial learning rate.

        Raises:
            RuntimeError: a gradient has not the shape and dtype of its parameters.
        """
        for parameter, gradient in zip(self._parameters, gradients, strict=True):
            parameter.grad = gradient.contiguous()
        self._adam.param_groups[0]["lr"] = share * self._learning_rate
        self._adam.step()
        self._adam.zero_grad()
