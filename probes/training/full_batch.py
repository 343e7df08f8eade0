"""Fits of convex probes that read all training examples at once: L-BFGS and ridge regression.

Limited-memory BFGS (Nocedal & Wright 2006, algorithm 7.4) evaluates many problems together, each
with its own curvature and step.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from probes.common.terminal import progress
from probes.compute.memory import device_of_sums
from probes.training.batches import Batches, evaluation_slices
from probes.training.family import FittedProbes, Parameters, ProbeFamily
from probes.training.fitted import joined_probes, mean_loss
from probes.training.losses import Loss, SquaredError
from probes.training.preconditioning import (
    Precondition,
    centred,
    parameters_of,
    penalties,
    point_of,
)


def fit_full_batch(
    train: Batches,
    family: ProbeFamily,
    loss: Loss,
    start: Parameters,
    strengths: Tensor,
    precondition: Precondition,
    n_steps: int,
    tolerances: Tensor | None = None,
) -> Parameters:
    """Fit probes of a convex family by L-BFGS.

    Args:
        train: labels and weights of shape (K, N) or (1, N).
        start: starting parameters, one weight and one bias; leading dimensions (L, K).
        strengths: L2 strengths. Shape (L, K).
        n_steps, tolerances: see `minimise`.
    """
    n_cells, n_features = start[0].shape[1], start[0].shape[3]
    labels = train.labels.expand(n_cells, -1)
    weights = (train.weights / train.weights.sum(1, keepdim=True)).expand(n_cells, -1)
    # Other devices have no float64.
    exact = torch.float64 if strengths.device.type in ("cpu", "cuda") else torch.float32
    penalty = penalties(strengths, n_features)

    def evaluate(point: Tensor, cells: Tensor) -> tuple[Tensor, Tensor]:
        gradient = penalty[:, cells] * point
        value = 0.5 * (gradient * point).sum((2, 3), dtype=exact)
        parameters = parameters_of(point)
        for part in evaluation_slices(len(train.sentences)):
            of_part = labels[cells, part], weights[cells, part]

            def errors(outputs: Tensor, of_part: tuple[Tensor, Tensor] = of_part) -> Tensor:
                value.add_(loss.total(outputs, *of_part))
                return loss.errors(outputs, *of_part)

            x = train.features.kept_block(part)
            gradient += point_of(family.gradient(parameters, x, errors))
        return value, gradient

    start_point = centred(point_of(start), loss)
    return parameters_of(minimise(evaluate, start_point, precondition, n_steps, tolerances))


PAIRS = 10
"""Number of recent steps from which curvature is estimated."""

_DECREASE, _SHORTER, _SHORTEST = 1e-4, (0.1, 0.5), 1e-3
"""A step counts if the value falls by this share of what the slope promises; otherwise it is
shortened, by a factor between the second numbers, at most down to the third."""

_LEAST_LOSS = 1e-7
"""In nats. Float32 tells no smaller ones apart, as of labels that are all equal."""

_RESOLUTION = 1e-6
"""Smaller relative differences of values are rounding."""

Evaluate = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
"""From points (L, k, …) of some cells, and the indices of these (k,), to values (L, k) and
gradients (L, k, …)."""


class _Pair(NamedTuple):
    """A step and the change of the gradient. Each (L, K, …)."""

    step: Tensor
    change: Tensor
    inverse: Tensor
    """1 / (step · change); 0 for a step without information on curvature. Shape (L, K)."""


def minimise(
    evaluate: Evaluate,
    start: Tensor,
    precondition: Precondition,
    n_steps: int,
    tolerances: Tensor | None = None,
) -> Tensor:
    """Take steps from `start` until they converge, and return the points reached. (L, K, …).

    A problem has converged when two steps in a row promise to lower its value by less than
    the tolerance of its cell times the value; it then stays where it is.

    Args:
        precondition: initial estimate of the inverse Hessian times a gradient; must not be a
            thousand times too high.
        n_steps: the most steps.
        tolerances: tolerances of the cells (K,); by default all steps are taken, and shown.
    """
    point = start
    value, gradient = evaluate(point, torch.arange(start.shape[1], device=start.device))
    pairs: deque[_Pair] = deque(maxlen=PAIRS)
    n_small = torch.zeros_like(value, dtype=torch.int64)
    tolerance = torch.zeros(()) if tolerances is None else tolerances
    tolerance = tolerance.to(value)
    for _ in range(n_steps):
        direction = -_newton_step(gradient, pairs, precondition)
        slope = _dot(gradient, direction)
        n_small = torch.where(-slope <= tolerance * value.abs(), n_small + 1, 0)
        # A value that is not finite stays so; whoever reads the loss reports it.
        moving = (n_small < 2) & value.isfinite() & slope.isfinite()
        if tolerances is not None:
            moving &= value > _LEAST_LOSS
        if not len(cells := _moving_cells(moving)):
            break
        new_point, value, new_gradient = _shortened(
            evaluate, point, value, gradient, direction, slope, moving, cells
        )
        step, change = new_point - point, new_gradient - gradient
        product = _dot(step, change)
        inverse = torch.where(product > 0, 1 / product, 0.0).nan_to_num(posinf=0.0)
        pairs.append(_Pair(step, change, inverse))
        point, gradient = new_point, new_gradient
        if tolerances is None:
            progress.advance()
    else:
        if tolerances is not None:
            n = int(moving.sum())
            progress.warn(
                f"{n} of {moving.numel()} fits ended after {n_steps} steps, not converged"
            )
    return point


def _newton_step(gradient: Tensor, pairs: Iterable[_Pair], precondition: Precondition) -> Tensor:
    """The product of the estimated inverse Hessian and the gradient: the two-loop recursion."""
    pairs, product, shares = list(pairs), gradient, []
    for pair in reversed(pairs):
        share = pair.inverse * _dot(pair.step, product)
        product = product - _wide(share, product) * pair.change
        shares.append(share)
    product = precondition(product)
    if pairs:  # scaled as in equation 7.20, here in units of `precondition`
        last = pairs[-1]
        size = last.inverse * _dot(last.change, precondition(last.change))
        product = product / _wide(torch.where(size > 0, size, 1.0), product)
    for pair, share in zip(pairs, reversed(shares), strict=True):
        share = share - pair.inverse * _dot(pair.change, product)
        product = product + _wide(share, product) * pair.step
    return product


def _moving_cells(moving: Tensor) -> Tensor:
    """Indices of the cells with a problem that takes a step.

    Nothing else in an iteration makes the host wait for a GPU.

    Args:
        moving: see `_shortened`.
    """
    return moving.any(0).nonzero().flatten()


def _shortened(
    evaluate: Evaluate,
    point: Tensor,
    value: Tensor,
    gradient: Tensor,
    direction: Tensor,
    slope: Tensor,
    moving: Tensor,
    cells: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Point, value and gradient of each problem after a step, shortened as far as needed.

    If even the shortest step does not decrease the value, the point stays.

    Args:
        slope: derivative of each value along the direction. Shape (L, K).
        moving: True for problems that take a step. Shape (L, K).
        cells: indices of cells with such problems.
    """
    new_point, new_value, new_gradient = point.clone(), value.clone(), gradient.clone()
    length = torch.ones_like(slope)
    while len(cells):
        tried = point[:, cells] + _wide(length[:, cells], point) * direction[:, cells]
        tried_value, tried_gradient = evaluate(tried, cells)
        promised = value + _DECREASE * length * slope + _RESOLUTION * value.abs()
        better = moving[:, cells] & (tried_value <= promised[:, cells])
        new_point[:, cells] = torch.where(_wide(better, point), tried, new_point[:, cells])
        new_value[:, cells] = torch.where(better, tried_value, new_value[:, cells])
        new_gradient[:, cells] = torch.where(
            _wide(better, point), tried_gradient, new_gradient[:, cells]
        )
        # The minimum of the parabola through both values with the slope, within bounds.
        bend = tried_value - value[:, cells] - length[:, cells] * slope[:, cells]
        shorter = (-0.5 * slope[:, cells] * length[:, cells] / bend).nan_to_num(0)
        moving = moving & (length >= _SHORTEST)
        moving[:, cells] &= ~better
        length[:, cells] *= torch.where(better, 1, shorter.clamp(*_SHORTER))
        cells = _moving_cells(moving)
    return new_point, new_value, new_gradient


