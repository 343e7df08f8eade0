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
from probes.training.batches import Batches, evaluation_slices
from probes.training.family import FittedProbes, Linear, Parameters, ProbeFamily
from probes.training.features import Features
from probes.training.fitted import joined_probes, mean_loss
from probes.training.losses import LogLoss, SquaredError

_CONFIDENCE = 0.3
"""Curvature of a fitted probe's loss, relative to a probe that knows only label frequencies."""


def fit_full_batch(
    train: Batches,
    family: ProbeFamily,
    loss: LogLoss,
    start: Parameters,
    strengths: Tensor,
    n_steps: int,
) -> Parameters:
    """Fit probes of a convex family by L-BFGS.

    Args:
        train: features in their principal axes; labels and weights of shape (K, N) or (1, N).
        start: starting parameters, one weight and one bias; leading dimensions (L, K).
        strengths: L2 strengths. Shape (L, K).
    """
    weight, bias = start
    labels = train.labels.expand(weight.shape[1], -1)
    sizes = [weight[0, 0].numel(), bias[0, 0].numel()]
    weights = train.weights / train.weights.sum(1, keepdim=True)

    def parameters_at(point: Tensor) -> Parameters:
        weight_, bias_ = point.split(sizes, 2)
        return [weight_.unflatten(2, weight.shape[2:]), bias_]

    def point_of(weight: Tensor, bias: Tensor) -> Tensor:
        return torch.cat([weight.flatten(2), bias], 2)

    # Other devices have no float64.
    exact = torch.float64 if weight.device.type in ("cpu", "cuda") else torch.float32
    penalty = point_of(strengths[:, :, None, None].expand_as(weight), torch.zeros_like(bias))

    def evaluate(point: Tensor) -> tuple[Tensor, Tensor]:
        parameters, value = parameters_at(point), 0.5 * (penalty * point * point).sum(2).to(exact)
        gradient = penalty * point
        for part in evaluation_slices(len(train.sentences)):
            of_part = labels[:, part], weights[:, part]

            def errors(outputs: Tensor, of_part: tuple[Tensor, Tensor] = of_part) -> Tensor:
                value.add_(loss.total(outputs, *of_part))
                return loss.errors(outputs, *of_part)

            x = train.features.kept_block(part)
            gradient += point_of(*family.gradient(parameters, x, errors))
        return value, gradient

    shares = loss.shares(labels, train.weights.expand_as(labels), bias.shape[2])
    # ∂²loss / ∂w² = p (1 − p) E[x²] if p is the share of the class; a fitted probe is surer.
    of_outputs = _CONFIDENCE * shares * (1 - shares)
    of_weights = of_outputs[..., None] * _mean_squares(train.features)[:, None, None]
    curvature = point_of(of_weights.expand_as(weight), of_outputs.expand_as(bias)) + penalty
    return parameters_at(minimise(evaluate, point_of(weight, bias), curvature, n_steps))


def _mean_squares(features: Features) -> Tensor:
    """The mean square of each feature. Shape (L, H)."""
    n_layers, n_examples, n_features = features.shape
    total = torch.zeros(n_layers, n_features, device=features.device)
    for part in evaluation_slices(n_examples):
        total += features.kept_block(part).square().sum(1)
    return total / n_examples


PAIRS = 10
"""Number of recent steps from which curvature is estimated."""

_DECREASE, _SHORTER, _SHORTEST = 1e-4, 0.4, 1e-3
"""A step counts if the value falls by this share of what the slope promises; otherwise it is
shortened by the second number, at most down to the third."""

_RESOLUTION = 1e-6
"""Smaller relative differences of values are rounding."""

Evaluate = Callable[[Tensor], tuple[Tensor, Tensor]]
"""From points (L, K, D) to values (L, K) and gradients (L, K, D)."""


class _Pair(NamedTuple):
    """A step and the change of the gradient. Each (L, K, D)."""

    step: Tensor
    change: Tensor
    inverse: Tensor
    """1 / (step · change); 0 for a step without information on curvature. Shape (L, K, 1)."""


def minimise(evaluate: Evaluate, start: Tensor, curvature: Tensor, n_steps: int) -> Tensor:
    """Take `n_steps` steps from `start`, and return the points reached. Shape (L, K, D).

    Args:
        curvature: initial estimate of the second derivative along each coordinate; must not be a
            thousand times too low. Shape (L, K, D).
    """
    point = start
    value, gradient = evaluate(point)
    pairs: deque[_Pair] = deque(maxlen=PAIRS)
    for _ in range(n_steps):
        direction = -_newton_step(gradient, pairs, curvature)
        new_point, value, new_gradient = _shortened(evaluate, point, value, gradient, direction)
        step, change = new_point - point, new_gradient - gradient
        product = _dot(step, change)
        inverse = torch.where(product > 0, 1 / product, 0.0).nan_to_num(posinf=0.0)
        pairs.append(_Pair(step, change, inverse))
        point, gradient = new_point, new_gradient
        progress.advance()
    return point


def _newton_step(gradient: Tensor, pairs: Iterable[_Pair], curvature: Tensor) -> Tensor:
    """The product of the estimated inverse Hessian and the gradient: the two-loop recursion."""
    pairs, product, shares = list(pairs), gradient, []
    for pair in reversed(pairs):
        share = pair.inverse * _dot(pair.step, product)
        product = product - share * pair.change
        shares.append(share)
    product = product / curvature
    if pairs:  # scaled as in equation 7.20, here in units of `curvature`
        last = pairs[-1]
        size = last.inverse * _dot(last.change, last.change / curvature)
        product = torch.where(size > 0, product / size, product)
    for pair, share in zip(pairs, reversed(shares), strict=True):
        product = product + (share - pair.inverse * _dot(pair.change, product)) * pair.step
    return product


def _shortened(
    evaluate: Evaluate, point: Tensor, value: Tensor, gradient: Tensor, direction: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Point, value and gradient of each problem after a step, shortened as far as needed.

    If even the shortest step does not decrease the value, the point stays.
    """
    slope = _dot(gradient, direction)[..., 0]
    length = torch.ones_like(slope)
    while True:
        new_point = point + length[..., None] * direction
        new_value, new_gradient = evaluate(new_point)
        promised = value + _DECREASE * length * slope + _RESOLUTION * value.abs()
        better = new_value <= promised
        if (better | (length < _SHORTEST)).all():
            break
        length = torch.where(better, length, _SHORTER * length)
    takes_step = better[..., None]
    return (
        torch.where(takes_step, new_point, point),
        torch.where(better, new_value, value),
        torch.where(takes_step, new_gradient, gradient),
    )


def _dot(a: Tensor, b: Tensor) -> Tensor:
    """Dot products of (L, K, D) along D. Shape (L, K, 1)."""
    return (a * b).sum(2, keepdim=True)


def ridge(
    train: Batches, dev: Batches, grid: Tensor, groups: Sequence[Sequence[int]]
) -> FittedProbes:
    """Ridge regression at all strengths from one eigendecomposition.

    For x and y with weighted mean 0, w = (XᵀDX / n + strength · I)⁻¹ XᵀDy / n, where n = tr D. Sums
    over examples are computed on the device, the small rest on the CPU in float64, which not every
    device has. Cells with the same weights D share XᵀDX and the strength chosen for the first.

    Args:
        grid: candidate strengths of each layer, float64 on the CPU. Shape (L, G).
        groups: groups of cells that have the same weights.
    """
    family, loss = Linear(), SquaredError()
    fitted = []
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
    device = train.features.device
    # The sums are large. They stay on a device that has float64.
    sum_device = device if device.type == "cuda" else torch.device("cpu")
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
