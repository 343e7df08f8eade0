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

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

import torch
from torch import Tensor

Parameters = list[Tensor]
"""Alternating weights and biases, each with leading dimensions (L, K). Weights are penalised; the
first is (L, K, out, H), and the last bias is that of the outputs, (L, K, C)."""


class Head(ABC):
    """A family of probes."""

    @abstractmethod
    def initial(
        self, n_layers: int, seeds: list[int], n_features: int, n_outputs: int
    ) -> Parameters:
        """Starting parameters, cell k drawn from `seeds[k]` alone."""

    @abstractmethod
    def outputs(self, parameters: Parameters, features: Tensor) -> Tensor:
        """Logits or predictions. Shape (L, K, C, N)."""

    def float_outputs(self, parameters: Parameters, features: Tensor) -> Tensor:
        """`outputs` as float32.

        Raises:
            ValueError: the head has written to the features.
        """
        with self._only_reads(features):
            return self.outputs(parameters, features).float()

    def gradient(
        self, parameters: Parameters, features: Tensor, errors_of: Callable[[Tensor], Tensor]
    ) -> Parameters:
        """Gradient of the loss; `errors_of` gives its derivative by outputs (L, K, C, N).

        Products are computed in the precision of the features; everything else is float32.

        Raises:
            ValueError: the head has written to the features.
        """
        return self._rounded(parameters, features, errors_of)[0]

    def gradients(
        self, parameters: Parameters, features: Tensor, errors_of: Callable[[Tensor], Tensor]
    ) -> tuple[Parameters, Tensor]:
        """The same, and the gradient by features, summed over cells (L, N, H)."""
        gradient, errors = self._rounded(parameters, features, errors_of)
        by_features = _gradient_by_input(errors, parameters[0].to(features.dtype))
        return gradient, by_features.float()

    def _rounded(
        self, parameters: Parameters, features: Tensor, errors_of: Callable[[Tensor], Tensor]
    ) -> tuple[Parameters, Tensor]:
        dtype = features.dtype
        with self._only_reads(features):
            gradient, errors = self.backward(
                [p.to(dtype) for p in parameters],
                features,
                lambda outputs: errors_of(outputs.float()).to(dtype),
            )
        return [g.float() for g in gradient], errors

    @contextmanager
    def _only_reads(self, features: Tensor) -> Iterator[None]:
        version = features._version
        yield
        if features._version != version:
            raise ValueError(
                f"{type(self).__name__} writes to its features, which other steps and cells read "
                "too; let it work on a copy"
            )

    @abstractmethod
    def backward(
        self, parameters: Parameters, features: Tensor, errors_of: Callable[[Tensor], Tensor]
    ) -> tuple[Parameters, Tensor]:
        """The gradient, and the derivative by the outputs of the product with the first weight."""


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


class MLP(Head):
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
        return self._top(parameters, self._hidden(parameters, features))

    def backward(
        self, parameters: Parameters, features: Tensor, errors_of: Callable[[Tensor], Tensor]
    ) -> tuple[Parameters, Tensor]:
        """See `Head`."""
        hidden = self._hidden(parameters, features)
        errors = errors_of(self._top(parameters, hidden))
        top = [torch.matmul(errors, hidden.transpose(-1, -2)), errors.sum(-1)]
        hidden_errors = torch.matmul(parameters[2].transpose(-1, -2), errors)
        torch.ops.aten.threshold_backward(hidden_errors, hidden, 0, grad_input=hidden_errors)
        bottom = [shared_input_gradient(features, hidden_errors), hidden_errors.sum(-1)]
        return [*bottom, *top], hidden_errors

    def _hidden(self, parameters: Parameters, features: Tensor) -> Tensor:
        return shared_input(features, *parameters[:2]).relu_()

    def _top(self, parameters: Parameters, hidden: Tensor) -> Tensor:
        _, _, weight, bias = parameters
        return torch.matmul(weight, hidden).add_(bias[..., None])


