"""Losses of classification, multi-label and regression probes.

Labels and weights have shape (L, K, N), or (K, N) if layers share them.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import softplus


class CrossEntropy:
    """Negative log-likelihood in nats of class indices; outputs are logits.

    Attributes:
        shift_invariant: whether the same number added to all outputs changes nothing.
    """

    shift_invariant: ClassVar[bool] = True

    def total(self, outputs: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
        """Sum over examples. Shape (L, K)."""
        return -(self.log_probabilities(outputs, labels).squeeze(2) * weights).sum(-1)

    def errors(self, outputs: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
        """Derivative with respect to the outputs. Shape (L, K, C, N)."""
        errors, index = outputs.softmax(2), _index(labels, outputs)
        errors.scatter_add_(2, index, errors.new_full((1,), -1.0).expand(index.shape))
        return errors.mul_(weights.unsqueeze(-2))

    def curvatures(self, outputs: Tensor) -> Tensor:
        """Second derivative with respect to each output, p (1 − p). Shape (L, K, C, N)."""
        p = outputs.softmax(2)
        return p * (1 - p)

    def log_probabilities(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Log-probability of the label, which is one decision. Shape (L, K, 1, N)."""
        return outputs.log_softmax(2).gather(2, _index(labels, outputs))

    def start(self, labels: Tensor, weights: Tensor, n_outputs: int) -> Tensor:
        """Biases that predict the share of each class, after adding 1/2 to counts. Shape (K, C)."""
        count = torch.zeros(len(labels), n_outputs, device=weights.device)
        count.scatter_add_(1, labels, weights).add_(0.5)
        return (count / count.sum(1, keepdim=True)).log()

    def decide(self, outputs: Tensor) -> Tensor:
        """The most probable class. Shape (L, K, N)."""
        # Five times as fast as argmax; both take the first of several maxima.
        return outputs.max(2).indices


class SquaredError:
    """Half the squared error of numbers; C is 1."""

    shift_invariant: ClassVar[bool] = False

    def total(self, outputs: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
        """Sum over examples. Shape (L, K)."""
        return 0.5 * ((outputs.squeeze(2) - labels).square() * weights).sum(-1)

    def errors(self, outputs: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
        """Derivative with respect to the outputs. Shape (L, K, C, N)."""
        return (outputs - labels.unsqueeze(-2)).mul_(weights.unsqueeze(-2))

    def curvatures(self, outputs: Tensor) -> Tensor:
        """Second derivative with respect to the output, 1. Shape (L, K, 1, N)."""
        return torch.ones_like(outputs)

    def start(self, labels: Tensor, weights: Tensor, n_outputs: int) -> Tensor:
        """Bias of a probe without features: the mean. Shape (K, 1)."""
        return (labels * weights).sum(1, keepdim=True) / weights.sum(1, keepdim=True)

    def decide(self, outputs: Tensor) -> Tensor:
        """The number itself. Shape (L, K, N)."""
        return outputs.squeeze(2)


def _index(labels: Tensor, outputs: Tensor) -> Tensor:
    """Expand labels to an index into the classes of `outputs`. Shape (L, K, 1, N)."""
    return labels.unsqueeze(-2).expand(*outputs.shape[:2], 1, -1)


class BinaryCrossEntropy:
    """Negative log-likelihood in nats of label sets, summed over labels; outputs are logits.

    For logits o, and y_c = 1 if the set holds label c:

        loss = Σ_c log(1 + exp(o_c)) − y_c o_c,     ∂loss/∂o_c = σ(o_c) − y_c.

    Args:
        sets: 1.0 for the labels in each set. Shape (S, C).
    """

    shift_invariant: ClassVar[bool] = False

    def __init__(self, sets: Tensor) -> None:
        self._sets = sets

    def total(self, outputs: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
        """Sum over examples. Shape (L, K)."""
        return -(self.log_probabilities(outputs, labels).sum(2) * weights).sum(-1)

    def errors(self, outputs: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
        """Derivative with respect to the outputs. Shape (L, K, C, N)."""
        return outputs.sigmoid().sub_(self._indicators(labels)).mul_(weights.unsqueeze(-2))

    def curvatures(self, outputs: Tensor) -> Tensor:
        """Second derivative with respect to each output, p (1 − p). Shape (L, K, C, N)."""
        p = outputs.sigmoid()
        return p * (1 - p)

    def log_probabilities(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Log-probability of each label's presence or absence. Shape (L, K, C, N)."""
        indicators = self._indicators(labels)
        return (indicators * outputs).sub_(softplus(outputs))

    def start(self, labels: Tensor, weights: Tensor, n_outputs: int) -> Tensor:
        """Biases that predict the share of each label, after adding 1/2 to counts. Shape (K, C)."""
        counts = (self._indicators(labels) * weights.unsqueeze(-2)).sum(-1)
        return ((counts + 0.5) / (weights.sum(-1, keepdim=True) + 1)).logit()

    def decide(self, outputs: Tensor) -> Tensor:
        """Bits of the labels with p > 1/2, as `numpy.packbits` packs them. (L, K, N, bytes)."""
        bits = (outputs > 0).movedim(2, -1)
        bits = torch.nn.functional.pad(bits, (0, -bits.shape[-1] % 8))
        values = torch.tensor([128, 64, 32, 16, 8, 4, 2, 1], device=bits.device, dtype=torch.uint8)
        packed: Tensor = (bits.unflatten(-1, (-1, 8)) * values).sum(-1, dtype=torch.uint8)
        return packed

    def _indicators(self, labels: Tensor) -> Tensor:
        """Expand set indices (…, K, N) to indicators (…, K, C, N)."""
        indicators: Tensor = self._sets[labels].movedim(-1, -2)
        return indicators


LogLoss = CrossEntropy | BinaryCrossEntropy
"""A loss that is the negative logarithm of a probability."""

Loss = LogLoss | SquaredError
"""A weighted loss of any kind of task."""


def log_loss(sets: Tensor | None) -> LogLoss:
    """The loss of a classification, or of a multi-label task.

    Args:
        sets: the label sets of a multi-label task; see `probes.training.batches.Batches`.
    """
    return CrossEntropy() if sets is None else BinaryCrossEntropy(sets)


def loss_for(n_outputs: int, sets: Tensor | None) -> Loss:
    """The loss of a task: squared error for a regression (0 outputs), otherwise a log loss.

    Args:
        sets: the label sets of a multi-label task; see `probes.training.batches.Batches`.
    """
    return log_loss(sets) if n_outputs else SquaredError()
