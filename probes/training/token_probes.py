"""Probes that read all tokens of a text: the mean or maximum of their scores, or attention.

A text has tokens x_1 … x_T at one layer. Shapes are those of `probes.training.family`, N texts.
Autograd is fast enough: gradients by hand saved a tenth of `TokenMax` and a fifth of `Attention`.
"""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import Tensor

from probes.training.bags import TokenBags
from probes.training.family import Linear, Parameters, ProbeFamily


class TokenMean(Linear):
    """f(x) = mean_t (W x_t + b), where W and b are fitted to single tokens.

    Each token has the label of its text, and the tokens of a text weigh together as much as one
    example (`probes.training.batches.token_batches`; Goldowsky-Dill et al. 2025).
    """

    reads_tokens: ClassVar[bool] = True

    def outputs(self, parameters: Parameters, features: Tensor | TokenBags) -> Tensor:
        """Outputs of texts; or of single tokens, to which probes are fitted. (L, K, C, N)."""
        if isinstance(features, Tensor):
            return super().outputs(parameters, features)
        outputs = super().outputs(parameters, features.tokens)
        return features.padded(outputs, 0.0).sum(-1) / features.lengths.to(outputs)


class TokenMax(ProbeFamily):
    """f_c(x) = max_t (w_c · x_t) + b_c.

    Two classes share one direction: f(x) = ∓ max_t (w · x_t) / √2 + b. Two opposite directions with
    these logits would have the same penalty. A text is of the second class if any token says so.
    """

    reads_tokens: ClassVar[bool] = True

    def initial(
        self, n_layers: int, seeds: list[int], n_features: int, n_outputs: int
    ) -> Parameters:
        """Draw directions; biases are 0."""
        n_directions = 1 if n_outputs == 2 else n_outputs
        weight = _drawn(n_layers, seeds, n_directions, n_features)
        return [weight, torch.zeros(n_layers, len(seeds), n_outputs)]

    def outputs(self, parameters: Parameters, features: TokenBags) -> Tensor:
        """The largest score of each text's tokens. Shape (L, K, C, N)."""
        weight, bias = parameters
        largest = features.padded(_token_scores(features, weight), -math.inf).amax(-1)
        if bias.shape[2] == 2:
            largest = torch.cat([-largest, largest], 2) / math.sqrt(2)
        return largest + bias[..., None]


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
        """Draw values; queries and biases are 0."""
        weight = _drawn(n_layers, seeds, self.heads * (1 + n_outputs), n_features)
        weight[:, :, : self.heads] = 0
        return [weight, torch.zeros(n_layers, len(seeds), n_outputs)]

    def outputs(self, parameters: Parameters, features: TokenBags) -> Tensor:
        """Sums over heads of weighted means of values. Shape (L, K, C, N)."""
        weight, bias = parameters
        rows = _token_scores(features, weight)
        attention = features.padded(rows[:, :, : self.heads], -math.inf).softmax(-1)
        values = features.padded(rows[:, :, self.heads :], 0.0).unflatten(2, (self.heads, -1))
        sums: Tensor = (attention[:, :, :, None] * values).sum((2, -1))
        return sums + bias[..., None]


def _drawn(n_layers: int, seeds: list[int], n_rows: int, n_features: int) -> Tensor:
    """Rows from the uniform distribution over ±1/√H, alike for all layers. (L, K, rows, H)."""
    generators = [torch.Generator().manual_seed(seed) for seed in seeds]
    cells = torch.stack([torch.rand(n_rows, n_features, generator=x) for x in generators])
    return ((2 * cells - 1) / math.sqrt(n_features)).repeat(n_layers, 1, 1, 1)


def _token_scores(bags: TokenBags, weight: Tensor) -> Tensor:
    """Products of each token with each row of a weight: (L, K, R, H) to (L, K, R, m)."""
    # Many tokens times few rows: in this order twice as fast as in that of `shared_input`.
    scores: Tensor = (bags.tokens @ weight.flatten(1, 2).mT).mT.unflatten(1, weight.shape[1:3])
    return scores
