"""Dependency heads from mixes of attention heads: the attention-only probe of Clark et al. (2019).

The probability that word j is the head of word i is the softmax, over the other words of the
sentence, of

    Σ_k w_k α^k_ij + u_k α^k_ji,

where α^k_ij is the attention of word i to word j in attention head k.

One probe per block and one for all blocks are fitted to a sample of training sentences and predict
the head of every word of dev and test. Only the fit keeps maps in memory; predictions are made
while the model reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import torch
from torch import Tensor

from probes.common.arrays import Floats, Ints
from probes.compute.devices import exact_products
from probes.data.sentence import ROOT, Sentence
from probes.examples.examples import NotServedError
from probes.extraction.padding import PaddedWindows
from probes.extraction.views import plain_text, view_over
from probes.families.attention import MIX_SENTENCES
from probes.families.attention.annotation import is_punctuation
from probes.families.attention.live import PerText, Together, by_text, sample
from probes.measurements.context import ModelContext
from probes.statistics.sums import ratio


@dataclass(frozen=True)
class HeadMixes:
    """The probes of all blocks and their scores.

    Attributes:
        sentences, words: size of the training sample.
        left_out: sentences of the sample that are longer than the model's window.
        weights: w and u of each block's probe. Shape (blocks, 2, attention heads).
        all_weights: w and u of the probe for all blocks, in the same shape.
        hits: words whose head is predicted correctly, by split; the last row is for all blocks.
            Shape (blocks + 1, sentences).
        counts: words with a head to predict, by split; 0 for sentences that are too long. Shape
            (sentences,).
        long: number of sentences that are too long, by split.
    """

    sentences: int
    words: int
    left_out: int
    weights: Floats
    all_weights: Floats
    hits: Mapping[str, Ints]
    counts: Mapping[str, Ints]
    long: Mapping[str, int]

    def uas(self, split: str) -> Floats:
        """Share of words whose head is predicted correctly, by probe. Shape (blocks + 1,)."""
        return ratio(self.hits[split].sum(1), self.counts[split].sum())


def mixing(context: ModelContext, n_sentences: int = MIX_SENTENCES, seed: int = 0) -> HeadMixes:
    """Fit the probes, and score them on dev and test.

    Args:
        n_sentences: training sentences to draw.

    Raises:
        NotServedError: no training sentence can be used.
    """
    splits = context.corpus.splits
    usable = [x for x in splits["train"] if (heads_to_predict(x) != NO_HEAD).any()]
    drawn = [usable[i] for i in sample(usable, n_sentences, seed)]
    groups = _read_groups(context, drawn)
    if not groups:
        raise NotServedError("no sentence of train has a head to be predicted")
    read = sum(len(group.heads) for group in groups)
    n_blocks = context.model.n_layers
    n_heads = len(groups[0].maps) // n_blocks
    every = fit(groups).view(2, n_blocks, n_heads).transpose(0, 1)
    blocks = [slice(first, first + n_heads) for first in range(0, n_blocks * n_heads, n_heads)]
    own = torch.stack([fit([group.of(block) for group in groups]) for block in blocks])
    hits, counts, long = {}, {}, {}
    for split in ("dev", "test"):
        view = view_over(map(plain_text, splits[split]), "plain")
        heads = by_text(context.read(view, PredictedHeads(own, every)))
        found = [heads.get(view.index[plain_text(x)]) for x in splits[split]]
        hits[split], counts[split] = _scored(splits[split], found, n_blocks + 1)
        long[split] = sum(x is None for x in found)
    return HeadMixes(
        sentences=read,
        words=sum(group.n_words for group in groups),
        left_out=len(drawn) - read,
        weights=own.cpu().numpy(),
        all_weights=every.cpu().numpy(),
        hits=hits,
        counts=counts,
        long=long,
    )


def heads_to_predict(sentence: Sentence) -> Ints:
    """The head of each word; `NO_HEAD` for roots, punctuation and words without annotation."""
    if not sentence.heads:
        return np.full(len(sentence), NO_HEAD)
    deprels = sentence.deprels or [""] * len(sentence)
    return np.array(
        [
            NO_HEAD if head == ROOT or is_punctuation(deprel) else head
            for head, deprel in zip(sentence.heads, deprels, strict=True)
        ]
    )


class WordMaps(Together, PerText):
    """Attention between the words of each text, float16. (blocks · heads, words, words)."""

    name = "attention between words"

    def wanted(self, maps: torch.Tensor) -> torch.Tensor:
        """Average maps over the tokens of words."""
        return self.layout.between_words(maps).half()

    def read_together(self, maps: torch.Tensor) -> None:
        """Keep the maps of each text without padding."""
        sizes = self.layout.n_words.tolist()
        for text, of_text, n in zip(self.layout.text.tolist(), maps, sizes, strict=True):
            self.found[text] = of_text.flatten(0, 1)[:, :n, :n].cpu().clone()


class PredictedHeads(PerText):
    """The most likely head of each word by each block's probe, then by that of all blocks.

    Each text has int16 of shape (blocks + 1, words).

    Args:
        weights, all_weights: see `HeadMixes`.
    """

    name = "heads predicted from attention"

    def __init__(self, weights: torch.Tensor, all_weights: torch.Tensor) -> None:
        self._weights, self._all_weights = weights, all_weights

    def prepare(self, windows: PaddedWindows) -> None:
        """Begin a pass with nothing predicted."""
        super().prepare(windows)
        self._predicted: list[torch.Tensor] = []
        self._total: torch.Tensor | None = None

    def take_whole(self, block: int, maps: torch.Tensor, visible: torch.Tensor) -> None:
        """Predict from one block, and add its part to the sum over blocks."""
        between = self.layout.between_words(maps).transpose(0, 1)
        own, part = (
            mixed(each[block - 1].to(maps.device), between)
            for each in (self._weights, self._all_weights)
        )
        self._predicted.append(self._best(own))
        self._total = part if self._total is None else self._total.to(part.device) + part

    def _best(self, scores: torch.Tensor) -> torch.Tensor:
        """The best word of each text for every word. Shape (texts, words)."""
        beyond = ~self.layout.is_word[:, None]
        return scores.masked_fill(beyond, -torch.inf).argmax(-1).short().cpu()

    def add(self, windows: PaddedWindows, output: Any) -> None:
        """Predict from the sum over blocks, and keep the predictions of each text."""
        if self._total is not None:
            found = torch.stack([*self._predicted, self._best(self._total)], dim=1)
            sizes = self.layout.n_words.tolist()
            for text, heads, n in zip(self.layout.text.tolist(), found, sizes, strict=True):
                self.found[text] = heads[:, :n].clone()


def _read_groups(context: ModelContext, sentences: Sequence[Sentence]) -> list[MixedHeads]:
    """Sentences that fit into the model's window, grouped by number of words."""
    view = view_over(map(plain_text, sentences), "plain")
    maps = by_text(context.read(view, WordMaps()))
    read = [x for x in sentences if view.index[plain_text(x)] in maps]
    found = []
    for _, same in groupby(sorted(read, key=len), key=len):
        group = list(same)
        of_group = torch.stack([maps[view.index[plain_text(x)]] for x in group], dim=1)
        heads = torch.from_numpy(np.stack([heads_to_predict(x) for x in group]))
        found.append(MixedHeads(of_group.to(context.device), heads.to(context.device)))
    return found


