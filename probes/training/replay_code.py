"""Prequential code with replay (Bornschein, Li & Hutter 2022), for families that are not convex.

The labels are sent in one pass. Each batch is coded by the probes of the moment, which then learn
it together with batches replayed from what has been sent (mini-batch incremental training with
replay, in the paper). To start anew for each prefix, as the online code does, takes a whole fit
each time, and to go on without replay forgets.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace
from functools import partial
from itertools import pairwise

import torch
from torch import Tensor

from probes.common.terminal import progress
from probes.records.probe_spec import ProbeSpec
from probes.training.adam import Adam
from probes.training.batches import BATCH, Batches
from probes.training.codes import (
    OnlineCode,
    block_ends,
    deviation,
    first_bits,
    mixture_bits,
    sentence_bits,
    sentence_clusters,
    sentence_ends,
)
from probes.training.families import family_of
from probes.training.losses import log_loss

STEPS = 5
"""Steps after each batch: one on the examples sent last, the others on replayed ones."""

_GROWTH = 8
"""What has been sent grows by this part of it with each batch, by at most `BATCH` examples."""

_AVERAGED = 10
"""Probes that code are averages over about the last one in so many of all steps so far."""


def batch_ends(sentences: Tensor) -> list[int]:
    """Ends of the batches, which are ends of sentences; the first batch is the first block.

    Args:
        sentences: the sentence of each example, equal ones adjacent. Shape (N,).
    """
    cuts, blocks = sentence_ends(sentences), block_ends(sentences)
    ends = [blocks[0]]
    for last in blocks[1:]:
        while ends[-1] < last:
            wanted = ends[-1] + min(max(1, ends[-1] // _GROWTH), BATCH)
            ends.append(cuts[bisect_left(cuts, min(wanted, last))])
    return ends


def replay_code(train: Batches, n_classes: int, spec: ProbeSpec) -> OnlineCode:
    """Codelength of the first cell's labels at every layer, without class weights.

    The first block has a uniform code. Probes are trained under several Gaussian priors at a fixed
    learning rate, and a block is coded by the uniform mixture of their codes.
    """
    ends = block_ends(train.sentences)
    n_layers = train.features.shape[0]
    sent = replace(train, labels=train.labels[:1], weights=torch.ones_like(train.weights[:1]))
    bits = [torch.full((n_layers,), first_bits(sent, ends[0], n_classes), dtype=torch.float64)]
    excess, clusters = [], []
    learner = _Learner(sent, n_classes, spec, ends[0])
    of_block: list[tuple[Tensor, Tensor]] = []
    for start, end in pairwise(batch_ends(train.sentences)):
        learner.learn(start)
        batch = sent.part(slice(start, end))
        of_block.append(sentence_bits(learner.family, learner.average, batch, n_classes, start))
        clusters.append(sentence_clusters(batch))
        if end in ends:
            each, words = zip(*of_block, strict=True)
            of_mixture, beyond = mixture_bits(torch.cat(each, 2), torch.cat(words))
            bits.append(of_mixture)
            excess.append(beyond)
            of_block = []
    return OnlineCode(ends, torch.stack(bits, 1), deviation(excess, clusters, n_layers))


class _Learner:
    """Probes of one cell for each prior, which learn from what has been sent.

    Args:
        sent: labels and weights of shape (1, N).
        n_first: examples of the first block.

    Attributes:
        average: the parameters that code: an exponential moving average.
    """

    def __init__(self, sent: Batches, n_classes: int, spec: ProbeSpec, n_first: int) -> None:
        self._sent, self._loss, self.family = sent, log_loss(sent.sets), family_of(spec)
        n_layers, _, n_features = sent.features.shape
        device = sent.features.device
        # The same start under each prior.
        self._precisions = n_features / torch.tensor(self.family.logit_variances, device=device)
        seeds = [0] * len(self._precisions)
        start = self.family.initial(n_layers, seeds, n_features, n_classes)
        first = sent.part(slice(0, n_first))
        shares = self._loss.shares(first.labels, first.weights, n_classes)
        # The label frequencies need not be learnt.
        start[-1] = self._loss.prior(shares).expand(n_layers, len(seeds), -1)
        self._parameters = [p.to(device).clone() for p in start]
        self.average = [p.clone() for p in self._parameters]
        self._adam = Adam(self._parameters, spec.learning_rate)
        self._replayed = torch.Generator().manual_seed(0)
        self._n_steps = 0

    def learn(self, n_sent: int) -> None:
        """Take steps on the first `n_sent` examples: on the last ones, then on random ones."""
        width = min(n_sent, BATCH)
        drawn = torch.randint(n_sent, (STEPS - 1,), generator=self._replayed).tolist()
        for first in (n_sent - width, *drawn):
            self._step(first, width, n_sent)

    def _step(self, first: int, width: int, n_sent: int) -> None:
        """Take a step on consecutive examples; after the last of those sent follows the first."""
        end = first + width
        parts = [slice(first, min(end, n_sent)), slice(0, max(0, end - n_sent))]
        x = torch.cat([self._sent.features.rounded(part) for part in parts if part.stop], 1)
        labels = torch.cat([self._sent.labels[:, part] for part in parts], 1)
        weights = torch.full(labels.shape, 1 / width, device=x.device)
        errors = partial(self._loss.errors, labels=labels, weights=weights)
        gradients = self.family.gradient(self._parameters, x, errors)
        # A prior of fixed variance has less weight the more examples there are.
        penalty = (self._precisions / n_sent)[:, None, None]
        for weight, gradient in zip(self._parameters[::2], gradients[::2], strict=True):
            gradient.addcmul_(weight, penalty)
        self._adam.step(gradients, 1.0)
        progress.advance()
        self._n_steps += 1
        newest = min(1.0, _AVERAGED / self._n_steps)
        for mean, parameter in zip(self.average, self._parameters, strict=True):
            mean.lerp_(parameter, newest)
