"""The interface of a probe family, two products for writing one, and linear and MLP probes.

A family fits many probes as one tensor operation. Shapes: L layers, N examples, H features, K cells
(draws, label sets or priors), C outputs. Features (L, N, H) are shared by all cells of a layer.
Outputs are (L, K, C, N), so that products need no copies and the softmax runs along contiguous
vectors of examples. A family is a formula; it knows nothing of tasks, files or devices.

Every family minimises, for each cell,

    sum_i w_i loss(y_i, f(x_i)) / sum_i w_i  +  strength / 2 · ||W||²,

where w_i is the example's weight (class weight × bootstrap count) and W are the weight matrices
without the biases.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor

if TYPE_CHECKING:
    from probes.records.probe_spec import ProbeSpec
    from probes.training.batches import Batches

Parameters = list[Tensor]
"""Alternating weights and biases, each with leading dimensions (L, K). Weights are penalised. The
first weight is (L, K, out, H); the last bias is that of the outputs (L, K, C)."""

LossGradient = Callable[[Tensor], Tensor]
"""From outputs to the derivative of the loss with respect to them. Both (L, K, C, N)."""


@dataclass(frozen=True)
class FittedProbes:
    """The probes of K cells at each of L layers.

    Attributes:
        parameters: leading dimensions (L, K).
        strength: L2 strength. Shape (L, K).
        stopped: share of the steps after which the dev loss was least; 1 is the end. (L, K).
        dev_loss: mean loss on dev in nats (classification), or half the squared error. (L, K).
    """

    parameters: Parameters
    strength: Tensor
    stopped: Tensor
    dev_loss: Tensor


class ProbeFamily(ABC):
    """A family of probes.

    A family must define `initial` and `outputs`. Autograd then computes gradients; a family that
    overrides `backward` trains faster.

    Attributes:
        convex: whether the outputs are W x + b, with one weight and one bias as parameters, so that
            the loss is convex. Convex probes are fitted until they converge, to features in their
            principal axes (`probes.training.features`).
        closed_form: whether regressions of a convex family are solved as ridge regression.
        logit_variances: for codes of convex families, the Gaussian priors on the weights, each
            given as the variance of a sum over all features.
        reads_tokens: whether an example is a text with all its tokens: features are then
            `probes.training.bags.TokenBags`. A convex one is fitted to single tokens.
    """

    reads_tokens: ClassVar[bool] = False
    convex: ClassVar[bool] = False
    closed_form: ClassVar[bool] = False
    logit_variances: ClassVar[tuple[float, ...]] = (0.4, 4.0, 40.0)

    def __init__(self, spec: ProbeSpec | None = None) -> None:
        """Store the specification; a family may read settings from it."""
        self.spec = spec

    @abstractmethod
    def initial(
        self, n_layers: int, seeds: list[int], n_features: int, n_outputs: int
    ) -> Parameters:
        """Starting parameters; those of cell k depend only on `seeds[k]`."""

    @abstractmethod
    def outputs(self, parameters: Parameters, features: Any) -> Tensor:
        """Logits or predictions. Shape (L, K, C, N)."""

    def backward(
        self, parameters: Parameters, features: Any, loss_gradient: LossGradient
    ) -> Parameters:
        """Gradients of the loss with respect to each of `parameters`.

        The default uses autograd. An override must return tensors that share no memory.
        """
        leaves = [p.detach().requires_grad_() for p in parameters]
        with torch.enable_grad():
            outputs = self.outputs(leaves, features)
        gradients = torch.autograd.grad(
            outputs, leaves, loss_gradient(outputs.detach()), materialize_grads=True
        )
        # Autograd may return one tensor for several parameters, or expanded ones.
        return [g.clone(memory_format=torch.contiguous_format) for g in gradients]

    def solved(
        self, train: Batches, dev: Batches, n_outputs: int, spec: ProbeSpec
    ) -> FittedProbes | None:
        """The probes of all cells if they need no seed and no training; None if they do."""
        return None

    def n_parameters(self, parameters: Parameters) -> int:
        """Number of parameters of one probe, given those of one cell."""
        return sum(p.numel() for p in parameters)

    def checked_outputs(self, parameters: Parameters, features: Any) -> Tensor:
        """`outputs`; ValueError if the family writes to the features."""
        with self._features_unchanged(features):
            return self.outputs(parameters, features)

    def gradient(
        self, parameters: Parameters, features: Any, loss_gradient: LossGradient
    ) -> Parameters:
        """`backward`; ValueError if the family writes to the features."""
        with self._features_unchanged(features):
            return self.backward(parameters, features, loss_gradient)

    @contextmanager
    def _features_unchanged(self, features: Any) -> Iterator[None]:
        values: Tensor = getattr(features, "tokens", features)  # those of a bag
        version = values._version  # torch counts the writes to a tensor
        try:
            yield
        finally:
            if values._version != version:
                raise ValueError(
                    f"{type(self).__name__} writes to its features, which other steps and cells "
                    "read too; work on a copy of them"
                )


def shared_input(features: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """(L, N, H), (L, K, C, H) and (L, K, C) → (L, K, C, N), as one tall product per layer."""
    n_layers, n_cells, n_outputs, n_features = weight.shape
    tall = weight.reshape(n_layers, n_cells * n_outputs, n_features)
    out = torch.baddbmm(bias.reshape(n_layers, -1, 1), tall, features.transpose(1, 2))
    return out.view(n_layers, n_cells, n_outputs, -1)


def shared_input_gradient(features: Tensor, errors: Tensor) -> Tensor:
    """(L, N, H) and (L, K, C, N) → (L, K, C, H): gradient of the weight in `shared_input`."""
    n_layers, n_cells, n_outputs, n_examples = errors.shape
    tall = errors.reshape(n_layers, n_cells * n_outputs, n_examples)
    return torch.bmm(tall, features).view(n_layers, n_cells, n_outputs, -1)


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
        """W x + b. Shape (L, K, C, N)."""
        weight, bias = parameters
        return shared_input(features, weight, bias)

    def backward(
        self, parameters: Parameters, features: Tensor, loss_gradient: LossGradient
    ) -> Parameters:
        """Compute gradients without autograd."""
        errors = loss_gradient(self.outputs(parameters, features))
        return [shared_input_gradient(features, errors), errors.sum(-1)]


class MLP(ProbeFamily):
    """f(x) = V relu(U x + a) + b with one hidden layer of `hidden` units."""

    def __init__(self, hidden: int) -> None:
        self.hidden = hidden

    def initial(
        self, n_layers: int, seeds: list[int], n_features: int, n_outputs: int
    ) -> Parameters:
        """Draw from the uniform distribution over ±1/√fan-in, alike for all layers."""
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
        """V relu(U x + a) + b. Shape (L, K, C, N)."""
        return self._top(parameters, self._hidden(parameters, features))

    def backward(
        self, parameters: Parameters, features: Tensor, loss_gradient: LossGradient
    ) -> Parameters:
        """Compute gradients without autograd."""
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
