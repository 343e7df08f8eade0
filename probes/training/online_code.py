"""Description length of labels given vectors: the online code of Voita & Titov (2020).

The labels of the training split are sent in blocks that keep sentences whole; neither dev nor test
is used. The first block has a uniform code. Each later block is coded by probes fitted on all
earlier ones. Families must be convex, so that the optimum does not depend on the start: each fit
starts from the optimum of the prefix before. Nothing is random, and every step reads all examples.
Lengths are in bits. A label set is sent label by label, each as a decision between two outcomes.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import torch
from torch import Tensor

from probes.records.probe_spec import ProbeSpec
from probes.training.batches import Batches, evaluation_slices
from probes.training.families import family_of
from probes.training.family import Parameters, ProbeFamily
from probes.training.full_batch import fit_full_batch
from probes.training.losses import log_loss
from probes.training.preconditioning import diagonal

SHARES = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.25, 12.5, 25.0, 50.0, 100.0)
"""Ends of the blocks, in percent of the examples (Voita & Titov 2020, section 3.2)."""

MIN_BLOCK = 20
"""Minimum number of examples in a block; smaller blocks are merged."""

PREFIX_STEPS = 20
"""Steps per prefix. Codelengths are within 0.6 % of those from fits that converge."""


@dataclass(frozen=True)
class OnlineCode:
    """The cost of sending the labels of the training split, in bits.

    Attributes:
        ends: number of examples sent after each of B blocks.
        block_bits: cost of each block at each layer. Shape (L, B).
        deviation: standard error of each layer's total over documents or sentences. Shape (L,).
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
        return list(zip((bits - half).clamp(0).tolist(), (bits + half).tolist(), strict=True))


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
    """Decisions to send: one between C classes, or C between absent and present for label sets.

    Args:
        labels: shape (N,).
        sets: see `probes.training.batches.Batches`.

    Returns:
        the decisions, each of shape (N,), and their number of outcomes.
    """
    return ([labels], n_classes) if sets is None else (list(sets[labels].long().T), 2)


def prior_block_bits(labels: Tensor, ends: Sequence[int], n_classes: int) -> list[float]:
    """Bits of each block of an online code without vectors.

    The first block has a uniform code. Later blocks are coded by the label frequencies of the
    examples already sent: (count + 1/2) / (n + C/2) (Krichevsky & Trofimov 1981).

    Args:
        labels: labels in the order of sending. Shape (N,).
    """
    bits = [uniform_bits(ends[0], n_classes)]
    for start, end in pairwise(ends):
        count = torch.bincount(labels[:start], minlength=n_classes).double()
        probability = (count + 0.5) / (start + 0.5 * n_classes)
        bits.append(-float(probability.log2()[labels[start:end]].sum()))
    return bits


def first_bits(train: Batches, end: int, n_classes: int) -> float:
    """Bits of the first `end` examples, which have a uniform code."""
    sent, outcomes = decisions(train.labels[0, :end], n_classes, train.sets)
    return len(sent) * uniform_bits(end, outcomes)


def sentence_bits(
    family: ProbeFamily, parameters: Parameters, part: Batches, n_classes: int, n_sent: int
) -> tuple[Tensor, Tensor]:
    """Bits and number of labels of each of M sentences. Shapes (L, K, M) and (M,).

    Each distribution is mixed with a uniform one, of weight ε = C / (2n + C) for n examples already
    sent and C outcomes. No label then costs more than log2(C / ε), even an unseen one. A probe that
    knows only label frequencies has the code of `prior_block_bits`.

    Args:
        part: the examples to send. Labels of shape (1, N).
        n_sent: number of examples already sent.
    """
    loss, outcomes = log_loss(part.sets), n_classes if part.sets is None else 2
    escape = outcomes / (2 * n_sent + outcomes)
    _, sentence_index, words = part.sentences.cpu().unique_consecutive(
        return_inverse=True, return_counts=True
    )
    bits = torch.zeros(*parameters[0].shape[:2], len(words), dtype=torch.float64)
    for block in evaluation_slices(len(sentence_index)):
        outputs = family.checked_outputs(parameters, part.features.block(block))
        log_p = loss.log_probabilities(outputs, part.labels[:, block]).cpu().double()
        # log((1 − ε) p + ε / C)
        log_q = log_p + math.log1p(-escape)
        mixed = torch.logaddexp(log_q, torch.tensor(math.log(escape / outcomes)).to(log_q))
        bits.index_add_(2, sentence_index[block], -mixed.sum(2) / math.log(2))
    return bits, words


