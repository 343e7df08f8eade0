"""Fits of the prefixes that an online code is made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from probes.compute.allocator import kept_memory
from probes.records.probe_spec import ProbeSpec
from probes.training.batches import Batches
from probes.training.families import head_of
from probes.training.family import Parameters
from probes.training.fit import log_loss
from probes.training.trainer import Course, Schedule, Trainer, run_together


def fit_prefixes(
    prefixes: Sequence[Batches],
    n_outputs: int,
    spec: ProbeSpec,
    strengths: Sequence[Tensor],
    steps: Sequence[float],
) -> Iterator[Parameters]:
    """Fit the cells of each prefix at given strengths to the end of its schedule, without dev.

    Args:
        prefixes: labels and weights of shape (K, N), the weights as they are meant.
        n_outputs: number of classes.
        strengths: of each prefix. Shape (L, K).
        steps: Adam's at the start, of each of the L layers.
    """
    head, sizes = head_of(spec), torch.tensor(steps, dtype=torch.float64)

    def course(train: Batches, strengths: Tensor) -> Course:
        loss = log_loss(train.sets)
        n_layers, _, n_features = train.features.shape
        start = head.initial(n_layers, [0] * len(train.labels), n_features, n_outputs)
        # A short schedule is not to spend its steps on how frequent the labels are.
        start[-1] = loss.prior(train.labels, train.weights, n_outputs).expand(n_layers, -1, -1)
        trainer = Trainer(train, None, head, loss, spec)
        # Without dev to stop by, the end is to be quiet.
        return Course(trainer, start, strengths, sizes, Schedule(decay=2))

    with kept_memory():
        for found in run_together(map(course, prefixes, strengths)):
            yield found.parameters


LOGIT_VARIANCES: dict[str, tuple[float, ...]] = {
    "linear": (0.04, 0.4, 4.0, 40.0),
    "mlp": (0.4, 4.0, 40.0),
}
"""Gaussian priors on the weights, as the variance that they give a sum over all features; a
plug-in's family has those of the MLP."""


def logit_variances(spec: ProbeSpec) -> tuple[float, ...]:
    """Those of the priors under which each prefix is fitted, all at once."""
    return LOGIT_VARIANCES.get(spec.family, LOGIT_VARIANCES["mlp"])
