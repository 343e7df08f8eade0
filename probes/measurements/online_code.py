"""Description length of the labels given the vectors: the online code of Voita & Titov (2020).

The labels of the training split are sent in blocks. The first block has a uniform code; each later
one is coded by probes fitted on all blocks before it. Neither dev nor test is used. Lengths are in
bits. A set of labels is sent label by label, each a decision between two outcomes.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import torch
from torch import Tensor

from probes.records.payload import CodeRecord, LayerResult
from probes.records.probe_spec import ProbeSpec
from probes.training.batches import Batches, blocks
from probes.training.families import family_of
from probes.training.family import Parameters
from probes.training.losses import log_loss
from probes.training.prefixes import fit_prefixes

SHARES = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.25, 12.5, 25.0, 50.0, 100.0)
"""Ends of the blocks, in percent of the examples (Voita & Titov 2020, section 3.2)."""

MIN_BLOCK = 20
"""The fewest examples of a block; smaller blocks are merged."""


@dataclass(frozen=True)
class OnlineCode:
    """The cost of sending the labels of the training split, in bits.

    Attributes:
        ends: how many examples have been sent after each of B blocks.
        block_bits: cost of each block at each layer. Shape (L, B).
        deviation: standard error, over sentences, of each layer's total. Shape (L,).
    """

    ends: tuple[int, ...]
    block_bits: Tensor
    deviation: Tensor

    @property
    def bits(self) -> Tensor:
        """Codelength of each layer. Shape (L,)."""
        return self.block_bits.sum(1)

    @property
    def intervals(self) -> list[tuple[float, float]]:
        """95 % interval of each layer's codelength."""
        bits, half = self.bits, 1.96 * self.deviation
        return list(zip((bits - half).tolist(), (bits + half).tolist(), strict=True))


def block_ends(sentences: Tensor) -> tuple[int, ...]:
    """Cut examples into blocks that never split a sentence.

    Args:
        sentences: the sentence of each example, equal ones adjacent. Shape (N,).
    """
    n_examples = len(sentences)
    cuts = [*(torch.nonzero(torch.diff(sentences)).flatten() + 1).tolist(), n_examples]
    ends = [0]
    for share in SHARES:
        end = cuts[bisect_left(cuts, math.floor(share / 100 * n_examples))]
        if end - ends[-1] >= MIN_BLOCK and n_examples - end >= MIN_BLOCK:
            ends.append(end)
    return (*ends[1:], n_examples)


def uniform_bits(n_examples: int, n_classes: int) -> float:
    """Bits of labels under a uniform code."""
    return n_examples * math.log2(n_classes)


def decisions(labels: Tensor, n_classes: int, sets: Tensor | None) -> tuple[list[Tensor], int]:
    """The decisions that are sent, and how many outcomes each has.

    Single labels are one decision between C classes; label sets are C decisions, one for each
    label, between absent and present.

    Args:
        labels: shape (N,).
        sets: see `probes.training.batches.Batches`.

    Returns:
        the decisions, each of shape (N,), and their number of outcomes.
    """
    return ([labels], n_classes) if sets is None else (list(sets[labels].long().T), 2)


def prior_bits(labels: Tensor, ends: Sequence[int], n_classes: int) -> float:
    """Bits of the same online code without the vectors.

    Each block is coded by the label frequencies of the examples already sent, with the estimator
    of Krichevsky & Trofimov (1981), (count + 1/2) / (n + C/2); the first block has a uniform code.

    Args:
        labels: in the order in which they are sent. Shape (N,).
    """
    bits = uniform_bits(ends[0], n_classes)
    for start, end in pairwise(ends):
        count = torch.bincount(labels[:start], minlength=n_classes).double()
        probability = (count + 0.5) / (start + 0.5 * n_classes)
        bits -= float(probability.log2()[labels[start:end]].sum())
    return bits


