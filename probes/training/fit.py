"""Fits all cells of a task at once.

A cell is one probe: (layer, label set, seed), in the order that `cells` states. Seed 0 trains on
the training set as it is; every other seed on a bootstrap sample of its sentences, as example
weights, so that all cells read the same features. Strength, step and stopping point are chosen
on dev (probes/training/search.py); test is not seen. A cell with control labels is the probe of
its layer and seed again: of the same strength, step, sample and initialisation.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from probes.compute.allocator import kept_memory
from probes.records.probe_spec import ProbeSpec
from probes.training.batches import Batches, blocks, bootstrap_weights
from probes.training.families import head_of
from probes.training.family import Head, Parameters
from probes.training.features import Features
from probes.training.fits import Fit, of_seeds, side_by_side
from probes.training.losses import BinaryCrossEntropy, CrossEntropy, LogLoss, Loss, SquaredError
from probes.training.ridge import ridge
from probes.training.search import best_fit, likely_strengths, whole
from probes.training.trainer import Course, Schedule, Trainer, run_together


@kept_memory()
def fit(train: Batches, dev: Batches, n_outputs: int, spec: ProbeSpec, seeds: list[int]) -> Fit:
    """Fit all cells, strength, step and stopping point chosen on dev loss.

    Strength and step are those that suit the first cell; in a regression with a linear probe, each
    seed's real labels.

    Args:
        train, dev: labels and weights of shape (K, N), K a multiple of the number of seeds. The
            weights of train are multiplied by each seed's bootstrap counts.
        n_outputs: number of classes; 0 for regression.
    """
    device = train.features.device
    counts = torch.stack([bootstrap_weights(train.sentences.cpu(), seed) for seed in seeds])
    n_sets = len(train.labels) // len(seeds)
    train = replace(train, weights=counts.to(device).repeat(n_sets, 1) * train.weights)
    if spec.family == "linear" and n_outputs == 0:
        every = sorted({a * b for a in spec.strengths for b in spec.refinement})
        closed_form = torch.tensor(every, dtype=torch.float64).expand(train.features.shape[0], -1)
        return ridge(train, dev, closed_form, len(seeds))
    if spec.family == "linear":
        return _convex(train, dev, n_outputs, spec, seeds)
    return _by_whole_fits(train, dev, n_outputs, spec, seeds)


def _convex(train: Batches, dev: Batches, n_outputs: int, spec: ProbeSpec, seeds: list[int]) -> Fit:
    """Every real cell's fit goes on from the best of the search."""
    trainer = _trainer(train, dev, n_outputs, spec)
    n_layers, _, n_features = train.features.shape
    start = trainer.head.initial(n_layers, seeds[:1], n_features, n_outputs)
    best, likely, steps = likely_strengths(trainer.of_cells(slice(0, 1)), start)
    start = trainer.head.initial(n_layers, seeds[:1] * len(train.labels), n_features, n_outputs)
    for all_cells, found in zip(start, best.parameters, strict=True):
        all_cells[:, : len(seeds)] = found
    strengths = likely[:, None].expand(-1, len(train.labels)).contiguous()
    return _from_near_the_end(trainer, start, strengths, steps)


def _by_whole_fits(
    train: Batches, dev: Batches, n_outputs: int, spec: ProbeSpec, seeds: list[int]
) -> Fit:
    """The search's fit, and all other cells with its strengths and steps."""
    every = _trainer(train, dev, n_outputs, spec)
    n_layers, _, n_features = train.features.shape

    def start(seed: int) -> Parameters:
        return every.head.initial(n_layers, [seed], n_features, max(1, n_outputs))

    found = best_fit(every.of_cells(slice(0, 1)), start(seeds[0]), order=seeds[0])
    steps = found.step[:, 0].cpu().double()

    def course(place: int, after: int = 0) -> Course:
        cells = slice(place, None, len(seeds))
        # A bootstrap sample lacks more than a third of the sentences.
        trainer = every.of_cells(cells).of_cells(slice(after, None)).drawn()
        strengths = found.strength.expand(-1, len(trainer.train.labels))
        # Where an MLP ends depends on the order of its batches too: each seed has its own.
        return Course(trainer, start(seeds[place]), strengths, steps, whole(spec), seeds[place])

    control = [course(0, after=1)] if len(train.labels) > len(seeds) else []
    first = side_by_side([found, *run_together(control)])
    others = run_together(map(course, range(1, len(seeds))))
    return of_seeds([first, *others])


@kept_memory()
def fit_at(
    train: Batches,
    dev: Batches,
    n_outputs: int,
    spec: ProbeSpec,
    strengths: Tensor,
    steps: Tensor,
    near: Parameters,
) -> Fit:
    """Fit one cell per layer, seed 0's, at given strengths; the stopping point is dev's choice.

    Args:
        near: parameters near the end, from which a convex fit starts. Leading dimensions (L, 1).
        train, dev: labels and weights of shape (1, N).
        n_outputs: number of classes; 0 for regression.
        strengths: shape (L, 1).
        steps: chosen on dev, float64. Shape (L,).
    """
    if spec.family == "linear" and n_outputs == 0:
        return ridge(train, dev, strengths.cpu().double(), 1)
    trainer = _trainer(train, dev, n_outputs, spec)
    if spec.family == "linear":
        return _from_near_the_end(trainer, near, strengths, steps)
    n_layers, _, n_features = train.features.shape
    start = trainer.head.initial(n_layers, [0], n_features, max(1, n_outputs))
    return trainer.run(start, strengths, steps, whole(spec))


def _trainer(train: Batches, dev: Batches, n_outputs: int, spec: ProbeSpec) -> Trainer:
    return Trainer(train, dev, *family(spec, n_outputs, train.sets), spec)


def _from_near_the_end(
    trainer: Trainer, start: Parameters, strengths: Tensor, steps: Tensor
) -> Fit:
    """A convex fit that goes on from its search, by steps that do not leave the end again."""
    found = trainer.run(start, strengths, 0.75 * steps, Schedule(join=2))
    return replace(found, step=steps.to(found.step)[:, None].expand_as(found.step))


def family(spec: ProbeSpec, n_outputs: int, sets: Tensor | None) -> tuple[Head, Loss]:
    """The formula of a probe, and its loss; regression has 0 outputs.

    Args:
        sets: see `probes.training.batches.Batches`.
    """
    return head_of(spec), log_loss(sets) if n_outputs else SquaredError()


def log_loss(sets: Tensor | None) -> LogLoss:
    """The loss of a classification, or of a multi-label task with these label sets."""
    return CrossEntropy() if sets is None else BinaryCrossEntropy(sets)


@kept_memory()
def predict(
    fitted: Fit, features: Features, n_outputs: int, spec: ProbeSpec, sets: Tensor | None = None
) -> Tensor:
    """What the fitted cells say: class indices, or numbers (L, K, N), or bits (L, K, N, bytes).

    Args:
        sets: see `probes.training.batches.Batches`.
    """
    head, loss = family(spec, n_outputs, sets)
    parts = []
    for part in blocks(features.shape[1]):
        outputs = head.float_outputs(fitted.parameters, features.block(part))
        parts.append(loss.decide(outputs))
    return torch.cat(parts, 2)
