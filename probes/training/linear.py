"""Linear probes: multinomial logistic regression and linear regression."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from probes.training.family import Head, Parameters, shared_input, shared_input_gradient


class Linear(Head):
    """f(x) = W x + b: multinomial logistic regression, or linear regression."""

    def initial(
        self, n_layers: int, seeds: list[int], n_features: int, n_outputs: int
    ) -> Parameters:
        """Zeros: the problem is convex."""
        cells = (n_layers, len(seeds))
        return [torch.zeros(*cells, n_outputs, n_features), torch.zeros(*cells, n_outputs)]

    def outputs(self, parameters: Parameters, features: Tensor) -> Tensor:
        """See `Head`."""
        weight, bias = parameters
        return shared_input(features, weight, bias)

    def backward(
        self, parameters: Parameters, features: Tensor, errors_of: Callable[[Tensor], Tensor]
    ) -> tuple[Parameters, Tensor]:
        """See `Head`."""
        errors = errors_of(self.outputs(parameters, features))
        return [shared_input_gradient(features, errors), errors.sum(-1)], errors
