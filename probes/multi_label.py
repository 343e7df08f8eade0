"""The loss of multi-label probes: a logistic regression for each label, all with one strength.

A label is the index of a label set, a row of a table (S, C) of 0 and 1: labels are one integer per
example in every kind of classification.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import softplus


class BinaryCrossEntropy:
    """Negative log-likelihood in nats of label sets, summed over labels; outputs are logits.

    With y_c 1 where the set holds label c, and logits o,

        loss = Σ_c log(1 + exp(o_c)) − y_c o_c,     ∂loss/∂o_c = σ(o_c) − y_c.

    Args:
        sets: which labels each set holds, float. Shape (S, C).
    """

    def __init__(self, sets: Tensor) -> None:
        self._sets = sets

    def total(self, outputs: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
        """See `Loss`."""
        return -(self.log_probabilities(outputs, labels).sum(2) * weights).sum(-1)

    def errors(self, outputs: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
        """See `Loss`."""
        return outputs.sigmoid().sub_(self._held(labels)).mul_(weights.unsqueeze(-2))

    def log_probabilities(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """See `Loss`: one decision of two outcomes per label."""
        held = self._held(labels)
        return (held * outputs).sub_(softplus(outputs))

    def prior(self, labels: Tensor, weights: Tensor, n_outputs: int) -> Tensor:
        """See `Loss`."""
        held = (self._held(labels) * weights.unsqueeze(-2)).sum(-1)
        return ((held + 0.5) / (weights.sum(-1, keepdim=True) - held + 0.5)).log()

    def decide(self, outputs: Tensor) -> Tensor:
        """Labels of probability above 1/2, logit above 0, as `numpy.packbits` packs them.

        uint8 of shape (L, K, N, bytes).
        """
        bits = (outputs > 0).movedim(2, -1)
        bits = torch.nn.functional.pad(bits, (0, -bits.shape[-1] % 8))
        values = torch.tensor([128, 64, 32, 16, 8, 4, 2, 1], device=bits.device, dtype=torch.uint8)
        packed: Tensor = (bits.unflatten(-1, (-1, 8)) * values).sum(-1, dtype=torch.uint8)
        return packed

    def _held(self, labels: Tensor) -> Tensor:
        """Sets of shape (…, K, N) as (…, K, C, N)."""
        held: Tensor = self._sets[labels].movedim(-1, -2)
        return held
