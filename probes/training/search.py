"""Hyperparameters chosen on dev: strengths and steps.

No layer's choice depends on which others are fitted beside it.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from probes.records.probe_spec import ProbeSpec
from probes.training.family import Parameters
from probes.training.fits import Fit, best_of, with_better
from probes.training.trainer import Schedule, Trainer

_MOVES = 2
"""How often the step of a probe that is not convex is doubled at most, and how often halved."""

_WIDTH = 384
"""Features for which the steps of convex probes are large enough, and never too large."""


def likely_strengths(trainer: Trainer, start: Parameters) -> tuple[Fit, Tensor, Tensor]:
    """Short fits of a convex probe, one for each strength; of many features, at smaller steps too.

    One of Adam's steps moves an output in proportion to the number of features. So steps are
    halved for as long as a layer's least dev loss falls, at most until that proportion is that of
    `_WIDTH` features.

    Args:
        start: of one cell. Leading dimensions (L, 1).

    Returns:
        the best of them, leading dimensions (L, 1); the strength at which a parabola through it
        and its neighbours is least, shape (L,); its step, float64 (L,).
    """
    spec, device = trainer.spec, trainer.train.features.device
    grid = torch.tensor(sorted(spec.strengths), device=device)
    steps, schedule = trainer.steps(spec.step), Schedule(share=spec.search)
    found = trainer.run(start, grid.expand(len(steps), -1), steps, schedule)
    best, likely = best_of(found), between(grid, found.dev_loss)
    moving = torch.arange(len(steps), device=device)
    for _ in range(math.ceil(math.log2(max(1, start[0].shape[-1] / _WIDTH)))):
        at = moving.cpu()
        here = trainer.of_layers(at.tolist())
        cells = grid.expand(len(at), -1)
        found = here.run([p[at] for p in start], cells, steps[at] / 2, schedule)
        fell = best_of(found).dev_loss[:, 0] < best.dev_loss[moving, 0]
        best = with_better(best, moving, best_of(found))
        moving = moving[fell]
        if not len(moving):
            break
        likely[moving] = between(grid, found.dev_loss)[fell]
        steps[moving.cpu()] /= 2
    return best, likely, steps


def between(grid: Tensor, losses: Tensor) -> Tensor:
    """The strength at which a parabola through the least loss and its neighbours is least.

    Args:
        grid: three or more strengths, each the same multiple of the one before. Shape (K,).
        losses: shape (L, K).

    Returns:
        within the range of the three points; shape (L,).
    """
    middle = losses.argmin(1, keepdim=True).clamp(1, len(grid) - 2)
    low, mid, high = (losses.gather(1, middle + i) for i in (-1, 0, 1))
    bend = low - 2 * mid + high
    vertex = 0.5 * (low - high) / bend.clamp_min(1e-12)
    # Without a bend upwards, the better end.
    end = torch.where(low < high, -1.0, 1.0)
    offset = torch.where(bend > 0, vertex, end).clamp(-1, 1)
    ratio = grid[1] / grid[0]
    return (grid[middle] * ratio**offset).squeeze(1)


def best_fit(trainer: Trainer, start: Parameters, order: int) -> Fit:
    """The best of whole fits of one cell, which differ in strength and step.

    Strengths are tried from the weakest up for as long as dev loss falls, then steps twice as
    large, then steps half as large where those did not help. Dev loss has one valley along
    strengths and along steps, up to chance.

    Args:
        start: of one cell. Leading dimensions (L, 1).
        order: seed of the order of batches.

    Returns:
        leading dimensions (L, 1).
    """
    walk = _Walk(trainer, start, order)
    for strength in walk.strengths[2:]:
        walk.go_on(strength=strength)
    for factor in (2.0, 0.5):
        walk.turn()
        for _ in range(_MOVES):
            walk.go_on(factor=factor)
    return walk.best


class _Walk:
    """Whole fits, of which each layer keeps its best.

    Args: see `best_fit`.

    Attributes:
        strengths: in ascending order; the first two are tried at once, which is faster.
        best: of each layer. Leading dimensions (L, 1).
    """

    def __init__(self, trainer: Trainer, start: Parameters, order: int) -> None:
        self._trainer, self._start, self._order = trainer, start, order
        spec, device = trainer.spec, trainer.train.features.device
        self.strengths = torch.tensor(sorted(spec.strengths), device=device)
        first = self.strengths[:2]
        strengths = first.expand(len(start[0]), -1)
        found = trainer.run(start, strengths, trainer.steps(spec.step), whole(spec), order)
        self.best = best_of(found)
        self._moving = (self.best.strength[:, 0] == first[-1]).nonzero().flatten()

    def turn(self) -> None:
        """Let those layers go on whose step is still the first one."""
        first = self._trainer.steps(self._trainer.spec.step).to(self.best.step)
        self._moving = (self.best.step[:, 0] == first).nonzero().flatten()

    def go_on(self, *, strength: Tensor | None = None, factor: float = 1.0) -> None:
        """Fit the layers that the last move made better at another strength or step."""
        if not len(self._moving):
            return
        old, spec = self.best, self._trainer.spec
        strengths = old.strength[self._moving]
        if strength is not None:
            strengths = strength.expand_as(strengths)
        steps = factor * old.step[self._moving, 0].cpu().double()
        start = [p[self._moving.to(p.device)] for p in self._start]
        trainer = self._trainer.of_layers(self._moving.tolist())
        found = trainer.run(start, strengths, steps, whole(spec), self._order)
        self.best = with_better(old, self._moving, found)
        fell = (self.best.dev_loss < old.dev_loss)[:, 0]
        self._moving = fell.nonzero().flatten()


def whole(spec: ProbeSpec) -> Schedule:
    """For a fit that is not convex: the best parameters along the way are kept."""
    return Schedule(checks=spec.checks)