def _dot(a: Tensor, b: Tensor) -> Tensor:
    """Dot products of each problem's vectors. Shape (L, K)."""
    # Other devices have no float64.
    exact = torch.float64 if a.device.type in ("cpu", "cuda") else torch.float32
    return (a * b).flatten(2).sum(2, dtype=exact)


def _wide(numbers: Tensor, vectors: Tensor) -> Tensor:
    """Numbers of problems (L, K) in the shape and type of their vectors."""
    dtype = numbers.dtype if numbers.dtype == torch.bool else vectors.dtype
    return numbers.to(dtype).view(*numbers.shape, *[1] * (vectors.dim() - 2))


def ridge(
    train: Batches, dev: Batches, family: ProbeFamily, grid: Tensor, groups: Sequence[Sequence[int]]
) -> FittedProbes:
    """Ridge regression at all strengths from one eigendecomposition.

    For x and y with weighted mean 0, w = (XᵀDX / n + strength · I)⁻¹ XᵀDy / n, where n = tr D. Sums
    over examples are computed on the device, the small rest on the CPU in float64, which not every
    device has. Cells with the same weights D share XᵀDX and the strength chosen for the first.

    Args:
        family: the linear family whose outputs are compared on dev.
        grid: candidate strengths of each layer, float64 on the CPU. Shape (L, G).
        groups: groups of cells that have the same weights.
    """
    loss, fitted = SquaredError(), []
    for cells in groups:
        solver = _Solver(train.of_cells(list(cells)).without_unused(), len(cells))
        candidates = solver.solve(grid, slice(0, 1))
        of_group = dev.of_cells(list(cells))
        best = mean_loss(family, loss, candidates, of_group.of_cells(slice(0, 1))).argmin(1)
        strengths = grid.gather(1, best.cpu()[:, None])
        parameters = solver.solve(strengths, slice(None))
        dev_loss = mean_loss(family, loss, parameters, of_group)
        strength = strengths.to(dev_loss).expand_as(dev_loss)
        fitted.append(FittedProbes(parameters, strength, torch.ones_like(dev_loss), dev_loss))
        progress.advance()
    return joined_probes(fitted, groups)


