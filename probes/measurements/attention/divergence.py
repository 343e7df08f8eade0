"""Jensen–Shannon divergence between every two attention heads (Clark et al. 2019)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from probes.common.arrays import Floats
from probes.examples.examples import NotServedError
from probes.extraction.alignment import Pieces
from probes.extraction.shards import Shard
from probes.extraction.views import plain_text, view_over
from probes.measurements.attention.live import Together, sample
from probes.measurements.attention.names import CLUSTER_SENTENCES
from probes.measurements.context import Context

_AT_ONCE = 1 << 13
"""Elements of each map that are compared at once, so that they stay in the processor's cache."""

_TINY = 1e-30
"""In the place of 0 where a logarithm is multiplied by 0."""


@dataclass(frozen=True)
class Divergences:
    """How heads differ.

    Attributes:
        mean: Jensen–Shannon divergence in nats, averaged over tokens (rows of maps). Shape
            (blocks · heads, blocks · heads).
        texts, tokens: that were read.
        left_out: texts that do not fit into the model's window.
    """

    mean: Floats
    texts: int
    tokens: int
    left_out: int


def divergences(
    context: Context, n_sentences: int = CLUSTER_SENTENCES, seed: int = 0
) -> Divergences:
    """The divergence between all heads of a model on a sample of dev and test.

    Every token is a row, special tokens among them, and has the same weight.

    Args:
        n_sentences: of dev and test together.

    Raises:
        NotServedError: no sentence fits into the model's window.
    """
    both = [*context.corpus.splits["dev"], *context.corpus.splits["test"]]
    drawn = sample(both, n_sentences, seed)
    view = view_over((plain_text(both[i]) for i in drawn), "plain")
    found = [arrays for _, arrays in context.read(view, HeadDivergence()) if arrays]
    if not found:
        raise NotServedError("no sentence of dev and test fits into the model's window")
    tokens, texts = (sum(int(x[name]) for x in found) for name in ("tokens", "texts"))
    total = torch.stack([x["sums"] for x in found]).sum(0)
    return Divergences((total / tokens).numpy(), texts, tokens, len(view.texts) - texts)


class HeadDivergence(Together):
    """Divergences of all pairs of heads, summed over the tokens of a shard's texts."""

    name = "divergence of heads"

    def start(self, shard: Shard, pieces: Sequence[Pieces]) -> None:
        """See `Collector`."""
        super().start(shard, pieces)
        self._found: dict[str, Tensor] = {}

    def read_together(self, maps: Tensor) -> None:
        """See `Together`."""
        real = self.layout.real.to(maps.device)
        both = real[:, :, None] & real[:, None]
        heads = maps.flatten(1, 2).transpose(0, 1)[:, both]
        here = {
            "sums": summed_divergence(heads),
            "tokens": real.sum().cpu(),
            "texts": torch.tensor(len(real)),
        }
        self._found = {name: self._found.get(name, 0) + value for name, value in here.items()}

    def finish(self) -> dict[str, Tensor]:
        """The sums (heads, heads), and how many tokens and texts; nothing if no text was whole."""
        return self._found


def summed_divergence(heads: Tensor) -> Tensor:
    """Jensen–Shannon divergences in nats, summed over rows.

    With s = p + q that is the sum of (-s ln s + s ln 2 + p ln p + q ln q) / 2 over all elements.

    Args:
        heads: elements of maps; any number of whole rows. Shape (heads, n).

    Returns:
        shape (heads, heads), float64, symmetric, on the CPU.
    """
    n_heads = len(heads)
    total = torch.zeros(n_heads, n_heads, dtype=torch.float64)
    for part in heads.split(_AT_ONCE, dim=1):
        some = part.contiguous()
        own = (_entropy(some) - math.log(2) * some.sum(1)) / 2
        sums = torch.zeros(n_heads, n_heads, device=heads.device)
        for place in range(n_heads - 1):
            later = slice(place + 1, None)
            both = _entropy(some[place] + some[later])
            sums[place, later] = both / 2 - own[place] - own[later]
        total += sums.cpu().double()
    return total + total.T


def _entropy(elements: Tensor) -> Tensor:
    """The sum of -x ln x over each row, twice as fast as with `torch.special.entr`."""
    return -elements.clamp_min(_TINY).log_().mul_(elements).sum(-1)