def shared_input(features: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """(L, N, H), (L, K, C, H) and (L, K, C) → (L, K, C, N), as one tall product per layer."""
    n_layers, n_cells, n_outputs, n_features = weight.shape
    tall = weight.reshape(n_layers, n_cells * n_outputs, n_features)
    out = torch.baddbmm(bias.reshape(n_layers, -1, 1), tall, features.transpose(1, 2))
    return out.view(n_layers, n_cells, n_outputs, -1)


def shared_input_gradient(features: Tensor, errors: Tensor) -> Tensor:
    """(L, N, H) and (L, K, C, N) → (L, K, C, H): the gradient of `shared_input`'s weight."""
    n_layers, n_cells, n_outputs, n_examples = errors.shape
    tall = errors.reshape(n_layers, n_cells * n_outputs, n_examples)
    return torch.bmm(tall, features).view(n_layers, n_cells, n_outputs, -1)


def _gradient_by_input(errors: Tensor, weight: Tensor) -> Tensor:
    """(L, K, C, N) and (L, K, C, H) → (L, N, H): the gradient of `shared_input`'s features."""
    return torch.bmm(errors.flatten(1, 2).transpose(1, 2), weight.flatten(1, 2))


class Loss(Protocol):
    """A weighted loss. Labels and weights have shape (L, K, N), or (K, N) for all layers alike."""

    def total(self, outputs: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
        """Sum over examples. Shape (L, K)."""

    def errors(self, outputs: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
        """Its derivative by the outputs. Shape (L, K, C, N)."""

    def decide(self, outputs: Tensor) -> Tensor:
        """What is predicted. Shape (L, K, N), or (L, K, N, bytes) for label sets."""


class LogLoss(Loss, Protocol):
    """A loss that is the negative logarithm of a probability."""

    def log_probabilities(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Of each decision that makes a label, natural logarithm. Shape (L, K, decisions, N)."""

    def prior(self, labels: Tensor, weights: Tensor, n_outputs: int) -> Tensor:
        """Output biases that give each label its frequency, 1/2 added to counts. Shape (K, C)."""


class CrossEntropy:
    """Negative log-likelihood in nats of class indices; outputs are logits."""

    def total(self, outputs: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
        """See `Loss`."""
        return -(self.log_probabilities(outputs, labels).squeeze(2) * weights).sum(-1)

    def errors(self, outputs: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
        """See `Loss`."""
        errors, index = outputs.softmax(2), _index(labels, outputs)
        errors.scatter_add_(2, index, errors.new_full((1,), -1.0).expand(index.shape))
        return errors.mul_(weights.unsqueeze(-2))

    def log_probabilities(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """See `LogLoss`: one decision."""
        return outputs.log_softmax(2).gather(2, _index(labels, outputs))

    def prior(self, labels: Tensor, weights: Tensor, n_outputs: int) -> Tensor:
        """See `LogLoss`."""
        count = torch.zeros(len(labels), n_outputs, device=weights.device)
        count.scatter_add_(1, labels, weights)
        return (count + 0.5).log().log_softmax(1)

    def decide(self, outputs: Tensor) -> Tensor:
        """The most probable class."""
        # Five times as fast as argmax; of equal ones, both take the first.
        return outputs.max(2).indices


class SquaredError:
    """Half the squared error of numbers; C is 1."""

    def total(self, outputs: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
        """See `Loss`."""
        return 0.5 * ((outputs.squeeze(2) - labels).square() * weights).sum(-1)

    def errors(self, outputs: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
        """See `Loss`."""
        return (outputs - labels.unsqueeze(-2)).mul_(weights.unsqueeze(-2))

    def decide(self, outputs: Tensor) -> Tensor:
        """The number itself."""
        return outputs.squeeze(2)


def _index(labels: Tensor, outputs: Tensor) -> Tensor:
    """Labels as an index into the classes of `outputs`. Shape (L, K, 1, N)."""
    return labels.unsqueeze(-2).expand(*outputs.shape[:2], 1, -1)
