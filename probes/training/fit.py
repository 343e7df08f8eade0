"""Fits all cells of a task at once, and predicts with them.

A cell is one probe: (layer, label set, seed), in the order given in probes/training/fitted.py.
Seed 0 trains on the training set as it is; every other seed on a bootstrap sample of its sentences,
expressed as example weights, so that all cells read the same features. The L2 strength is a prior,
the same for all cells (`ProbeSpec.l2`); test is never read.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from probes.records.probe_spec import ProbeSpec
from probes.training.batches import Batches, blocks, bootstrap_weights, small_batches
from probes.training.families import family_of
from probes.training.family import Parameters
from probes.training.features import Features
from probes.training.fitted import FittedProbes, join_seeds
from probes.training.losses import loss_for
from probes.training.ridge import ridge
from probes.training.trainer import MinibatchFit, Trainer, run_fits


def fit(
    train: Batches, dev: Batches, n_outputs: int, spec: ProbeSpec, seeds: list[int]
) -> FittedProbes:
    """Fit all cells.

    Of several L2 strengths the best by dev loss is taken: for all cells of a layer that of the
    first one, in ridge regression for each seed that of the real labels.

    Args:
        train, dev: labels and weights of shape (K, N), K a multiple of the number of seeds. The
            weights of train are multiplied by each seed's bootstrap counts.
        n_outputs: number of classes; 0 for a regression.
    """
    device = train.features.device
    counts = torch.stack([bootstrap_weights(train.sentences.cpu(), seed) for seed in seeds])
    n_sets = len(train.labels) // len(seeds)
    train = replace(train, weights=counts.to(device).repeat(n_sets, 1) * train.weights)
    family, n_layers = family_of(spec), train.features.shape[0]
    if family.closed_form and n_outputs == 0:
        grid = torch.tensor(sorted(spec.ridge_l2), dtype=torch.float64)
        return ridge(train, dev, grid.expand(n_layers, -1), len(seeds))
    if family.convex:
        train = small_batches(train)
    trainer = Trainer(train, dev, family, loss_for(n_outputs, train.sets), spec)
    strength = _strength(trainer, n_outputs, seeds)
    if family.convex:
        start = _start(trainer, seeds * n_sets, n_outputs)
        return trainer.run(start, strength.expand(-1, len(train.labels)).contiguous())

    def fit_of_seed(index: int) -> MinibatchFit:
        # A bootstrap sample lacks more than a third of the sentences.
        of_seed = trainer.of_cells(slice(index, None, len(seeds))).drawn()
        start = _start(trainer, [seeds[index]], n_outputs)
        # Where a fit ends depends on the order of its batches too: each seed has its own.
        return MinibatchFit(of_seed, start, strength.expand(-1, n_sets), seeds[index])

    return join_seeds(list(run_fits(map(fit_of_seed, range(len(seeds))))))


def _strength(trainer: Trainer, n_outputs: int, seeds: list[int]) -> Tensor:
    """The L2 strength of each layer. Shape (L, 1)."""
    n_layers, n_examples, _ = trainer.train.features.shape
    device = trainer.train.features.device
    grid = torch.tensor(sorted(trainer.spec.l2), device=device) / n_examples
    if len(grid) == 1:
        return grid.expand(n_layers, 1)
    first = trainer.of_cells(slice(0, 1)).of_cells([0] * len(grid))
    start = _start(trainer, seeds[:1], n_outputs)
    found = first.run(start, grid.expand(n_layers, -1), seeds[0])
    return grid[found.dev_loss.argmin(1, keepdim=True)]


def _start(trainer: Trainer, seeds: list[int], n_outputs: int) -> Parameters:
    n_layers, _, n_features = trainer.train.features.shape
    return trainer.family.initial(n_layers, seeds, n_features, max(1, n_outputs))


def predict(
    fitted: FittedProbes,
    features: Features,
    n_outputs: int,
    spec: ProbeSpec,
    sets: Tensor | None = None,
) -> Tensor:
    """Predictions of the fitted cells.

    Args:
        sets: the label sets of a multi-label task; see `probes.training.batches.Batches`.

    Returns:
        class indices or numbers, shape (L, K, N); for label sets bits, shape (L, K, N, bytes).
    """
    family, loss = family_of(spec), loss_for(n_outputs, sets)
    parts = []
    for part in blocks(features.shape[1]):
        outputs = family.float_outputs(fitted.parameters, features.block(part))
        parts.append(loss.decide(outputs))
    return torch.cat(parts, 2)
