"""Fits all cells of a task at once, and predicts with them.

A cell is one probe: one set of labels, one seed, one bootstrap sample. Samples are expressed as
example weights, so that all cells read the same features. The L2 strength is a prior and the same
for all cells (`ProbeSpec.l2`). The test split is never read.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from probes.records.probe_spec import PROBES, ProbeSpec
from probes.training.bags import Bags
from probes.training.batches import (
    Batches,
    batch_bounds,
    bootstrap_batches,
    evaluation_parts,
    rebatched,
    token_batches,
)
from probes.training.convex import Start, convex_steps, fit_convex, tolerance
from probes.training.families import family_of, is_seeded
from probes.training.family import FittedProbes, Parameters
from probes.training.features import Features
from probes.training.fitted import joined_probes
from probes.training.full_batch import ridge
from probes.training.losses import log_loss, loss_for
from probes.training.trainer import MinibatchFit, Trainer, run_fits, scheduled_steps


class FitSeed(NamedTuple):
    """Random choices in the training of a probe."""

    seed: int = 0
    """Seed of the starting parameters and the order of batches; a convex fit needs neither."""

    sample: int = 0
    """Number of the bootstrap sample of the training split; 0 is the split itself."""


def fit(
    train: Batches,
    dev: Batches,
    n_outputs: int,
    spec: ProbeSpec,
    seeds: Sequence[FitSeed],
    strengths: Tensor | None = None,
    start: Parameters | None = None,
) -> FittedProbes:
    """Fit K cells at every layer.

    Ridge regression chooses among several L2 strengths by dev loss. Cells with the same weights
    share the strength chosen for the first of them.

    Args:
        train, dev: labels and weights of each cell, (K, N) or (1, N). The weights of train are
            multiplied by the counts of each cell's sample.
        n_outputs: number of classes; 0 for a regression.
        seeds: the draw of each cell.
        strengths: L2 strength of each layer (L,), so that a ridge regression does not choose.
        start: parameters near which convex classifiers have their optimum, fitted to the same
            examples without draws; leading dimensions (L, 1). Other fits ignore them.

    Returns:
        the cells in the given order.
    """
    seeds, n_examples = [FitSeed(*seed) for seed in seeds], train.features.shape[1]
    family, n_layers = family_of(spec), train.features.shape[0]
    if family.convex and isinstance(train.features, Bags):
        train = token_batches(train)
    weights_of_examples = train.weights[:1]
    train = bootstrap_batches(train, [seed.sample for seed in seeds])
    if family.closed_form and n_outputs == 0:
        grid = torch.tensor(sorted(spec.ridge_l2), dtype=torch.float64).expand(n_layers, -1)
        if strengths is not None:
            grid = strengths.double().cpu()[:, None]
        weights = train.weights.expand(len(seeds), -1).cpu().numpy()
        return ridge(train, dev, family, grid, cells_by(row.tobytes() for row in weights))
    if (solved := family.solved(train, dev, n_outputs, spec)) is not None:
        return solved
    train = rebatched(train, spec.batch)
    trainer = Trainer(train, dev, family, loss_for(n_outputs, train.sets), spec)
    prior = torch.tensor(spec.l2, device=train.features.device) / n_examples
    if family.convex:
        strength = prior.expand(n_layers, len(seeds)).contiguous()
        tolerances = [tolerance(len(train.sentences), seed.sample) for seed in seeds]
        near = None if start is None else Start(start, weights_of_examples)
        return fit_convex(trainer, n_outputs, strength, torch.tensor(tolerances), near)
    groups = cells_by(seeds)

    def fit_of(cells: list[int]) -> MinibatchFit:
        seed = seeds[cells[0]].seed
        # Skip unused examples: a bootstrap sample lacks more than a third of the sentences.
        of_draw = trainer.of_cells(cells)
        of_draw = of_draw.with_train(of_draw.train.without_unused())
        start = trainer.initial([seed], n_outputs)
        return MinibatchFit(of_draw, start, prior.expand(n_layers, len(cells)), seed)

    return joined_probes(list(run_fits(map(fit_of, groups))), groups)


def cells_by(keys: Iterable[Hashable]) -> list[list[int]]:
    """Group cells by key, in the order in which keys first occur."""
    groups: dict[Hashable, list[int]] = {}
    for cell, key in enumerate(keys):
        groups.setdefault(key, []).append(cell)
    return list(groups.values())


def predict(
    fitted: FittedProbes,
    features: Features,
    n_outputs: int,
    spec: ProbeSpec,
    sets: Tensor | None = None,
    *,
    as_margins: bool = False,
) -> Tensor:
    """Predictions of the fitted cells.

    Args:
        sets: the label sets of a multi-label task; see `probes.training.batches.Batches`.
        as_margins: whether two classes are told apart by margins, the logit of the second class
            minus that of the first.

    Returns:
        class indices, margins or numbers (L, K, N); bits of label sets (L, K, N, bytes).
    """
    family, loss = family_of(spec), loss_for(n_outputs, sets)
    parts = []
    for part in evaluation_parts(features):
        outputs = family.checked_outputs(fitted.parameters, features.block(part))
        parts.append(outputs.diff(dim=2)[:, :, 0] if as_margins else loss.decide(outputs))
    return torch.cat(parts, 2)


def first_margins(fitted: FittedProbes, features: Features, spec: ProbeSpec) -> Tensor:
    """Margins of two classes, from each layer's first cell. Shape (L, N)."""
    first = replace(fitted, parameters=[parameter[:, :1] for parameter in fitted.parameters])
    return predict(first, features, 2, spec, as_margins=True)[:, 0]


def log_probabilities(fitted: FittedProbes, data: Batches, spec: ProbeSpec) -> Tensor:
    """Natural log-probability of each example's label under the fitted cells. Shape (L, K, N).

    For a label set, the sum over all labels, each a decision between two outcomes.

    Args:
        data: labels of shape (K, N) or (1, N), of a classification or multi-label task.
    """
    family, loss = family_of(spec), log_loss(data.sets)
    parts = []
    for part in evaluation_parts(data.features):
        outputs = family.checked_outputs(fitted.parameters, data.features.block(part))
        parts.append(loss.log_probabilities(outputs, data.labels[:, part]).sum(2))
    return torch.cat(parts, 2)


def fit_steps(
    spec: ProbeSpec,
    sentences: Tensor,
    n_outputs: int,
    seeds: Sequence[FitSeed],
    in_training: NDArray[np.bool_] | None = None,
) -> int:
    """Number of steps of `fit`, for progress bars.

    If groups of layers are trained in turn (`probes.training.memory_plan.group_layers`), each
    group takes this many steps.

    Args:
        sentences: the sentence of each training example, equal ones adjacent. Shape (N,).
        n_outputs: number of classes; 0 for a regression.
        in_training: True for the training examples in the fit of each draw (K, N); by default all.
    """
    family = family_of(spec)
    if family.closed_form and n_outputs == 0:
        rows = [b""] * len(seeds) if in_training is None else [row.tobytes() for row in in_training]
        return len({(seed.sample, row) for seed, row in zip(seeds, rows, strict=True)})
    n_batches = len(batch_bounds(sentences, spec.batch)) - 1
    if family.convex:
        return convex_steps(spec, n_batches)
    # Solved from class means: sparse probes cell by cell, mean differences at once.
    if not is_seeded(spec):
        return len(seeds) * convex_steps(PROBES["linear"], n_batches)
    return len(set(seeds)) * scheduled_steps(spec, n_batches)
