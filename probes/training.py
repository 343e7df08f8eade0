"""Fits all cells of a task at once.

A cell is one probe: (layer, seed, strength). Seed 0 trains on the training set as it is; every
other seed on a bootstrap sample of its sentences, as example weights, so that all cells
read the same features. Strength and stopping point are chosen on dev; test is not seen.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from itertools import islice

import torch
from torch import Tensor

from probes.allocator import kept_memory
from probes.cells import Batches, Fit, best_per_seed, blocks, bootstrap_weights, mean_loss
from probes.config import ProbeSpec
from probes.features import Features
from probes.heads import MLP, CrossEntropy, Head, Linear, Loss, Parameters, SquaredError
from probes.precision import fast_products
from probes.ridge import ridge

BETAS = (0.9, 0.99)


@kept_memory()
def fit(train: Batches, dev: Batches, n_outputs: int, spec: ProbeSpec, seeds: list[int]) -> Fit:
    """Fit one cell per layer and seed, strength and stopping point chosen on dev loss.

    Args:
        n_outputs: number of classes; 0 for regression.
    """
    device = train.features.device
    sample = torch.stack([bootstrap_weights(train.sentences.cpu(), seed) for seed in seeds])
    weights = sample.to(device) * train.weights
    n_layers, _, n_features = train.features.shape
    if spec.family == "linear" and n_outputs == 0:
        return ridge(train, dev, _closed_form_grid(spec).expand(n_layers, -1), weights)
    head, loss = family(spec, n_outputs)
    trainer = _Trainer(train, dev, head, loss, max(1, n_outputs), spec)
    grid = torch.tensor(spec.strengths, device=device)
    start = head.initial(n_layers, seeds[:1] * len(grid), n_features, trainer.n_outputs)
    search = trainer.run(start, grid.expand(n_layers, -1), weights[:1], spec.search, checks=1)
    coarse = best_per_seed(search, 1, len(grid))
    start = head.initial(n_layers, seeds, n_features, trainer.n_outputs)
    strength = coarse.strength
    if spec.family == "linear":
        strength = _between(grid, search.dev_loss)[:, None]
        # The problem is convex: where a fit starts from decides only how soon it is done.
        start = [p.expand(-1, len(seeds), *p.shape[2:]) for p in coarse.parameters]
    strengths = strength.expand(-1, len(seeds)).contiguous()
    return trainer.run(start, strengths, weights, 1.0, checks=spec.checks)


@kept_memory()
def fit_at(train: Batches, dev: Batches, n_outputs: int, spec: ProbeSpec, strengths: Tensor) -> Fit:
    """Fit seed 0's cell of every layer at a strength that is given.

    Args:
        strengths: shape (L, 1).
    """
    weights = train.weights[None]
    if spec.family == "linear" and n_outputs == 0:
        return ridge(train, dev, strengths.double(), weights)
    head, loss = family(spec, n_outputs)
    trainer = _Trainer(train, dev, head, loss, max(1, n_outputs), spec)
    n_layers, _, n_features = train.features.shape
    start = head.initial(n_layers, [0], n_features, trainer.n_outputs)
    return trainer.run(start, strengths, weights, 1.0, checks=spec.checks)


def family(spec: ProbeSpec, n_outputs: int) -> tuple[Head, Loss]:
    """The formula of a probe, and its loss; regression has 0 outputs."""
    head: Head = Linear() if spec.family == "linear" else MLP(spec.hidden)
    loss: Loss = CrossEntropy() if n_outputs else SquaredError()
    return head, loss


def _closed_form_grid(spec: ProbeSpec) -> Tensor:
    every = sorted({a * b for a in spec.strengths for b in spec.refinement})
    return torch.tensor(every, dtype=torch.float64)


def _between(grid: Tensor, losses: Tensor) -> Tensor:
    """The strength at which a parabola through the least loss and its neighbours is least.

    Args:
        grid: strengths, each the same multiple of the one before, three or more. Shape (G,).
        losses: shape (L, G).

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


