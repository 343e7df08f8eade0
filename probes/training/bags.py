"""Texts as bags of tokens: features of which one example is a text with all its tokens."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import torch
from torch import Tensor

from probes.training.features import Features

TOKENS_AT_ONCE = 1 << 13
"""Tokens that an evaluation reads at a time, unless a single text has more."""


@dataclass(frozen=True, eq=False)
class TokenBags:
    """Consecutive texts, each a bag of tokens.

    Attributes:
        tokens: features of all tokens, text after text. Shape (L, m, H).
        lengths: tokens of each text, at least 1; on the CPU. Shape (n,).
    """

    tokens: Tensor
    lengths: Tensor

    def padded(self, scores: Tensor, fill: float) -> Tensor:
        """Scores of tokens by text, padded to the longest: (…, m) to (…, n, T)."""
        n_texts, width = len(self.lengths), int(self.lengths.max())
        # Tokens move by what is added to the texts before theirs.
        shift = torch.arange(n_texts) * width - (self.lengths.cumsum(0) - self.lengths)
        slots = torch.arange(scores.shape[-1]) + shift.repeat_interleave(self.lengths)
        padded = scores.new_full((*scores.shape[:-1], n_texts * width), fill)
        padded[..., slots.to(scores.device)] = scores
        by_text: Tensor = padded.unflatten(-1, (n_texts, width))
        return by_text


class Bags(Features):
    """Features of texts whose blocks are `TokenBags`.

    Args:
        tokens: features of all tokens, text after text. Shape (L, M, H).
        lengths: tokens of each text, at least 1. Shape (N,).
    """

    def __init__(self, tokens: Features, lengths: Tensor) -> None:
        self.tokens, self.lengths, self.device = tokens, lengths.cpu(), tokens.device
        self._bounds = [0, *self.lengths.cumsum(0).tolist()]

    @property
    def shape(self) -> tuple[int, int, int]:
        """L layers, N texts, H features."""
        n_layers, _, n_features = self.tokens.shape
        return n_layers, len(self.lengths), n_features

    def block(self, part: slice) -> TokenBags:  # type: ignore[override]
        """Consecutive texts."""
        return TokenBags(self.tokens.block(self._rows(part)), self.lengths[part])

    def kept_block(self, part: slice) -> TokenBags:  # type: ignore[override]
        """`block` for repeated reading."""
        return TokenBags(self.tokens.kept_block(self._rows(part)), self.lengths[part])

    @cached_property
    def parts(self) -> list[slice]:
        """The parts in which a split is evaluated, cut by numbers of tokens."""
        bounds = [0]
        while (first := bounds[-1]) < len(self.lengths):
            fitting = bisect_right(self._bounds, self._bounds[first] + TOKENS_AT_ONCE) - 1
            bounds.append(max(first + 1, fitting))
        return [slice(first, end) for first, end in pairwise(bounds)]

    def _rows(self, part: slice) -> slice:
        first, end, _ = part.indices(len(self.lengths))
        return slice(self._bounds[first], self._bounds[end])
