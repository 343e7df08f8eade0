"""The attention-only probe: dependency heads from a mix of attention heads.

Clark et al. (2019): the probability that word j is the head of word i is the softmax
over the other words of a sentence of

    Σ_k w_k α^k_ij + u_k α^k_ji,

where α^k_ij is how much word i attends to word j in attention head k.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from probes.compute.devices import exact_products

PRIOR = 1.0
"""The precision of a Gaussian prior on the weights of attention divided by its root mean square. It
keeps them finite where the heads of all words are found; on EWT, a hundredth or thirty times of it
moves UAS by .0002 at most."""

_STEPS, _SLOPE = 500, 1e-5
"""The most steps of L-BFGS, and the greatest slope at which they end."""

NO_HEAD = -1
"""In the place of a word's head: a word that the probe is not fitted to."""


@dataclass(frozen=True)
class MixedHeads:
    """Sentences of the same number of words.

    Attributes:
        maps: attention between words, float16: it takes half the memory, and its rounding is far
            below what tells words apart. Shape (attention heads, sentences, words, words).
        heads: index of each word's head, or `NO_HEAD`. Shape (sentences, words).
    """

    maps: Tensor
    heads: Tensor

    @property
    def n_words(self) -> int:
        """Words that the probe is fitted to."""
        return int((self.heads != NO_HEAD).sum())

    def of(self, part: slice) -> MixedHeads:
        """The same of some attention heads."""
        return MixedHeads(self.maps[part], self.heads)


def mixed(weights: Tensor, maps: Tensor) -> Tensor:
    """How likely each word (last dimension) is the head of each, up to its softmax.

    Args:
        weights: w and u. Shape (2, attention heads).
        maps: attention between words. Shape (attention heads, …, words, words).

    Returns:
        shape (…, words, words), with -inf for a word and itself.
    """
    forward, backward = (weights @ maps.flatten(1)).view(2, *maps.shape[1:])
    itself = torch.eye(maps.shape[-1], dtype=torch.bool, device=maps.device)
    found: Tensor = (forward + backward.transpose(-1, -2)).masked_fill(itself, -torch.inf)
    return found


@exact_products()
def fit(groups: Sequence[MixedHeads]) -> Tensor:
    """The weights w and u with the highest posterior, by L-BFGS from zeros.

    The loss is the mean of -log p over words, plus `PRIOR` / (2 · words) times the sum of squares
    of the weights that belong to attention divided by its root mean square.

    Returns:
        shape (2, attention heads), float32.
    """
    scale = root_mean_squares(groups)
    point = torch.zeros(2, len(scale), device=scale.device)
    optimiser = torch.optim.LBFGS(
        [point],
        max_iter=_STEPS,
        tolerance_grad=_SLOPE,
        tolerance_change=0.0,
        line_search_fn="strong_wolfe",
    )

    def closure() -> float:
        value, gradient = loss_and_gradient(groups, point / scale)
        strength = PRIOR / sum(group.n_words for group in groups)
        point.grad = gradient / scale + strength * point
        return value + strength / 2 * float(point.square().sum())

    optimiser.step(closure)
    return point / scale


def root_mean_squares(groups: Sequence[MixedHeads]) -> Tensor:
    """That of attention to other words; 1 for heads that pay none. Shape (attention heads,)."""
    n = sum(x.maps[0].numel() - x.heads.numel() for x in groups)
    total = torch.zeros(len(groups[0].maps), device=groups[0].maps.device)
    for group in groups:
        itself = torch.eye(group.maps.shape[-1], dtype=torch.bool, device=total.device)
        total += group.maps.float().masked_fill(itself, 0.0).flatten(1).square().sum(1)
    return torch.where(total > 0, (total / n).sqrt(), 1.0)


def loss_and_gradient(groups: Sequence[MixedHeads], weights: Tensor) -> tuple[float, Tensor]:
    """The mean of -log p over words, in nats, and its gradient (2, attention heads)."""
    value, gradient = 0.0, torch.zeros_like(weights)
    for group in groups:
        maps = group.maps.float()
        logs = mixed(weights, maps).log_softmax(-1)
        known = group.heads != NO_HEAD
        gold = group.heads.clamp(min=0)[..., None]
        value -= float(logs.gather(-1, gold)[..., 0][known].sum())
        errors = logs.exp().scatter_add(-1, gold, -torch.ones_like(logs[..., :1]))
        errors = errors * known[..., None]
        both = torch.stack([errors, errors.transpose(-1, -2)])
        gradient += both.flatten(1) @ maps.flatten(1).T
    n = sum(group.n_words for group in groups)
    return value / n, gradient / n
