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
