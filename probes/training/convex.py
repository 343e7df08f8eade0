"""Fits of convex families to their optimum, in the principal axes of the features.

A start of few passes, of Adam or of L-BFGS, ends where the curvature of each output can be
estimated. L-BFGS with these estimates then converges.
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
from probes.training.family import FittedProbes, Parameters, ProbeFamily
from probes.training.features import InMemory
from probes.training.fitted import mean_loss
from probes.training.full_batch import fit_full_batch
from probes.training.losses import Loss
from probes.training.preconditioning import diagonal, output_blocks
from probes.training.trainer import Adam, Trainer, convex_rate

FEW = 1 << 14
"""Up to this many training examples, every step of a convex fit reads all of them.

Few examples make few batches, but Adam needs hundreds of steps. With many examples, a whole pass is
too expensive for a single step.
"""

FEW_STEPS = 15
"""Steps from such a start to where curvature is estimated."""

TOLERANCE = 1e-5
"""A fit ends when two steps in a row promise to lower the loss by less than this share of it. At
least 99.9 % of test predictions are then those of the optimum (docs/performance.md)."""

MOST_STEPS = 200
"""Steps of L-BFGS after which a fit ends, converged or not."""


def convex_steps(spec: ProbeSpec, n_examples: int, n_batches: int) -> int:
    """Number of steps of a fit, for progress bars."""
    first = FEW_STEPS if n_examples <= FEW else spec.epochs * n_batches
    return first + MOST_STEPS


def fit_convex(
    trainer: Trainer, n_outputs: int, strengths: Tensor, start: Parameters | None = None
) -> FittedProbes:
    """Fit cells of a convex family with strengths (L, K); see `fit`."""
    family, loss, spec = trainer.family, trainer.loss, trainer.spec
    in_axes = trainer.train.features.in_principal_axes
    train = replace(trainer.train, features=in_axes.features)
    if start is None:
        start = in_axes.rotated(_frequencies(trainer, n_outputs, strengths))
        start = _first_steps(train, family, loss, start, strengths, spec)
        weights = train.weights
    else:
        start = in_axes.rotated(start)
        weights = torch.ones_like(train.weights[:1])
    fitted = []
    for layers, of_layers in _by_layers(train):
        at_start = [p[layers] for p in start]
        precondition = output_blocks(
            replace(of_layers, weights=weights), family, loss, at_start, strengths[layers]
        )
        at_start = [p.expand(-1, strengths.shape[1], *p.shape[2:]) for p in at_start]
        fitted.append(
            fit_full_batch(
                of_layers,
                family,
                loss,
                at_start,
                strengths[layers],
                precondition,
                MOST_STEPS,
                TOLERANCE,
            )
        )
    parameters = in_axes.rotated_back([torch.cat(parts) for parts in zip(*fitted, strict=True)])
    dev_loss = mean_loss(family, loss, parameters, trainer.dev)
    return FittedProbes(parameters, strengths, torch.ones_like(strengths), dev_loss)


def _by_layers(train: Batches) -> Iterator[tuple[slice, Batches]]:
    """Layers that take their steps together: each alone on a CPU, which has no use for wider
    products, so that none waits for the slowest.
    """
    if train.features.device.type != "cpu" or train.features.held is None:
        yield slice(None), train
        return
    for layer in range(train.features.shape[0]):
        part = slice(layer, layer + 1)
        yield part, replace(train, features=InMemory(train.features.held[part]))


def _frequencies(trainer: Trainer, n_outputs: int, strengths: Tensor) -> Parameters:
    """Probes of each cell that predict the label frequencies."""
    n_cells = strengths.shape[1]
    *weights, bias = trainer.initial([0] * n_cells, n_outputs)
    labels, counts = (x.expand(n_cells, -1) for x in (trainer.train.labels, trainer.train.weights))
    bias = trainer.loss.start(labels, counts, n_outputs).expand_as(bias)
    return [p.to(strengths.device) for p in (*weights, bias)]


def _first_steps(
    train: Batches,
    family: ProbeFamily,
    loss: Loss,
    start: Parameters,
    strengths: Tensor,
    spec: ProbeSpec,
) -> Parameters:
    """Passes of Adam over the examples, or steps of L-BFGS if they are few."""
    if len(train.sentences) <= FEW:
        precondition = diagonal(train, loss, start[-1], strengths)
        return fit_full_batch(
            train, family, loss, start, strengths, precondition, FEW_STEPS, TOLERANCE
        )
    parameters = [p.contiguous().clone() for p in start]
    n_batches = len(train.bounds) - 1
    n_steps = spec.epochs * n_batches
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
