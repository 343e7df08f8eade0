"""The online code of Voita & Titov (2020), for convex families.

The labels are sent in blocks. The first has a uniform code; each later one is coded by probes fitted
on all blocks before it. The optimum of a convex family does not depend on where a fit starts: that
of a prefix starts from the optimum of the prefix before it, which is near.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import torch
from torch import Tensor

from probes.records.probe_spec import ProbeSpec
from probes.training.batches import Batches, blocks
from probes.training.codes import OnlineCode, block_ends, first_bits, mixture_bits, sentence_bits
from probes.training.families import family_of
from probes.training.family import Parameters, ProbeFamily
from probes.training.features import Features
from probes.training.losses import LogLoss, log_loss
from probes.training.quasi_newton import minimise

PREFIX_STEPS = 20
"""Steps of each prefix: codelengths are then within 0.6 % of those of prefixes fitted to the end."""

_CONFIDENCE = 0.1
"""The curvature of a fitted probe's loss, over that of a probe that knows label frequencies only."""


def online_code(train: Batches, n_classes: int, spec: ProbeSpec) -> OnlineCode:
    """Codelength of the first cell's labels at every layer, without class weights.

    Each prefix is fitted under several Gaussian priors, which do not change from one prefix to the
    next. A block is coded by the uniform mixture of these probes' codes, so that the best prior
    need not be known beforehand.
    """
    ends = block_ends(train.sentences)
    n_layers, _, n_features = train.features.shape
    family, loss = family_of(spec), log_loss(train.sets)
    variances = torch.tensor(family.logit_variances, device=train.features.device)
    sent = replace(train, labels=train.labels[:1], weights=torch.ones_like(train.weights[:1]))
    read = train.features.in_principal_axes
    squares = mean_squares(read.features)
    bits = [torch.full((n_layers,), first_bits(sent, ends[0], n_classes), dtype=torch.float64)]
    variance = torch.zeros(n_layers, dtype=torch.float64)
    found = family.initial(n_layers, [0] * len(variances), n_features, n_classes)
    found = [p.to(train.features.device) for p in found]
    for start, end in pairwise(ends):
        # A prior of fixed variance has less weight the more examples there are.
        strengths = (n_features / variances / start).expand(n_layers, -1)
        prefix = replace(sent, features=read.features).part(slice(0, start))
        if start == ends[0]:
            # The label frequencies need not be learnt.
            shares = loss.shares(prefix.labels, prefix.weights, n_classes)
            found[-1] = loss.prior(shares).expand_as(found[-1])
        found = fit_prefix(prefix, family, loss, found, strengths, squares)
        block = sent.part(slice(start, end))
        each, words = sentence_bits(family, read.rotated_back(found), block, n_classes, start)
        of_block, deviation = mixture_bits(each, words)
        bits.append(of_block)
        variance += deviation
    return OnlineCode(ends, torch.stack(bits, 1), variance.sqrt())


def mean_squares(features: Features) -> Tensor:
    """The mean square of each feature. Shape (L, H)."""
    n_layers, n_examples, n_features = features.shape
    total = torch.zeros(n_layers, n_features, device=features.device)
    for part in blocks(n_examples):
        total += features.rounded(part).float().square().sum(1)
    return total / n_examples


def fit_prefix(
    prefix: Batches,
    family: ProbeFamily,
    loss: LogLoss,
    start: Parameters,
    strengths: Tensor,
    squares: Tensor,
) -> Parameters:
    """Fit probes of a convex family to features in their principal axes.

    Args:
        prefix: labels and weights of shape (1, N).
        start: starting parameters, one weight and one bias.
        strengths: of L2. Shape (L, K).
        squares: see `mean_squares`.
    """
    n_examples = len(prefix.sentences)
    weight, bias = start
    sizes = [weight[0, 0].numel(), bias[0, 0].numel()]

    def apart(point: Tensor) -> Parameters:
        weight_, bias_ = point.split(sizes, 2)
        return [weight_.unflatten(2, weight.shape[2:]), bias_]

    def together(weight: Tensor, bias: Tensor) -> Tensor:
        return torch.cat([weight.flatten(2), bias], 2)

    penalty = together(strengths[:, :, None, None].expand_as(weight), torch.zeros_like(bias))

    def evaluate(point: Tensor) -> tuple[Tensor, Tensor]:
        parameters, value = apart(point), 0.5 * (penalty * point * point).sum(2)
        total, gradient = torch.zeros_like(value), torch.zeros_like(point)
        for part in blocks(n_examples):
            labels, weights = prefix.labels[:, part], prefix.weights[:, part]

            def errors(
                outputs: Tensor, labels: Tensor = labels, weights: Tensor = weights
            ) -> Tensor:
                total.add_(loss.total(outputs, labels, weights))
                return loss.errors(outputs, labels, weights)

            gradient += together(
                *family.gradient(parameters, prefix.features.rounded(part), errors)
            )
        return value + total / n_examples, gradient / n_examples + penalty * point

    shares = loss.shares(prefix.labels, prefix.weights, bias.shape[2])[0]
    of_outputs = _CONFIDENCE * shares * (1 - shares)
    of_weights = (of_outputs[:, None] * squares[:, None, None]).expand_as(weight)
    curvature = together(of_weights, of_outputs.expand_as(bias)) + penalty
    return apart(minimise(evaluate, together(weight, bias), curvature, PREFIX_STEPS))
