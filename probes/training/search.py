"""The choice of hyperparameters, strengths and step sizes, by dev loss.

The choice of a layer does not depend on which others are fitted together with it.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from probes.records.probe_spec import ProbeSpec
from probes.training.family import Parameters
from probes.training.fitted import FittedProbes, best_cell, keep_better
from probes.training.trainer import Schedule, Trainer

_MOVES = 2
"""How often the step size of a probe that is not convex is doubled, or halved, at most."""

_WIDTH = 384
"""The number of features up to which a convex probe's step size is never too large."""


def search_convex(trainer: Trainer, start: Parameters) -> tuple[FittedProbes, Tensor, Tensor]:
    """Short fits of a convex probe, one for each strength; for wide features, at smaller steps too.

    A step of Adam moves an output in proportion to the number of features. So step sizes are halved
    for as long as a layer's least dev loss falls, until a step moves outputs as it would with
    `_WIDTH` features.

    Args:
        start: of one cell. Leading dimensions (L, 1).

    Returns:
        the best of them, leading dimensions (L, 1); the strength at the minimum of a parabola
        through it and its neighbours, shape (L,); its step size, float64 (L,).
    """
    spec, device = trainer.spec, trainer.train.features.device
    grid = torch.tensor(sorted(spec.strengths), device=device)
    steps, schedule = trainer.steps(spec.step), Schedule(share=spec.search)
    found = trainer.run(start, grid.expand(len(steps), -1), steps, schedule)
    best, likely = best_cell(found), parabola_minimum(grid, found.dev_loss)
    improving = torch.arange(len(steps), device=device)
    for _ in range(math.ceil(math.log2(max(1, start[0].shape[-1] / _WIDTH)))):
        at = improving.cpu()
        here = trainer.of_layers(at.tolist())
        cells = grid.expand(len(at), -1)
        found = here.run([p[at] for p in start], cells, steps[at] / 2, schedule)
        improved = best_cell(found).dev_loss[:, 0] < best.dev_loss[improving, 0]
        best = keep_better(best, improving, best_cell(found))
        improving = improving[improved]
        if not len(improving):
            break
        likely[improving] = parabola_minimum(grid, found.dev_loss)[improved]
        steps[improving.cpu()] /= 2
    return best, likely, steps


def parabola_minimum(grid: Tensor, losses: Tensor) -> Tensor:
    """The strength at the minimum of a parabola through the least loss and its neighbours.

    Args:
        grid: strengths, each the same multiple of the one before. Shape (K,).
        losses: shape (L, K).

    Returns:
        within the range of the three points; shape (L,). Of fewer than three, the best.
    """
    if len(grid) < 3:
        return grid[losses.argmin(1)]
    middle = losses.argmin(1, keepdim=True).clamp(1, len(grid) - 2)
    low, mid, high = (losses.gather(1, middle + i) for i in (-1, 0, 1))
    bend = low - 2 * mid + high
    vertex = 0.5 * (low - high) / bend.clamp_min(1e-12)
    # If it does not bend upwards, the better end.
    end = torch.where(low < high, -1.0, 1.0)
    offset = torch.where(bend > 0, vertex, end).clamp(-1, 1)
    ratio = grid[1] / grid[0]
    return (grid[middle] * ratio**offset).squeeze(1)


def search_full_fits(trainer: Trainer, start: Parameters, order: int) -> FittedProbes:
    """The best of full fits of one cell that differ in strength and step size.

    Strengths are tried from the weakest up for as long as the dev loss falls, then steps twice as
    large, then steps half as large where larger ones did not help. Up to noise, the dev loss has
    one minimum along strengths and one along step sizes.

    Args:
        start: of one cell. Leading dimensions (L, 1).
        order: seed of the order of batches.

    Returns:
        leading dimensions (L, 1).
    """
    search = _LineSearch(trainer, start, order)
    for strength in search.strengths[2:]:
        search.refit(strength=strength)
    for factor in (2.0, 0.5):
        search.select_unmoved()
        for _ in range(_MOVES):
            search.refit(factor=factor)
    return search.best


class _LineSearch:
    """Full fits along strengths and along step sizes, of which each layer keeps the best.

    Args: see `search_full_fits`.

    Attributes:
        strengths: in ascending order; the first two are fitted together, which is faster.
        best: of each layer. Leading dimensions (L, 1).
    """

    def __init__(self, trainer: Trainer, start: Parameters, order: int) -> None:
        self._trainer, self._start, self._order = trainer, start, order
        spec, device = trainer.spec, trainer.train.features.device
        self.strengths = torch.tensor(sorted(spec.strengths), device=device)
        first = self.strengths[:2]
        strengths = first.expand(len(start[0]), -1)
        found = trainer.run(start, strengths, trainer.steps(spec.step), full_schedule(spec), order)
        self.best = best_cell(found)
        self._improving = (self.best.strength[:, 0] == first[-1]).nonzero().flatten()

    def select_unmoved(self) -> None:
        """Continue with the layers whose best step size is still the initial one."""
        first = self._trainer.steps(self._trainer.spec.step).to(self.best.step)
        self._improving = (self.best.step[:, 0] == first).nonzero().flatten()

    def refit(self, *, strength: Tensor | None = None, factor: float = 1.0) -> None:
        """Fit the layers that the last move improved, at another strength or step size."""
        if not len(self._improving):
            return
        old, spec = self.best, self._trainer.spec
        strengths = old.strength[self._improving]
        if strength is not None:
            strengths = strength.expand_as(strengths)
        steps = factor * old.step[self._improving, 0].cpu().double()
        start = [p[self._improving.to(p.device)] for p in self._start]
        trainer = self._trainer.of_layers(self._improving.tolist())
        found = trainer.run(start, strengths, steps, full_schedule(spec), self._order)
        self.best = keep_better(old, self._improving, found)
        improved = (self.best.dev_loss < old.dev_loss)[:, 0]
        self._improving = improved.nonzero().flatten()


def full_schedule(spec: ProbeSpec) -> Schedule:
    """The schedule of a full fit that is not convex: the best of several checks is kept."""
    return Schedule(checks=spec.checks)
