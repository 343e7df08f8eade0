"""Probes that read all tokens of a text: the mean or maximum of their scores, or attention.

A text has tokens x_1 … x_T at one layer. Shapes are those of `probes.training.family`, N texts.
"""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import Tensor

from probes.training.bags import TokenBags
from probes.training.family import (
    Linear,
    LossGradient,
    Parameters,
    ProbeFamily,
    generators_of,
    seeded_uniform,
    shared_input_gradient,
)


class TokenMean(Linear):
    """f(x) = mean_t (W x_t + b), where W and b are fitted to single tokens.

    Each token has the label of its text, and the tokens of a text weigh together as much as one
    example (`probes.training.batches.token_batches`; Goldowsky-Dill et al. 2025).
    """

    reads_tokens: ClassVar[bool] = True

    def outputs(self, parameters: Parameters, features: Tensor | TokenBags) -> Tensor:
        """Outputs of texts; or of single tokens, to which probes are fitted. (L, K, C, N)."""
        if isinstance(features, TokenBags):
            features = features.means()
        return super().outputs(parameters, features)


def _token_scores(bags: TokenBags, weight: Tensor) -> Tensor:
    """Products of each token with each row of a weight: (L, K, R, H) to (L, K, R, m)."""
    # Many tokens times few rows: in this order twice as fast as the other one.
    return (bags.tokens @ weight.flatten(1, 2).mT).mT.unflatten(1, weight.shape[1:3])


class TokenMax(ProbeFamily):
    """f_c(x) = max_t (w_c · x_t) + b_c.

    Two classes share one direction: f(x) = ∓ max_t (w · x_t) / √2 + b. Two opposite directions with
    these logits would have the same penalty. A text is of the second class if any token says so.
    """

    reads_tokens: ClassVar[bool] = True

    def initial(
        self, n_layers: int, seeds: list[int], n_features: int, n_outputs: int
    ) -> Parameters:
        """Draw directions from the uniform distribution over ±1/√H, alike for all layers."""
        shape = 1 if n_outputs == 2 else n_outputs, n_features
        weight = seeded_uniform(n_layers, generators_of(seeds), shape, n_features)
        return [weight, torch.zeros(n_layers, len(seeds), n_outputs)]

    def outputs(self, parameters: Parameters, features: TokenBags) -> Tensor:
        """The largest score of each text's tokens. Shape (L, K, C, N)."""
        return self._logits(parameters, self._padded_scores(parameters, features).amax(-1))

    def backward(
        self, parameters: Parameters, features: TokenBags, loss_gradient: LossGradient
    ) -> Parameters:
        """Compute gradients without autograd."""
        scores = self._padded_scores(parameters, features)
        largest, index = scores.max(-1)
        errors = loss_gradient(self._logits(parameters, largest))
        of_largest = errors
        if errors.shape[2] == 2:
            of_largest = errors.diff(dim=2) / math.sqrt(2)
        of_tokens = torch.zeros_like(scores).scatter_(-1, index[..., None], of_largest[..., None])
        weight = shared_input_gradient(features.tokens, features.unpadded(of_tokens))
        return [weight, errors.sum(-1)]

    def _padded_scores(self, parameters: Parameters, bags: TokenBags) -> Tensor:
        return bags.padded(_token_scores(bags, parameters[0]), -math.inf)

    def _logits(self, parameters: Parameters, largest: Tensor) -> Tensor:
        bias = parameters[1][..., None]
        if bias.shape[2] == 2:
            largest = torch.cat([-largest, largest], 2) / math.sqrt(2)
        return largest + bias


class Attention(ProbeFamily):
    """f_c(x) = Σ_h Σ_t α_ht (v_hc · x_t) + b_c with α_ht = softmax_t (q_h · x_t).

    Queries q_h start at 0, where every head is the mean of the tokens (EleutherAI,
    *attention-probes*; Kramár et al. 2026). The rows of the only weight are the queries, then the
    values of each head.

    Args:
        heads: number of heads.
    """

    reads_tokens: ClassVar[bool] = True

    def __init__(self, heads: int) -> None:
        self.heads = heads

    def initial(
        self, n_layers: int, seeds: list[int], n_features: int, n_outputs: int
    ) -> Parameters:
        """Draw values from the uniform distribution over ±1/√H, alike for all layers."""
        shape = self.heads * (1 + n_outputs), n_features
        weight = seeded_uniform(n_layers, generators_of(seeds), shape, n_features)
        weight[:, :, : self.heads] = 0
        return [weight, torch.zeros(n_layers, len(seeds), n_outputs)]

    def outputs(self, parameters: Parameters, features: TokenBags) -> Tensor:
        """Sums over heads of weighted means of values. Shape (L, K, C, N)."""
        attention, values = self._attention_and_values(parameters, features)
        return self._logits(parameters, attention, values)

    def backward(
        self, parameters: Parameters, features: TokenBags, loss_gradient: LossGradient
    ) -> Parameters:
        """Compute gradients without autograd."""
        attention, values = self._attention_and_values(parameters, features)
        errors = loss_gradient(self._logits(parameters, attention, values))
        of_outputs = errors[:, :, None, ..., None]
        of_values = attention[:, :, :, None] * of_outputs
        of_attention = (values * of_outputs).sum(3)
        mean = (attention * of_attention).sum(-1, keepdim=True)
        of_queries = attention * (of_attention - mean)
        of_rows = torch.cat([of_queries, of_values.flatten(2, 3)], 2)
        weight = shared_input_gradient(features.tokens, features.unpadded(of_rows))
        return [weight, errors.sum(-1)]

    def _attention_and_values(
        self, parameters: Parameters, bags: TokenBags
    ) -> tuple[Tensor, Tensor]:
        """α (L, K, h, N, T) and the values of tokens (L, K, h, C, N, T), 0 beyond a text's end."""
        rows = _token_scores(bags, parameters[0])
        attention = bags.padded(rows[:, :, : self.heads], -math.inf).softmax(-1)
        values = bags.padded(rows[:, :, self.heads :], 0.0)
        return attention, values.unflatten(2, (self.heads, -1))

    def _logits(self, parameters: Parameters, attention: Tensor, values: Tensor) -> Tensor:
        return (attention[:, :, :, None] * values).sum((2, -1)) + parameters[1][..., None]
