"""Fits of the prefixes that an online code is made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torch import Tensor

from probes.records.probe_spec import ProbeSpec
from probes.training.batches import Batches
from probes.training.families import family_of
from probes.training.family import Parameters
from probes.training.losses import log_loss
from probes.training.trainer import MinibatchFit, Trainer, run_fits


def fit_prefixes(
    prefixes: Sequence[Batches],
    n_outputs: int,
    spec: ProbeSpec,
    strengths: Sequence[Tensor],
) -> Iterator[Parameters]:
    """Fit the cells of each prefix at given strengths to the end of its schedule, without dev.

    Args:
        prefixes: labels and weights of shape (K, N); the weights are used as they are.
        n_outputs: number of classes.
        strengths: of each prefix. Shape (L, K).
    """
    family = family_of(spec)

    def fit_of_prefix(train: Batches, strengths: Tensor) -> MinibatchFit:
        loss = log_loss(train.sets)
        n_layers, _, n_features = train.features.shape
        start = family.initial(n_layers, [0] * len(train.labels), n_features, n_outputs)
        # A short schedule should not spend its steps on learning the label frequencies.
        start[-1] = loss.prior(train.labels, train.weights, n_outputs).expand(n_layers, -1, -1)
        trainer = Trainer(train, None, family, loss, spec)
        return MinibatchFit(trainer, start, strengths)

    for found in run_fits(map(fit_of_prefix, prefixes, strengths)):
        yield found.parameters
