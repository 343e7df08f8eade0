"""Linear probes: multinomial logistic regression and linear regression."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from probes.training.family import (
    LossGradient,
    Parameters,
    ProbeFamily,
    shared_input,
    shared_input_gradient,
)


class Linear(ProbeFamily):
    """f(x) = W x + b: multinomial logistic regression, or linear regression."""

    convex: ClassVar[bool] = True
    closed_form: ClassVar[bool] = True
    logit_variances: ClassVar[tuple[float, ...]] = (0.04, 0.4, 4.0, 40.0)

    def initial(
        self, n_layers: int, seeds: list[int], n_features: int, n_outputs: int
    ) -> Parameters:
        """Zeros: the problem is convex."""
        cells = (n_layers, len(seeds))
        return [torch.zeros(*cells, n_outputs, n_features), torch.zeros(*cells, n_outputs)]

    def outputs(self, parameters: Parameters, features: Tensor) -> Tensor:
        """See `ProbeFamily`."""
        weight, bias = parameters
        return shared_input(features, weight, bias)

    def backward(
        self, parameters: Parameters, features: Tensor, loss_gradient: LossGradient
    ) -> Parameters:
        """See `ProbeFamily`."""
        errors = loss_gradient(self.outputs(parameters, features))
        return [shared_input_gradient(features, errors), errors.sum(-1)]
