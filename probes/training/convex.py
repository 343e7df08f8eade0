"""Fits of convex families to their optimum, in the principal axes of the features.

A few passes of Adam come near the optimum. There the curvature of each output is estimated, and
L-BFGS converges from there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import NamedTuple

import torch
from torch import Tensor

from probes.common.terminal import progress
from probes.records.probe_spec import ProbeSpec
from probes.training.batches import Batches, shuffled_batches
from probes.training.family import FittedProbes, Parameters
from probes.training.features import InMemory
from probes.training.fitted import mean_loss
from probes.training.full_batch import fit_full_batch
from probes.training.preconditioning import diagonal, output_blocks, without_mean
from probes.training.trainer import Adam, Trainer, convex_rate, scheduled_steps

TOLERANCE, OF_EXAMPLES = 1e-5, 1 << 14
"""A fit ends when two steps in a row promise to lower the loss by less than this share of it. At
least 99.9 % of test predictions are then those of the optimum (docs/method.md). With fewer
examples the share is smaller in proportion, since their passes are cheap; probabilities then agree
with those of the optimum to 10⁻⁴."""

SAMPLE_TOLERANCE = 3e-4
"""The tolerance of bootstrap samples. Their scores vary by far more than is left to gain."""

MOST_STEPS = 200
"""Steps of L-BFGS after which a fit ends, converged or not."""


class Start(NamedTuple):
    """Fitted probes near which others have their optimum, such as those of bootstrap samples.

    One estimate of the curvature there serves all cells.
    """

    parameters: Parameters
    """Leading dimensions (L, 1)."""

    weights: Tensor
    """Weights of the examples in that fit. Shape (1, N)."""


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
    start: Start | None = None,
) -> FittedProbes:
    """Fit K cells of a convex family to L layers.

    Args:
        strengths: L2 strengths. Shape (L, K).
        tolerances: a tolerance for each cell. Shape (K,).
    """
    family, loss, n_cells = trainer.family, trainer.loss, strengths.shape[1]
    in_axes = trainer.train.features.in_principal_axes
    trainer = trainer.with_train(replace(trainer.train, features=in_axes.features))
    weights, bias = trainer.train.weights, _frequency_bias(trainer, n_outputs, n_cells)
    if start is None:
        parameters = _after_adam(trainer, n_outputs, bias, strengths)
    else:
        parameters = in_axes.rotated([p.to(strengths.device) for p in start.parameters])
        weights = start.weights
        progress.advance(scheduled_steps(trainer.spec, len(trainer.train.bounds) - 1))
    fitted = []
    groups = list(_by_layers(trainer.train))
    for number, (layers, train) in enumerate(groups):
        at_start, strength = [p[layers] for p in parameters], strengths[layers]
        if train.features.held is None:
            precondition = diagonal(train, loss, bias.expand(len(strength), -1, -1), strength)
            precondition = without_mean(precondition, loss)
        else:
            weighted = replace(train, weights=weights)
            precondition = output_blocks(weighted, family, loss, at_start, strength)
        at_start = [p.expand(-1, n_cells, *p.shape[2:]) for p in at_start]
        fitted.append(
            fit_full_batch(
                train, family, loss, at_start, strength, precondition, MOST_STEPS, tolerances
            )
        )
        done, before = ((i * MOST_STEPS) // len(groups) for i in (number + 1, number))
        progress.advance(done - before)
    parameters = in_axes.rotated_back([torch.cat(parts) for parts in zip(*fitted, strict=True)])
    dev_loss = mean_loss(family, loss, parameters, trainer.dev)
    return FittedProbes(parameters, strengths, torch.ones_like(strengths), dev_loss)


def _by_layers(train: Batches) -> Iterator[tuple[slice, Batches]]:
    """Layers that take their steps together.

    On a CPU each layer is fitted alone, and ends when it converges. On a GPU all take steps
    together, since the products of one layer leave it idle.
    """
    held = train.features.held
    if train.features.device.type != "cpu" or held is None:
        yield slice(None), train
        return
    for layer in range(len(held)):
        layers = slice(layer, layer + 1)
        yield layers, replace(train, features=InMemory(held[layers]))


def _frequency_bias(trainer: Trainer, n_outputs: int, n_cells: int) -> Tensor:
    """Biases of probes without features, which predict the label frequencies. Shape (K, C)."""
    train = trainer.train
    labels, weights = (x.expand(n_cells, -1) for x in (train.labels, train.weights))
    return trainer.loss.start(labels, weights, n_outputs)


def _after_adam(trainer: Trainer, n_outputs: int, bias: Tensor, strengths: Tensor) -> Parameters:
    """Parameters after passes of Adam, which start from the label frequencies.

    Args:
        bias: see `_frequency_bias`.
    """
    train, family, loss, spec = trainer.train, trainer.family, trainer.loss, trainer.spec
    weight, zeros = trainer.initial([0] * len(bias), n_outputs)
    # Adam writes to them: copies, since an expanded tensor shares memory.
    parameters = [p.to(strengths.device).clone() for p in (weight, bias.expand_as(zeros))]
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
