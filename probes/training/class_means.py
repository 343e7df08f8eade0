"""Probes from class means: mean differences, and sparse probes of the features that differ most."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import torch
from torch import Tensor

from probes.records.probe_spec import PROBES, ProbeSpec
from probes.training.batches import Batches, evaluation_slices, rebatched
from probes.training.convex import fit_convex, tolerance
from probes.training.family import FittedProbes, Linear, Parameters
from probes.training.features import Features, InMemory
from probes.training.fitted import joined_probes, mean_loss
from probes.training.losses import CrossEntropy, loss_for
from probes.training.trainer import Trainer

SIZES = (1, 2, 5, 16)
"""Numbers of features of sparse probes; the last one is that of the reported probe."""

_NEVER = -1e30
"""Bias of a class that a training sample lacks, so that it is not predicted; losses stay finite."""


def class_means(train: Batches, n_outputs: int) -> tuple[Tensor, Tensor]:
    """Weighted mean of the features of each class, and the share of each class.

    Returns:
        means (L, K, C, H), 0 for a class without examples, and shares (K, C), in float64 on the
        CPU, or on a CUDA device if the features are there.
    """
    n_layers, n_examples, n_features = train.features.shape
    n_cells = max(len(train.labels), len(train.weights))
    labels, weights = (x.expand(n_cells, -1) for x in (train.labels, train.weights))
    # The sums are large. They stay on a device that has float64.
    device = train.features.device if train.features.device.type == "cuda" else "cpu"
    total = torch.zeros(n_layers, n_cells * n_outputs, n_features, dtype=torch.float64).to(device)
    count = torch.zeros(n_cells, n_outputs, dtype=torch.float64).to(device)
    for part in evaluation_slices(n_examples):
        of_class = weights.new_zeros(n_cells, n_outputs, part.stop - part.start)
        of_class.scatter_(1, labels[:, None, part], weights[:, None, part])
        total += (of_class.flatten(0, 1) @ train.features.kept_block(part)).to(device)
        count += of_class.sum(2).to(device)
    means = total.unflatten(1, count.shape) / count.clamp_min(1e-30)[..., None]
    return means, count / count.sum(1, keepdim=True)


class MeanDifference(Linear):
    """The class with the nearest mean (mass-mean probe, Marks & Tegmark 2024).

    Distances are those of vectors before they are standardised. The output of class c is
    μ_c · x − |μ_c|² / 2. So the direction of two classes is μ₁ − μ₀, and the threshold on it is
    half-way between the means of the training examples.
    """

    convex: ClassVar[bool] = False
    closed_form: ClassVar[bool] = False

    def solved(self, train: Batches, dev: Batches, n_outputs: int, spec: ProbeSpec) -> FittedProbes:
        """The probes of all cells. Their L2 strength is 0."""
        means, shares = class_means(train, n_outputs)
        weight = means
        if train.scale is not None:
            # Distances are in the unit of the vectors; constant features (scale 0) add nothing.
            scale = train.scale.to(means)
            variance = torch.where(scale > 0, scale, torch.inf) ** -2
            weight = means * variance[:, None, None]
        bias = -0.5 * (means * weight).sum(-1)
        bias = bias.masked_fill(shares == 0, _NEVER)
        parameters = [p.float().to(train.features.device) for p in (weight, bias)]
        dev_loss = mean_loss(self, CrossEntropy(), parameters, dev)
        return FittedProbes(
            parameters, torch.zeros_like(dev_loss), torch.ones_like(dev_loss), dev_loss
        )


class Sparse(Linear):
    """A linear probe of the few features by which class means differ most (Gurnee et al. 2023)."""

    convex: ClassVar[bool] = False
    closed_form: ClassVar[bool] = False

    def solved(self, train: Batches, dev: Batches, n_outputs: int, spec: ProbeSpec) -> FittedProbes:
        """The probes of all cells; weights of features that are not chosen are 0."""
        n_layers, _, n_features = train.features.shape
        fitted = []
        for cell, columns in enumerate(
            features_by_variance(train, n_outputs)[..., : SIZES[-1]].unbind(1)
        ):
            of_cell = [
                replace(data.of_cells([cell]), features=feature_columns(data.features, columns))
                for data in (train, dev)
            ]
            narrow_probes = fit_narrow(of_cell[0], of_cell[1], n_outputs, spec)
            weight, bias = narrow_probes.parameters
            index = columns[:, None, None].expand(-1, 1, n_outputs, -1)
            wide = weight.new_zeros(n_layers, 1, n_outputs, n_features).scatter_(3, index, weight)
            fitted.append(replace(narrow_probes, parameters=[wide, bias]))
        return joined_probes(fitted, [[cell] for cell in range(len(fitted))])

    def n_parameters(self, parameters: Parameters) -> int:
        """Weights of the chosen features, and biases."""
        return sum(int(p.count_nonzero()) for p in parameters)


def features_by_variance(train: Batches, n_outputs: int) -> Tensor:
    """Indices of features, those with the largest variance of class means first. (L, K, H).

    The variance is that of the means of standardised features, weighted by the shares of classes,
    which orders features as an F test does. With two classes it orders them by |μ₁ − μ₀|.
    """
    means, shares = class_means(train, n_outputs)
    shares = shares[..., None]
    deviations = means - (shares * means).sum(2, keepdim=True)
    order = (shares * deviations**2).sum(2).argsort(dim=2, descending=True, stable=True)
    return order.to(train.features.device)


def feature_columns(features: Features, columns: Tensor) -> InMemory:
    """Some features of each layer, in memory.

    Args:
        columns: their indices. Shape (L, k).
    """
    index = columns[:, None].to(features.device)
    blocks = [
        block.gather(2, index.expand(-1, block.shape[1], -1))
        for block in map(features.kept_block, evaluation_slices(features.shape[1]))
    ]
    return InMemory(torch.cat(blocks, 1))


def fit_narrow(train: Batches, dev: Batches, n_outputs: int, spec: ProbeSpec) -> FittedProbes:
    """Fit a linear probe of one cell to a few features."""
    linear = PROBES["linear"].model_copy(update={"l2": spec.l2})
    train = rebatched(train, linear.batch)
    trainer = Trainer(train, dev, Linear(), loss_for(n_outputs, train.sets), linear)
    n_layers, n_examples, _ = train.features.shape
    prior = torch.tensor(linear.l2, device=train.features.device) / n_examples
    tolerances = torch.tensor([tolerance(n_examples)])
    return fit_convex(trainer, n_outputs, prior.expand(n_layers, 1).contiguous(), tolerances)
