"""Fits all cells of a task at once, and predicts with them.

A cell is one probe: (layer, label set, seed), in the order given in probes/training/fitted.py.
Seed 0 trains on the training set as it is; every other seed on a bootstrap sample of its sentences,
expressed as example weights, so that all cells read the same features. Strength, step size and
stopping point are chosen on dev (probes/training/search.py); test is never read. A cell with
control labels is the probe of its layer and seed once more: with the same strength, step size,
sample and initialisation.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from probes.records.probe_spec import ProbeSpec
from probes.training.batches import Batches, blocks, bootstrap_weights
from probes.training.families import family_of
from probes.training.family import Parameters
from probes.training.features import Features
from probes.training.fitted import FittedProbes, join_cells, join_seeds
from probes.training.losses import loss_for
from probes.training.ridge import ridge
from probes.training.search import full_schedule, search_convex, search_full_fits
from probes.training.trainer import MinibatchFit, Schedule, Trainer, run_fits


def fit(
    train: Batches, dev: Batches, n_outputs: int, spec: ProbeSpec, seeds: list[int]
) -> FittedProbes:
    """Fit all cells; strength, step size and stopping point are chosen by dev loss.

    Strength and step size are chosen for the first cell of a layer and used for all of its cells;
    ridge regression chooses the strength for the real labels of each seed.

    Args:
        train, dev: labels and weights of shape (K, N), K a multiple of the number of seeds. The
            weights of train are multiplied by each seed's bootstrap counts.
        n_outputs: number of classes; 0 for a regression.
    """
    device = train.features.device
    counts = torch.stack([bootstrap_weights(train.sentences.cpu(), seed) for seed in seeds])
    n_sets = len(train.labels) // len(seeds)
    train = replace(train, weights=counts.to(device).repeat(n_sets, 1) * train.weights)
    family = family_of(spec)
    if family.closed_form and n_outputs == 0:
        every = sorted({a * b for a in spec.strengths for b in spec.refinement})
        strengths = torch.tensor(every, dtype=torch.float64).expand(train.features.shape[0], -1)
        return ridge(train, dev, strengths, len(seeds))
    trainer = Trainer(train, dev, family, loss_for(n_outputs, train.sets), spec)
    search = _fit_convex if family.convex else _fit_by_full_fits
    return search(trainer, max(1, n_outputs), seeds)


def fit_at(
    train: Batches,
    dev: Batches,
    n_outputs: int,
    spec: ProbeSpec,
    strengths: Tensor,
    steps: Tensor,
    near: Parameters,
) -> FittedProbes:
    """Fit one cell per layer, that of seed 0, at given strengths; dev loss chooses when to stop.

    Args:
        train, dev: labels and weights of shape (1, N).
        n_outputs: number of classes; 0 for a regression.
        strengths: shape (L, 1).
        steps: Adam's initial step sizes, float64. Shape (L,).
        near: parameters near the optimum, from which a convex fit starts. Leading dimensions
            (L, 1).
    """
    family = family_of(spec)
    if family.closed_form and n_outputs == 0:
        return ridge(train, dev, strengths.cpu().double(), 1)
    trainer = Trainer(train, dev, family, loss_for(n_outputs, train.sets), spec)
    if family.convex:
        return _converge(trainer, near, strengths, steps)
    n_layers, _, n_features = train.features.shape
    start = family.initial(n_layers, [0], n_features, max(1, n_outputs))
    return trainer.run(start, strengths, steps, full_schedule(spec))


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


def _fit_convex(trainer: Trainer, n_outputs: int, seeds: list[int]) -> FittedProbes:
    """Fit every cell with real labels on from the best parameters of the search."""
    train = trainer.train
    n_layers, _, n_features = train.features.shape
    start = trainer.family.initial(n_layers, seeds[:1], n_features, n_outputs)
    best, likely, steps = search_convex(trainer.of_cells(slice(0, 1)), start)
    start = trainer.family.initial(n_layers, seeds[:1] * len(train.labels), n_features, n_outputs)
    for of_all_cells, found in zip(start, best.parameters, strict=True):
        of_all_cells[:, : len(seeds)] = found
    strengths = likely[:, None].expand(-1, len(train.labels)).contiguous()
    return _converge(trainer, start, strengths, steps)


def _converge(
    trainer: Trainer, start: Parameters, strengths: Tensor, steps: Tensor
) -> FittedProbes:
    """A full convex fit that starts near the optimum, with steps too small to leave it again."""
    found = trainer.run(start, strengths, 0.75 * steps, Schedule(join=2))
    return replace(found, step=steps.to(found.step)[:, None].expand_as(found.step))


def _fit_by_full_fits(trainer: Trainer, n_outputs: int, seeds: list[int]) -> FittedProbes:
    """Search with full fits of the first cell, then fit all others as the best of them."""
    n_layers, _, n_features = trainer.train.features.shape
    n_cells = len(trainer.train.labels)

    def start(seed: int) -> Parameters:
        return trainer.family.initial(n_layers, [seed], n_features, n_outputs)

    found = search_full_fits(trainer.of_cells(slice(0, 1)), start(seeds[0]), order=seeds[0])
    steps = found.step[:, 0].cpu().double()

    def fit_of_seed(index: int, first_set: int = 0) -> MinibatchFit:
        cells = slice(index, None, len(seeds))
        # A bootstrap sample lacks more than a third of the sentences.
        of_seed = trainer.of_cells(cells).of_cells(slice(first_set, None)).drawn()
        strengths = found.strength.expand(-1, len(of_seed.train.labels))
        # Where an MLP ends depends on the order of its batches too: each seed has its own.
        schedule, seed = full_schedule(trainer.spec), seeds[index]
        return MinibatchFit(of_seed, start(seed), strengths, steps, schedule, seed)

    controls = [fit_of_seed(0, first_set=1)] if n_cells > len(seeds) else []
    first = join_cells([found, *run_fits(controls)])
    others = run_fits(map(fit_of_seed, range(1, len(seeds))))
    return join_seeds([first, *others])
