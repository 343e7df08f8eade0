"""Multi-layer perceptrons: probes with one hidden layer."""

from __future__ import annotations

import torch
from torch import Tensor

from probes.training.family import (
    LossGradient,
    Parameters,
    ProbeFamily,
    shared_input,
    shared_input_gradient,
)


class MLP(ProbeFamily):
    """f(x) = V relu(U x + a) + b with one hidden layer of `hidden` units."""

    def __init__(self, hidden: int) -> None:
        self.hidden = hidden

    def initial(
        self, n_layers: int, seeds: list[int], n_features: int, n_outputs: int
    ) -> Parameters:
        """Uniform in ±1/√fan-in; the same draw for every layer."""
        shapes = (
            (n_features, self.hidden, n_features),
            (n_features, self.hidden),
            (self.hidden, n_outputs, self.hidden),
            (self.hidden, n_outputs),
        )
        per_seed = []
        for seed in seeds:
            generator = torch.Generator().manual_seed(seed)
            per_seed.append(
                [
                    (torch.rand(shape, generator=generator) * 2 - 1) / fan_in**0.5
                    for fan_in, *shape in shapes
                ]
            )
        return [
            torch.stack(tensors).expand(n_layers, *torch.stack(tensors).shape).clone()
            for tensors in zip(*per_seed, strict=True)
        ]

    def outputs(self, parameters: Parameters, features: Tensor) -> Tensor:
        """See `ProbeFamily`."""
        return self._top(parameters, self._hidden(parameters, features))

    def backward(
        self, parameters: Parameters, features: Tensor, loss_gradient: LossGradient
    ) -> Parameters:
        """See `ProbeFamily`."""
        hidden = self._hidden(parameters, features)
        errors = loss_gradient(self._top(parameters, hidden))
        top = [torch.matmul(errors, hidden.transpose(-1, -2)), errors.sum(-1)]
        hidden_errors = torch.matmul(parameters[2].transpose(-1, -2), errors)
        torch.ops.aten.threshold_backward(hidden_errors, hidden, 0, grad_input=hidden_errors)
        bottom = [shared_input_gradient(features, hidden_errors), hidden_errors.sum(-1)]
        return [*bottom, *top]

    def _hidden(self, parameters: Parameters, features: Tensor) -> Tensor:
        return shared_input(features, *parameters[:2]).relu_()

    def _top(self, parameters: Parameters, hidden: Tensor) -> Tensor:
        _, _, weight, bias = parameters
        return torch.matmul(weight, hidden).add_(bias[..., None])
