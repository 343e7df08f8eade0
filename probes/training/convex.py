"""Fits of convex families to their optimum, in the principal axes of the features.

Passes of Adam end where the curvature of each output can be estimated. L-BFGS converges from there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import islice

import torch
from torch import Tensor

from probes.common.terminal import progress
from probes.records.probe_spec import ProbeSpec
from probes.training.batches import Batches, shuffled_batches
from probes.training.family import FittedProbes, Parameters
from probes.training.features import InMemory
from probes.training.fitted import mean_loss
from probes.training.full_batch import fit_full_batch
from probes.training.preconditioning import diagonal, output_blocks
from probes.training.trainer import Adam, Trainer, convex_rate, scheduled_steps

TOLERANCE, OF_EXAMPLES = 1e-5, 1 << 14
"""A fit ends when two steps in a row promise to lower the loss by less than this share of it. At
least 99.9 % of test predictions are then those of the optimum (docs/performance.md). With fewer
examples the share is smaller in proportion: their passes are cheap, and probabilities exact."""

SAMPLE_TOLERANCE = 3e-4
"""The same for bootstrap samples. Their scores vary by far more than is left to gain."""

MOST_STEPS = 200
"""Steps of L-BFGS after which a fit ends, converged or not."""


def tolerance(n_examples: int, sample: int = 0) -> float:
    """The share of the loss at which a fit ends; see `TOLERANCE`.

    Args:
        sample: number of the bootstrap sample, 0 for none.
    """
    return SAMPLE_TOLERANCE if sample else TOLERANCE * min(1, n_examples / OF_EXAMPLES)


def convex_steps(spec: ProbeSpec, n_batches: int) -> int:
    """The most steps of a fit, for progress bars."""
    return scheduled_steps(spec, n_batches) + MOST_STEPS


def fit_convex(
    trainer: Trainer,
    n_outputs: int,
    strengths: Tensor,
    tolerances: Tensor,
    start: Parameters | None = None,
) -> FittedProbes:
    """Fit K cells of a convex family to L layers.

    Args:
        strengths: L2 strengths. Shape (L, K).
        tolerances: a tolerance for each cell. Shape (K,).
        start: see `probes.training.fit.fit`.
    """
    family, loss, n_cells = trainer.family, trainer.loss, strengths.shape[1]
    in_axes = trainer.train.features.in_principal_axes
    trainer = trainer.with_train(replace(trainer.train, features=in_axes.features))
    curvature_weights = trainer.train.weights
    if start is None:
        start = _after_adam(trainer, n_outputs, strengths)
    else:
        # One estimate, which all cells share.
        start = in_axes.rotated(start)
        curvature_weights = torch.ones_like(curvature_weights[:1])
    fitted = []
    for layers, train in _by_layers(trainer.train):
        at_start, strength = [p[layers] for p in start], strengths[layers]
        weighted = replace(train, weights=curvature_weights)
        if train.features.held is None:
            precondition = diagonal(train, loss, at_start[-1], strength)
        else:
            precondition = output_blocks(weighted, family, loss, at_start, strength)
        at_start = [p.expand(-1, n_cells, *p.shape[2:]) for p in at_start]
        fitted.append(
            fit_full_batch(
                train, family, loss, at_start, strength, precondition, MOST_STEPS, tolerances
            )
        )
    parameters = in_axes.rotated_back([torch.cat(parts) for parts in zip(*fitted, strict=True)])
    dev_loss = mean_loss(family, loss, parameters, trainer.dev)
    return FittedProbes(parameters, strengths, torch.ones_like(strengths), dev_loss)


def _by_layers(train: Batches) -> Iterator[tuple[slice, Batches]]:
    """Layers that take their steps together.

    On a CPU each is alone and none waits for the slowest; a GPU needs the wider products.
    """
    held = train.features.held
    if train.features.device.type != "cpu" or held is None:
        yield slice(None), train
        return
    for layer in range(len(held)):
        layers = slice(layer, layer + 1)
        yield layers, replace(train, features=InMemory(held[layers]))


def _after_adam(trainer: Trainer, n_outputs: int, strengths: Tensor) -> Parameters:
    """Parameters after passes of Adam, which start from the label frequencies."""
    train, family, loss, spec = trainer.train, trainer.family, trainer.loss, trainer.spec
    n_cells = strengths.shape[1]
    labels, counts = (x.expand(n_cells, -1) for x in (train.labels, train.weights))
    weight, bias = trainer.initial([0] * n_cells, n_outputs)
    bias = loss.start(labels, counts, n_outputs).expand_as(bias)
    parameters = [p.to(strengths.device).contiguous().clone() for p in (weight, bias)]
    n_batches = len(train.bounds) - 1
    n_steps = scheduled_steps(spec, n_batches)
    # Divided by the mean weight of a batch, so that examples of a small batch count no more.
    weights = train.weights / (train.weights.sum(1, keepdim=True) / n_batches)
    adam = Adam(parameters, convex_rate(spec, train.features.shape[2]))
    for step, (part, mask) in enumerate(islice(shuffled_batches(train), n_steps), 1):
        errors = partial(loss.errors, labels=train.labels[:, part], weights=weights[:, part] * mask)
        gradients = family.gradient(parameters, train.features.kept_block(part), errors)
        gradients[0].addcmul_(parameters[0], strengths[:, :, None, None])
        adam.step(gradients, (1 - step / n_steps) ** 2)
        progress.advance()
    return parameters
