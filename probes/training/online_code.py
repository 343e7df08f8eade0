"""The online code of Voita & Titov (2020), for convex families.

The labels are sent in blocks. The first has a uniform code; each later one is coded by probes
fitted on all blocks before it. The optimum of a convex family does not depend on where a fit
starts: that of a prefix starts from the optimum of the prefix before it, which is near. Nothing is
drawn at random, and all examples take part in every step.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import torch

from probes.records.probe_spec import ProbeSpec
from probes.training.batches import Batches
from probes.training.codes import (
    OnlineCode,
    block_ends,
    deviation,
    first_bits,
    mixture_bits,
    sentence_bits,
    sentence_clusters,
)
from probes.training.families import family_of
from probes.training.full_batch import fit_full_batch
from probes.training.losses import log_loss

PREFIX_STEPS = 20
"""Of each prefix; codelengths are within 0.6 % of those of prefixes fitted to the end."""


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
    bits = [torch.full((n_layers,), first_bits(sent, ends[0], n_classes), dtype=torch.float64)]
    excess, clusters = [], []
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
        found = fit_full_batch(prefix, family, loss, found, strengths, PREFIX_STEPS)
        block = sent.part(slice(start, end))
        each, words = sentence_bits(family, read.rotated_back(found), block, n_classes, start)
        of_block, beyond = mixture_bits(each, words)
        bits.append(of_block)
        excess.append(beyond)
        clusters.append(sentence_clusters(block))
    return OnlineCode(ends, torch.stack(bits, 1), deviation(excess, clusters, n_layers))
