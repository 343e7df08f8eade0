"""Probe families: many small classifiers or regressors as one tensor operation.

Shapes: L layers, N examples, H features, K cells (seeds × strengths), C outputs. Features
are (L, N, H): all cells of a layer read the same vectors. Weights are (L, K, out, in) and
outputs (L, K, C, N): so laid out, every product runs on contiguous memory, nothing is copied,
and the softmax runs along vectors of examples. A head owns its formula and its gradient;
nothing here knows tasks, files or devices.

All minimise, for each cell,

    sum_i w_i loss(y_i, f(x_i)) / sum_i w_i  +  strength / 2 · ||W||²,

where w_i is the example's weight (class weight × bootstrap count) and W are the weight
matrices, biases left out.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

Parameters = list[Tensor]
"""Alternating weights and biases, each with leading dimensions (L, K)."""


class Head(Protocol):
    """A family of probes."""

    def initial(
        self, n_layers: int, seeds: list[int], n_features: int, n_outputs: int
    ) -> Parameters:
        """Starting parameters, cell k drawn from `seeds[k]` alone."""

    def outputs(self, parameters: Parameters, features: Tensor) -> Tensor:
        """Logits or predictions. Shape (L, K, C, N)."""

    def gradient(self, parameters: Parameters, features: Tensor, errors: Tensor) -> Parameters:
        """Gradient of the loss; `errors` is its derivative by the outputs (L, K, C, N)."""


class Linear:
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
        return _shared_input(features, weight, bias)

    def gradient(self, parameters: Parameters, features: Tensor, errors: Tensor) -> Parameters:
        """See `Head`."""
        return [_shared_input_gradient(features, errors), errors.sum(-1)]


class MLP:
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
        """See `Head`."""
        _, _, weight, bias = parameters
        return torch.matmul(weight, self._hidden(parameters, features)) + bias[..., None]

    def gradient(self, parameters: Parameters, features: Tensor, errors: Tensor) -> Parameters:
        """See `Head`."""
        weight = parameters[2]
        hidden = self._hidden(parameters, features)
        hidden_errors = torch.matmul(weight.transpose(-1, -2), errors).mul_(hidden > 0)
        return [
            _shared_input_gradient(features, hidden_errors),
            hidden_errors.sum(-1),
            torch.matmul(errors, hidden.transpose(-1, -2)),
            errors.sum(-1),
        ]

    def _hidden(self, parameters: Parameters, features: Tensor) -> Tensor:
        return _shared_input(features, *parameters[:2]).relu_()


def _shared_input(features: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """(L, N, H), (L, K, C, H) and (L, K, C) → (L, K, C, N), as one tall product per layer."""
    n_layers, n_cells, n_outputs, n_features = weight.shape
    tall = weight.reshape(n_layers, n_cells * n_outputs, n_features)
    out = torch.baddbmm(bias.reshape(n_layers, -1, 1), tall, features.transpose(1, 2))
    return out.view(n_layers, n_cells, n_outputs, -1)


def _shared_input_gradient(features: Tensor, errors: Tensor) -> Tensor:
    """(L, N, H) and (L, K, C, N) → (L, K, C, H): the gradient of `_shared_input`'s weight."""
    n_layers, n_cells, n_outputs, n_examples = errors.shape
    tall = errors.reshape(n_layers, n_cells * n_outputs, n_examples)
    return torch.bmm(tall, features).view(n_layers, n_cells, n_outputs, -1)


def cross_entropy(outputs: Tensor, labels: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Weighted negative log-likelihood in nats, and its derivative by the logits.

    Args:
        outputs: logits. Shape (L, K, C, N).
        labels: class indices. Shape (N,).
        weights: weight of each example in each cell. Shape (K, N).

    Returns:
        sum over examples (L, K), and the derivative (L, K, C, N).
    """
    log_probabilities = outputs.log_softmax(2)
    index = labels.expand(outputs.shape[0], outputs.shape[1], 1, -1)
    loss = -(log_probabilities.gather(2, index).squeeze(2) * weights).sum(-1)
    errors = log_probabilities.exp_()
    errors.scatter_add_(2, index, errors.new_full((1,), -1.0).expand(index.shape))
    return loss, errors.mul_(weights[:, None])


def squared_error(outputs: Tensor, labels: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Half the weighted squared error, and its derivative; arguments as `cross_entropy`."""
    errors = outputs - labels
    loss = 0.5 * (errors.square().squeeze(2) * weights).sum(-1)
    return loss, errors * weights[:, None]