def online_code(train: Batches, n_classes: int, spec: ProbeSpec) -> OnlineCode:
    """Codelength of the first cell's labels at every layer, without class weights.

    Each prefix is fitted under several priors. A block is coded by the uniform mixture of these
    probes' codes, which is longer than the shortest of them by at most log2 of their number, so
    that the best prior need not be known beforehand.
    """
    ends = block_ends(train.sentences)
    n_layers, _, n_features = train.features.shape
    family = family_of(spec)
    variances = torch.tensor(family.logit_variances, device=train.features.device)
    n_priors = len(variances)
    sent = replace(
        train,
        labels=train.labels[:1].expand(n_priors, -1),
        weights=torch.ones_like(train.weights[:1]).expand(n_priors, -1),
    )
    spec = spec.model_copy(update=family.code_schedule)
    sent_first, outcomes = decisions(train.labels[0, : ends[0]], n_classes, train.sets)
    first = len(sent_first) * uniform_bits(ends[0], outcomes)
    lengths = [torch.full((n_layers,), first, dtype=torch.float64)]
    variance = torch.zeros(n_layers, dtype=torch.float64)
    prefixes = [sent.part(slice(0, end)) for end in ends[:-1]]
    # A prior of fixed variance has less weight the more examples there are.
    strengths = [(n_features / variances / end).expand(n_layers, -1) for end in ends[:-1]]
    fitted = fit_prefixes(prefixes, n_classes, spec, strengths)
    for (start, end), parameters in zip(pairwise(ends), fitted, strict=True):
        escape = outcomes / (2 * start + outcomes)
        block = sent.part(slice(start, end))
        bits, words = _sentence_bits(parameters, block, outcomes, spec, escape)
        nats = bits.sum(2) * math.log(2)
        lengths.append((math.log(n_priors) - (-nats).logsumexp(1)) / math.log(2))
        shares = (-nats).softmax(1)
        variance += _variance((shares[:, :, None] * bits).sum(1), words)
    return OnlineCode(ends, torch.stack(lengths, 1), variance.sqrt())


def code_record(
    labels: Tensor, ends: Sequence[int], n_classes: int, sets: Tensor | None = None
) -> CodeRecord:
    """The codes without vectors that the codelength of `labels`, in sending order, is compared to.

    Args:
        sets: see `probes.training.batches.Batches`.
    """
    sent, outcomes = decisions(labels, n_classes, sets)
    return CodeRecord(
        ends=tuple(ends),
        n_classes=n_classes,
        uniform_bits=sum(uniform_bits(len(each), outcomes) for each in sent),
        prior_bits=sum(prior_bits(each, ends, outcomes) for each in sent),
    )


def with_codelengths(layers: Sequence[LayerResult], code: OnlineCode) -> list[LayerResult]:
    """Add the codelengths of `code` to the layers."""
    parts = zip(layers, code.bits.tolist(), code.intervals, code.block_bits.tolist(), strict=True)
    return [
        layer.model_copy(
            update={
                "codelength": bits,
                "codelength_interval": interval,
                "block_bits": tuple(block_bits),
            }
        )
        for layer, bits, interval, block_bits in parts
    ]


def _sentence_bits(
    parameters: Parameters, block: Batches, outcomes: int, spec: ProbeSpec, escape: float
) -> tuple[Tensor, Tensor]:
    """Bits of each of M sentences, and its number of labels. Shapes (L, K, M) and (M,).

    A share `escape` of every distribution is uniform: no label, whether it has occurred or not,
    costs more than log2(C / escape), where C is the number of `outcomes`. With an `escape` of
    C / (2n + C), a probe that knows only the label frequencies of n examples has the code of
    `prior_bits`.
    """
    family, loss = family_of(spec), log_loss(block.sets)
    _, place, words = block.sentences.cpu().unique_consecutive(
        return_inverse=True, return_counts=True
    )
    bits = torch.zeros(*parameters[0].shape[:2], len(words), dtype=torch.float64)
    for part in blocks(len(place)):
        outputs = family.float_outputs(parameters, block.features.block(part))
        each = loss.log_probabilities(outputs, block.labels[:, part]).cpu().double()
        kept = each + math.log1p(-escape)
        mixed = torch.logaddexp(kept, torch.tensor(math.log(escape / outcomes)).to(kept))
        bits.index_add_(2, place[part], -mixed.sum(2) / math.log(2))
    return bits, words


def _variance(bits: Tensor, words: Tensor) -> Tensor:
    """Variance over sentences of a block's bits, for a fixed number of labels. Shape (L,).

    This is the linearised bootstrap of a ratio: what a sentence costs beyond the mean per label.

    Args:
        bits: shape (L, M).
        words: labels of each sentence. Shape (M,).
    """
    excess = bits - bits.sum(1, keepdim=True) / words.sum() * words
    return excess.square().sum(1) * len(words) / max(1, len(words) - 1)