def mixture_bits(bits: Tensor, words: Tensor) -> tuple[Tensor, Tensor]:
    """Bits of a block under the uniform mixture of K probes, and the excess of each sentence.

    The mixture exceeds the shortest code by at most log2 K bits. The excess is a sentence's cost
    minus the mean cost of as many labels. Shapes (L,) and (L, M).

    Args:
        bits, words: results of `sentence_bits`.
    """
    # −log2(1/K Σ_k 2^(−bits of probe k))
    nats = bits.sum(2) * math.log(2)
    mixed = (math.log(bits.shape[1]) - (-nats).logsumexp(1)) / math.log(2)
    sentence_cost = ((-nats).softmax(1)[:, :, None] * bits).sum(1)
    return mixed, sentence_cost - sentence_cost.sum(1, keepdim=True) / words.sum() * words


def sentence_clusters(part: Batches) -> Tensor:
    """Cluster of each of M sentences, in order. Shape (M,)."""
    sentences = part.sentences.cpu()
    first = torch.diff(sentences, prepend=sentences[:1] - 1) != 0
    return part.clusters[first]


def codelength_error(excess: Sequence[Tensor], clusters: Sequence[Tensor], n_layers: int) -> Tensor:
    """Standard error of each layer's codelength over clusters of sentences. Shape (L,).

    The linearised bootstrap of a ratio, for a fixed number of labels in each block.

    Args:
        excess: excess of each block's sentences, from `mixture_bits`. Without blocks, the error
            is 0.
        clusters: clusters of these sentences; a document may extend over several blocks.
    """
    if not excess:
        return torch.zeros(n_layers, dtype=torch.float64)
    numbers, cluster_index = torch.cat(list(clusters)).unique(return_inverse=True)
    bits = torch.cat(list(excess), 1)
    sums = bits.new_zeros(len(bits), len(numbers)).index_add_(1, cluster_index, bits)
    return (sums.square().sum(1) * len(numbers) / max(1, len(numbers) - 1)).sqrt()


def online_code(train: Batches, n_classes: int, spec: ProbeSpec) -> OnlineCode:
    """Codelength of the first cell's labels at every layer, without class weights.

    Each prefix is fitted under several fixed Gaussian priors. A block is coded by the uniform
    mixture of these probes, so that the best prior need not be known beforehand.
    """
    ends = block_ends(train.sentences)
    n_layers, _, n_features = train.features.shape
    family, loss = family_of(spec), log_loss(train.sets)
    variances = torch.tensor(family.logit_variances, device=train.features.device)
    sent = replace(train, labels=train.labels[:1], weights=torch.ones_like(train.weights[:1]))
    in_axes = train.features.in_principal_axes
    bits = [torch.full((n_layers,), first_bits(sent, ends[0], n_classes), dtype=torch.float64)]
    excess, clusters = [], []
    parameters = family.initial(n_layers, [0] * len(variances), n_features, n_classes)
    parameters = [p.to(train.features.device) for p in parameters]
    for start, end in pairwise(ends):
        # The weight of a prior of fixed variance falls with the number of examples.
        strengths = (n_features / variances / start).expand(n_layers, -1)
        prefix = replace(sent, features=in_axes.features).part(slice(0, start))
        bias = loss.start(prefix.labels, prefix.weights, n_classes).expand_as(parameters[-1])
        if start == ends[0]:
            # Start from biases that predict the label frequencies.
            parameters[-1] = bias
        precondition = diagonal(prefix, loss, bias, strengths)
        parameters = fit_full_batch(
            prefix, family, loss, parameters, strengths, precondition, PREFIX_STEPS
        )
        block = sent.part(slice(start, end))
        cost, words = sentence_bits(
            family, in_axes.rotated_back(parameters), block, n_classes, start
        )
        mixed_bits, block_excess = mixture_bits(cost, words)
        bits.append(mixed_bits)
        excess.append(block_excess)
        clusters.append(sentence_clusters(block))
    return OnlineCode(ends, torch.stack(bits, 1), codelength_error(excess, clusters, n_layers))
