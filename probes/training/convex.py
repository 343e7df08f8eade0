"""Fits of convex families: in principal axes, all examples in each step where they are few."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from probes.records.probe_spec import ProbeSpec
from probes.training.family import FittedProbes, ProbeFamily
from probes.training.fitted import mean_loss
from probes.training.full_batch import fit_full_batch
from probes.training.losses import log_loss
from probes.training.trainer import MinibatchFit, Trainer, run_fits

FEW = 1 << 14
"""Up to this many training examples, every step of a convex fit reads all of them."""


def fits_full_batches(family: ProbeFamily, n_examples: int, n_outputs: int) -> bool:
    """Whether every step of a fit reads all examples, as in convex fits with few examples.

    Few examples make few batches, but Adam needs hundreds of steps. With many examples, a whole
    pass is too expensive for a single step.
    """
    return family.convex and n_outputs > 0 and n_examples <= FEW


def full_batch_steps(spec: ProbeSpec, *, converge: bool = False) -> int:
    """Number of passes over the examples in such a fit (a few more if steps are shortened).

    Args:
        converge: see `fit`.
    """
    return (8 if converge else 2) * spec.epochs


def fit_convex(
    trainer: Trainer, n_outputs: int, strengths: Tensor, *, converge: bool = False
) -> FittedProbes:
    """Fit cells of a convex family with strengths (L, K); see `fit`."""
    train, family, loss, spec = trainer.train, trainer.family, trainer.loss, trainer.spec
    start = trainer.initial([0] * strengths.shape[1], n_outputs)
    if not converge and not fits_full_batches(family, len(train.sentences), n_outputs):
        return next(run_fits([MinibatchFit(trainer, start, strengths)]))
    of_labels = log_loss(train.sets)
    labels = train.labels.expand(strengths.shape[1], -1)
    shares = of_labels.shares(labels, train.weights.expand_as(labels), n_outputs)
    # Start from biases that predict the label frequencies.
    start[-1] = of_labels.prior(shares).expand_as(start[-1])
    in_axes = train.features.in_principal_axes
    start = in_axes.rotated([p.to(strengths.device) for p in start])
    rotated = fit_full_batch(
        replace(train, features=in_axes.features),
        family,
        of_labels,
        [p.to(strengths.device) for p in start],
        strengths,
        full_batch_steps(spec, converge=converge),
    )
    parameters = in_axes.rotated_back(rotated)
    dev_loss = mean_loss(family, loss, parameters, trainer.dev)
    return FittedProbes(parameters, strengths, torch.ones_like(strengths), dev_loss)