def _scored(
    sentences: Sequence[Sentence], predicted: Sequence[torch.Tensor | None], n_probes: int
) -> tuple[Ints, Ints]:
    """Hits (probes, sentences) and counts (sentences,); see `HeadMixes`."""
    hits = np.zeros((n_probes, len(sentences)), dtype=np.int64)
    counts = np.zeros(len(sentences), dtype=np.int64)
    for place, (sentence, heads) in enumerate(zip(sentences, predicted, strict=True)):
        if heads is not None:
            gold = heads_to_predict(sentence)
            counts[place] = (gold != NO_HEAD).sum()
            hits[:, place] = (heads.numpy() == gold).sum(1)  # none equals NO_HEAD
    return hits, counts


PRIOR = 1.0
"""Precision of a Gaussian prior on the weights, with attention scaled to a root mean square of 1.
It keeps weights finite where all heads are found. On EWT, 0.01 or 30 changes UAS by at most
.0002."""

_STEPS, _SLOPE = 500, 1e-5
"""Maximum number of L-BFGS steps, and the slope at which they end."""

NO_HEAD = -1
"""Instead of a word's head: the word is not used."""


@dataclass(frozen=True)
class MixedHeads:
    """Sentences of the same number of words.

    Attributes:
        maps: attention between words; float16 halves the memory, and rounding does not matter.
            Shape (attention heads, sentences, words, words).
        heads: index of each word's head, or `NO_HEAD`. Shape (sentences, words).
    """

    maps: Tensor
    heads: Tensor

    @property
    def n_words(self) -> int:
        """Number of words with a head to predict."""
        return int((self.heads != NO_HEAD).sum())

    def of(self, part: slice) -> MixedHeads:
        """Select some attention heads."""
        return MixedHeads(self.maps[part], self.heads)


def mixed(weights: Tensor, maps: Tensor) -> Tensor:
    """Scores of each word (last dimension) as the head of each other, before the softmax.

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

    The loss is the mean of -log p over words, plus `PRIOR` / (2 · words) times the sum of squared
    weights, with attention scaled to a root mean square of 1.

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
    """Root mean square of each head's attention to other words; 1 for heads that pay none."""
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