class _Solver:
    """Solver for R label sets with the same example weights, at any strength."""

    def __init__(self, train: Batches, n_sets: int) -> None:
        train = replace(train, labels=train.labels.expand(n_sets, -1))
        self._device = train.features.device
        total = train.weights[0].cpu().double().sum()
        self._mean_x, self._mean_y, gram, cross = _training_moments(train)
        gram.div_(total).sub_(self._mean_x[:, :, None] * self._mean_x[:, None])
        cross = cross / total - self._mean_y[:, None] * self._mean_x[:, None]
        self._values, self._vectors = torch.linalg.eigh(gram)
        self._rotated = cross @ self._vectors

    def solve(self, strengths: Tensor, sets: slice) -> Parameters:
        """Parameters of linear probes for some label sets.

        Args:
            strengths: one for all sets (L, 1), or G strengths for a single set (L, G).
        """
        # Rounding may leave an eigenvalue of 0 slightly negative.
        shrunk = self._values.clamp_min(0)[:, None] + strengths[:, :, None]
        weight = (self._rotated[:, sets] / shrunk) @ self._vectors.mT
        bias = self._mean_y[sets] - (weight * self._mean_x[:, None]).sum(-1)
        return [p.float().to(self._device) for p in (weight[:, :, None], bias[:, :, None])]


def _training_moments(train: Batches) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Weighted means of x (L, H) and y (R,), and sums of xxᵀ (L, H, H) and yx (L, R, H).

    Blocks are summed in float32 on the device of the features, their totals in float64.
    """
    n_layers, n_examples, n_features = train.features.shape
    sample, labels = train.weights[0], train.labels
    sum_device = device_of_sums(train.features.device)
    zeros = partial(torch.zeros, dtype=torch.float64, device=sum_device)
    sum_x = zeros(n_layers, n_features)
    cross = zeros(n_layers, len(labels), n_features)
    gram = zeros(n_layers, n_features, n_features)
    for part in evaluation_slices(n_examples):
        x, weight = train.features.block(part), sample[part]
        weighted = x * weight[:, None]
        sum_x += weighted.sum(1).to(sum_device)
        cross += (labels[:, part] @ weighted).to(sum_device)
        gram += (weighted.transpose(1, 2) @ x).to(sum_device)
    total = sample.cpu().double().sum()
    mean_y = (sample * labels).cpu().double().sum(1) / total
    return sum_x.cpu() / total, mean_y, gram.cpu(), cross.cpu()
