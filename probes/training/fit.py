"""Fits all cells of a task at once, and predicts with them.

A cell is one probe: a label set fitted in one draw of what training takes from chance. Bootstrap
samples are expressed as example weights, so that all cells read the same features. The L2 strength
is a prior, the same for all cells (`ProbeSpec.l2`); test is never read.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from probes.records.probe_spec import ProbeSpec
from probes.training.batches import Batches, blocks, convex_batch, rebatched, resampled
from probes.training.families import family_of
from probes.training.features import Features
from probes.training.fitted import FittedProbes, in_order
from probes.training.losses import loss_for
from probes.training.ridge import ridge
from probes.training.trainer import MinibatchFit, Trainer, run_fits


class Draw(NamedTuple):
    """What a probe's training takes from chance."""

    seed: int = 0
    """Of the starting parameters and the order of batches. A convex fit depends on neither."""

    sample: int = 0
    """The bootstrap sample of training sentences; 0 is the training split, each sentence once."""


def fit(
    train: Batches, dev: Batches, n_outputs: int, spec: ProbeSpec, draws: Sequence[Draw]
) -> FittedProbes:
    """Fit K cells at every layer.

    Of several L2 strengths the best by dev loss is taken: for all cells of a layer that of the
    first one, in ridge regression for each sample that of its first cell.

    Args:
        train, dev: labels and weights of each cell, (K, N) or (1, N). The weights of train are
            multiplied by the counts of each cell's sample. In ridge regression all cells have the
            same weights.
        n_outputs: number of classes; 0 for a regression.
        draws: of each cell.

    Returns:
        the cells in the order given.
    """
    draws = [Draw(*draw) for draw in draws]
    train = resampled(train, [draw.sample for draw in draws])
    family, n_layers = family_of(spec), train.features.shape[0]
    if family.closed_form and n_outputs == 0:
        grid = torch.tensor(sorted(spec.ridge_l2), dtype=torch.float64)
        groups = cells_by(draw.sample for draw in draws)
        return ridge(train, dev, grid.expand(n_layers, -1), groups)
    size = convex_batch(len(train.sentences), spec.batch) if family.convex else spec.batch
    train = rebatched(train, size)
    trainer = Trainer(train, dev, family, loss_for(n_outputs, train.sets), spec)
    strength = _strength(trainer, n_outputs, draws[0].seed)
    if family.convex:
        start = trainer.initial([0], n_outputs)
        return trainer.run(start, strength.expand(-1, len(draws)).contiguous())
    groups = cells_by(draws)

    def fit_of(cells: list[int]) -> MinibatchFit:
        seed = draws[cells[0]].seed
        # A bootstrap sample lacks more than a third of the sentences.
        of_draw = trainer.of_cells(cells).drawn()
        start = trainer.initial([seed], n_outputs)
        return MinibatchFit(of_draw, start, strength.expand(-1, len(cells)), seed)

    return in_order(list(run_fits(map(fit_of, groups))), groups)


def cells_by(keys: Iterable[Hashable]) -> list[list[int]]:
    """The cells of each key, in the order in which keys first occur."""
    found: dict[Hashable, list[int]] = {}
    for cell, key in enumerate(keys):
        found.setdefault(key, []).append(cell)
    return list(found.values())


def _strength(trainer: Trainer, n_outputs: int, seed: int) -> Tensor:
    """The L2 strength of each layer. Shape (L, 1)."""
    n_layers, n_examples, _ = trainer.train.features.shape
    device = trainer.train.features.device
    grid = torch.tensor(sorted(trainer.spec.l2), device=device) / n_examples
    if len(grid) == 1:
        return grid.expand(n_layers, 1)
    first = trainer.of_cells(slice(0, 1))
    found = first.run(trainer.initial([seed], n_outputs), grid.expand(n_layers, -1), seed)
    return grid[found.dev_loss.argmin(1, keepdim=True)]


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
