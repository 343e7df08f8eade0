"""The online code of Voita & Titov (2020), for convex families.

The labels are sent in blocks. The first has a uniform code; each later one is coded by probes fitted
on all blocks before it.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import torch
from torch import Tensor

from probes.records.probe_spec import ProbeSpec
from probes.training.batches import Batches
from probes.training.codes import (
    OnlineCode,
    block_ends,
    first_bits,
    mixture_bits,
    sentence_bits,
)
from probes.training.families import family_of
from probes.training.family import Parameters
from probes.training.losses import log_loss
from probes.training.trainer import Trainer

SCHEDULE = {"epochs": 4, "min_steps": 300}
RATE = 1.0
SHIFT = False


def online_code(train: Batches, n_classes: int, spec: ProbeSpec) -> OnlineCode:
    """Codelength of the first cell's labels at every layer, without class weights.

    Each prefix is fitted under several Gaussian priors, which do not change from one prefix to the
    next. A block is coded by the uniform mixture of these probes' codes, so that the best prior
    need not be known beforehand.
    """
    ends = block_ends(train.sentences)
    n_layers, _, n_features = train.features.shape
    family, loss = family_of(spec), log_loss(train.sets)
    spec = spec.model_copy(update={**SCHEDULE})
    later = spec.model_copy(update={"learning_rate": spec.learning_rate * RATE})
    variances = torch.tensor(family.logit_variances, device=train.features.device)
    sent = replace(train, labels=train.labels[:1], weights=torch.ones_like(train.weights[:1]))
    bits = [torch.full((n_layers,), first_bits(sent, ends[0], n_classes), dtype=torch.float64)]
    variance = torch.zeros(n_layers, dtype=torch.float64)
    found: Parameters | None = None
    for start, end in pairwise(ends):
        prefix = sent.part(slice(0, start))
        trainer = Trainer(prefix, None, family, loss, spec if found is None else later)
        prior = loss.prior(prefix.labels, prefix.weights, n_classes)
        if found is None:
            found = trainer.initial([0], n_classes)
            # A short schedule should not spend its steps on learning the label frequencies.
            found[-1] = prior.expand(n_layers, 1, -1)
        elif SHIFT:
            found[-1] = found[-1] + (prior - before)
        before = prior
        # A prior of fixed variance has less weight the more examples there are.
        strengths = (n_features / variances / start).expand(n_layers, -1)
        found = trainer.run(found, strengths).parameters
        block = sent.part(slice(start, end))
        each, words = sentence_bits(family, found, block, n_classes, start)
        of_block, deviation = mixture_bits(each, words)
        bits.append(of_block)
        variance += deviation
    return OnlineCode(ends, torch.stack(bits, 1), variance.sqrt())