class _Trainer:
    """Minibatch Adam, its step falling to 0 quadratically, all cells side by side."""

    def __init__(
        self, train: Batches, dev: Batches, head: Head, loss: Loss, n_outputs: int, spec: ProbeSpec
    ) -> None:
        self.train, self.dev, self.head, self.loss = train, dev, head, loss
        self.n_outputs, self.spec = n_outputs, spec

    def run(
        self, start: Parameters, strengths: Tensor, weights: Tensor, share: float, checks: int
    ) -> Fit:
        """One schedule, `share` of full length, for cells (layer, k).

        Of each cell the parameters with the least dev loss are returned.

        Args:
            start: starting parameters. Leading dimensions (L, K).
            strengths: shape (L, K).
            weights: shape (K, N) or (1, N).
            checks: how often the dev loss is looked at, the last time at the end.
        """
        device = self.train.features.device
        parameters = [p.to(device, copy=True).contiguous() for p in start]
        adam = torch.optim.Adam(parameters, betas=BETAS, fused=True)
        n_batches = len(self.train.bounds) - 1
        # By the mean batch, not by this one: examples of a small batch weigh no more.
        weights = weights / (weights.sum(1, keepdim=True) / n_batches)
        penalty = strengths[:, :, None, None]
        n_steps = math.ceil(share * max(self.spec.passes * n_batches, self.spec.min_steps))
        check_at = {math.ceil(n_steps * i / checks) for i in range(1, checks + 1)}
        best = Fit(
            [p.clone() for p in parameters],
            strengths,
            torch.zeros_like(strengths),
            torch.full_like(strengths, math.inf),
        )
        for step, (part, meant) in enumerate(islice(shuffled_batches(self.train), n_steps), 1):
            x = self.train.features.block(part)
            here = weights[:, part] * meant
            errors = partial(self.loss.errors, labels=self.train.labels[part], weights=here)
            with fast_products():
                gradients = self.head.gradient(parameters, x, errors)
            for index, gradient in enumerate(gradients):
                parameter = parameters[index]
                if index % 2 == 0:
                    gradient.addcmul_(parameter, penalty)
                parameter.grad = gradient
            size = self.spec.step * (1 - step / n_steps) ** 2
            adam.param_groups[0]["lr"] = size
            adam.step()
            if step in check_at:
                best = self._keep_best(best, parameters, strengths, step / n_steps)
        return best

    def _keep_best(self, best: Fit, parameters: Parameters, strengths: Tensor, at: float) -> Fit:
        dev_loss = mean_loss(self.head, self.loss, parameters, self.dev)
        better = dev_loss < best.dev_loss
        kept = [
            torch.where(better.view(*better.shape, *[1] * (p.dim() - 2)), p, old)
            for p, old in zip(parameters, best.parameters, strict=True)
        ]
        return Fit(
            kept,
            strengths,
            torch.where(better, at, best.stopped),
            torch.where(better, dev_loss, best.dev_loss),
        )


def shuffled_batches(train: Batches) -> Iterator[tuple[slice, Tensor]]:
    """Batches without end, shuffled anew for each pass.

    All are read as wide as the widest, since products are compiled for each shape anew.

    Yields:
        which examples to read, and which of those are meant (n,).
    """
    bounds = torch.tensor(train.bounds)
    width = int(bounds.diff().max())
    starts = bounds[:-1].clamp_max(int(bounds[-1]) - width)
    places = starts[:, None] + torch.arange(width)
    meant = (places >= bounds[:-1, None]) & (places < bounds[1:, None])
    parts = [slice(start, start + width) for start in starts.tolist()]
    meant = meant.to(train.features.device)
    generator = torch.Generator().manual_seed(0)
    while True:
        for batch in torch.randperm(len(parts), generator=generator).tolist():
            yield parts[batch], meant[batch]


@kept_memory()
def predict(fitted: Fit, features: Features, n_outputs: int, spec: ProbeSpec) -> Tensor:
    """Class indices, or numbers, that the fitted cells give. Shape (L, S, N)."""
    head, _ = family(spec, n_outputs)
    parts = []
    for part in blocks(features.shape[1]):
        outputs = head.outputs(fitted.parameters, features.block(part))
        parts.append(outputs.argmax(2) if n_outputs else outputs.squeeze(2))
    return torch.cat(parts, -1)
