"""Fits all cells of a task at once.

A cell is one probe: (layer, seed, strength). Seed 0 trains on the training set as it is; every
other seed on a bootstrap sample of its sentences, as example weights, so that all cells
read the same features. Strength and stopping point are chosen on dev; test is not seen.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice

import torch
from torch import Tensor

from probes.config import ProbeSpec
from probes.features import Features
from probes.heads import MLP, CrossEntropy, Head, Linear, Loss, Parameters, SquaredError
from probes.precision import fast_products

BATCH = 512
"""Examples per step, give or take a sentence."""

_BETAS = (0.9, 0.99)
EVALUATION = 1024
"""Examples per block of an evaluation: small, since fresh memory costs more than a call."""


@dataclass(frozen=True)
class Batches:
    """Examples of one split, features standardised, in an order of whole sentences.

    Attributes:
        features: of L layers, N examples.
        labels: class indices, or numbers. Shape (N,).
        weights: class weights; ones if the task has none. Shape (N,).
        sentences: the sentence of each example. Shape (N,).
        bounds: batch b is examples `bounds[b]` to `bounds[b + 1]`; it holds whole sentences.
    """

    features: Features
    labels: Tensor
    weights: Tensor
    sentences: Tensor
    bounds: list[int]


@dataclass(frozen=True)
class Fit:
    """Fitted cells, one per layer and seed.

    Attributes:
        parameters: leading dimensions (L, S).
        strength: the one chosen on dev. Shape (L, S).
        stopped: share of the schedule after which dev loss was least; 1 is the end. (L, S).
        dev_loss: mean loss on dev in nats (classification), or half the squared error. (L, S).
    """

    parameters: Parameters
    strength: Tensor
    stopped: Tensor
    dev_loss: Tensor


def group_layers(
    memory: int,
    device: torch.device,
    spec: ProbeSpec,
    n_features: int,
    n_examples: int,
    n_outputs: int,
    n_seeds: int,
) -> tuple[int, bool]:
    """How many layers to fit at once within `memory` bytes, and whether to hold their features.

    On a CPU features are always read from the map as they are needed, since that costs little;
    on another device they are held if those of one layer leave room for its fit.
    """
    cells = max(len(spec.strengths), n_seeds * len(spec.refinement))
    outputs = max(1, n_outputs)
    units = spec.hidden + outputs
    parameters = cells * (
        n_features * spec.hidden + units * outputs if spec.hidden else n_features * outputs
    )
    # Values, gradients, two moments, the best so far and a copy; a block being read beside the
    # last one; outputs of a batch and of an evaluation block with what is derived from them.
    working = 4 * (
        6 * parameters
        + 2 * (BATCH + EVALUATION) * n_features
        + 3 * cells * units * (BATCH + EVALUATION)
    )
    holding = 4 * n_features * n_examples
    hold = device.type != "cpu" and working + holding <= memory
    return max(1, memory // (working + hold * holding)), hold


def batch_bounds(sentences: Tensor, size: int = BATCH) -> list[int]:
    """Cut examples into batches of about `size`, near equal, that never split a sentence.

    Args:
        sentences: the sentence of each example, equal ones adjacent. Shape (N,).
    """
    n_examples = len(sentences)
    n_batches = max(1, round(n_examples / size))
    ends = [*(torch.nonzero(torch.diff(sentences)).flatten() + 1).tolist(), n_examples]
    bounds = [0]
    for end in ends:
        if end * n_batches >= len(bounds) * n_examples:
            bounds.append(end)
    return bounds


def bootstrap_weights(sentences: Tensor, seed: int) -> Tensor:
    """How often each example's sentence is drawn when sentences are drawn with replacement.

    Seed 0 draws every sentence once. Sentences are drawn in the order of their numbers, so
    the sample does not depend on how examples are laid out. Shape (N,).
    """
    if seed == 0:
        return torch.ones(len(sentences))
    numbers, place = sentences.unique(return_inverse=True)
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randint(len(numbers), (len(numbers),), generator=generator)
    return torch.bincount(drawn, minlength=len(numbers)).float()[place]


def fit(train: Batches, dev: Batches, n_outputs: int, spec: ProbeSpec, seeds: list[int]) -> Fit:
    """Fit one cell per layer and seed, strength and stopping point chosen on dev loss.

    Args:
        n_outputs: number of classes; 0 for regression.
    """
    device = train.features.device
    sample = torch.stack([bootstrap_weights(train.sentences.cpu(), seed) for seed in seeds])
    weights = sample.to(device) * train.weights
    if spec.family == "linear" and n_outputs == 0:
        return _ridge(train, dev, spec, weights)
    head: Head = Linear() if spec.family == "linear" else MLP(spec.hidden)
    loss: Loss = CrossEntropy() if n_outputs else SquaredError()
    trainer = _Trainer(train, dev, head, loss, max(1, n_outputs), spec)
    n_layers, _, n_features = train.features.shape
    grid = torch.tensor(spec.strengths, device=device)
    start = head.initial(n_layers, seeds[:1] * len(grid), n_features, trainer.n_outputs)
    search = trainer.run(start, grid.expand(n_layers, -1), weights[:1], spec.search, checks=1)
    coarse = _best_per_seed(search, 1, len(grid))
    fine = torch.tensor(spec.refinement, device=device)
    cell_seeds = [seed for seed in seeds for _ in fine]
    start = head.initial(n_layers, cell_seeds, n_features, trainer.n_outputs)
    if spec.family == "linear":
        # The problem is convex: where a fit starts from decides only how soon it is done.
        start = [p.expand(-1, len(cell_seeds), *p.shape[2:]) for p in coarse.parameters]
    strengths = (coarse.strength * fine).repeat(1, len(seeds))
    weights = weights.repeat_interleave(len(fine), 0)
    full = trainer.run(start, strengths, weights, 1.0, checks=spec.checks)
    return _best_per_seed(full, len(seeds), len(fine))


def _best_per_seed(fitted: Fit, n_seeds: int, keep: int) -> Fit:
    """Of the `keep` strengths of each seed, the one with the least dev loss."""
    n_layers = len(fitted.dev_loss)
    best = fitted.dev_loss.view(n_layers, n_seeds, keep).argmin(-1)
    cell = best + torch.arange(n_seeds, device=best.device) * keep
    layer = torch.arange(n_layers, device=best.device)[:, None]
    return Fit(
        [p[layer, cell] for p in fitted.parameters],
        fitted.strength[layer, cell],
        fitted.stopped[layer, cell],
        fitted.dev_loss[layer, cell],
    )


class _Trainer:
    """Minibatch Adam on a cosine schedule, all cells side by side."""

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
        adam = torch.optim.Adam(parameters, betas=_BETAS, fused=True)
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
        for step, (part, meant) in enumerate(islice(self._batches(), n_steps), 1):
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
            size = self.spec.step * 0.5 * (1 + math.cos(math.pi * step / n_steps))
            adam.param_groups[0]["lr"] = size
            adam.step()
            if step in check_at:
                best = self._keep_best(best, parameters, strengths, step / n_steps)
        return best

    def _batches(self) -> Iterator[tuple[slice, Tensor]]:
        """Batches without end, shuffled anew for each pass.

        All are read as wide as the widest, since products are compiled for each shape anew.

        Yields:
            which examples to read, and which of those are meant (n,).
        """
        bounds = torch.tensor(self.train.bounds)
        width = int(bounds.diff().max())
        starts = bounds[:-1].clamp_max(int(bounds[-1]) - width)
        places = starts[:, None] + torch.arange(width)
        meant = (places >= bounds[:-1, None]) & (places < bounds[1:, None])
        parts = [slice(start, start + width) for start in starts.tolist()]
        meant = meant.to(self.train.features.device)
        generator = torch.Generator().manual_seed(0)
        while True:
            for batch in torch.randperm(len(parts), generator=generator).tolist():
                yield parts[batch], meant[batch]

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


def mean_loss(head: Head, loss: Loss, parameters: Parameters, data: Batches) -> Tensor:
    """Weighted mean loss of every cell. Shape (L, K)."""
    total = torch.zeros(parameters[0].shape[:2], device=data.features.device)
    for part in _blocks(len(data.labels)):
        outputs = head.outputs(parameters, data.features.block(part))
        total += loss.total(outputs, data.labels[part], data.weights[None, part])
    return total / data.weights.sum()


def predict(fitted: Fit, features: Features, n_outputs: int, spec: ProbeSpec) -> Tensor:
    """Class indices, or numbers, that the fitted cells give. Shape (L, S, N)."""
    head: Head = Linear() if spec.family == "linear" else MLP(spec.hidden)
    parts = []
    for part in _blocks(features.shape[1]):
        outputs = head.outputs(fitted.parameters, features.block(part))
        parts.append(outputs.argmax(2) if n_outputs else outputs.squeeze(2))
    return torch.cat(parts, -1)


def _blocks(n_examples: int) -> list[slice]:
    starts = range(0, n_examples, EVALUATION)
    return [slice(start, min(start + EVALUATION, n_examples)) for start in starts]


def _ridge(train: Batches, dev: Batches, spec: ProbeSpec, weights: Tensor) -> Fit:
    """Linear regression in closed form, all strengths from one eigendecomposition.

    With weighted means taken off, w = (XᵀDX / n + strength · I)⁻¹ XᵀDy / n, where n = tr D. The
    sums over examples run on the device, the small rest on the CPU: not every device has float64.
    """
    n_layers, device = train.features.shape[0], weights.device
    every = sorted({a * b for a in spec.strengths for b in spec.refinement})
    grid = torch.tensor(every, dtype=torch.float64)
    cells = []
    for sample in weights:
        total = sample.cpu().double().sum()
        mean_x, mean_y, gram, cross = _moments(train, sample)
        gram = gram / total - mean_x[:, :, None] * mean_x[:, None]
        cross = cross / total - mean_x * mean_y
        values, vectors = torch.linalg.eigh(gram)
        rotated = (vectors.transpose(1, 2) @ cross[..., None]).squeeze(-1)
        shrunk = rotated[:, None] / (values.clamp_min(0)[:, None] + grid[:, None])
        weight = shrunk @ vectors.transpose(1, 2)
        bias = mean_y - (weight * mean_x[:, None]).sum(-1)
        parameters = [weight[:, :, None].float().to(device), bias[..., None].float().to(device)]
        dev_loss = mean_loss(Linear(), SquaredError(), parameters, dev)
        strengths = grid.float().to(device).expand(n_layers, -1)
        cells.append(
            _best_per_seed(
                Fit(parameters, strengths, torch.ones_like(strengths), dev_loss), 1, len(grid)
            )
        )
    return Fit(
        [torch.cat(parts, 1) for parts in zip(*(c.parameters for c in cells), strict=True)],
        torch.cat([c.strength for c in cells], 1),
        torch.cat([c.stopped for c in cells], 1),
        torch.cat([c.dev_loss for c in cells], 1),
    )


def _moments(train: Batches, sample: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Weighted means of x (L, H) and y, and sums of xxᵀ (L, H, H) and xy (L, H).

    In float64 on the CPU; each block is summed in float32 where the features lie.
    """
    n_layers, n_examples, n_features = train.features.shape
    size = (n_layers, n_features)
    sum_x, cross = torch.zeros(size, dtype=torch.float64), torch.zeros(size, dtype=torch.float64)
    gram = torch.zeros((*size, n_features), dtype=torch.float64)
    for part in _blocks(n_examples):
        x, weight = train.features.block(part), sample[part]
        weighted = x * weight[:, None]
        sum_x += weighted.sum(1).cpu()
        cross += (weighted * train.labels[part, None]).sum(1).cpu()
        gram += (weighted.transpose(1, 2) @ x).cpu()
    total = sample.cpu().double().sum()
    mean_y = (sample * train.labels).cpu().double().sum() / total
    return sum_x / total, mean_y, gram, cross
