"""Limited-memory BFGS for many convex problems at once (Nocedal & Wright 2006, algorithm 7.4).

Every problem has its own curvature and its own step; all are evaluated together.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

import torch
from torch import Tensor

from probes.common.terminal import progress

_PAIRS = 10
"""The most recent steps that curvature is estimated from."""

_DECREASE, _SHORTER, _SHORTEST = 1e-4, 0.4, 1e-3
"""A step is shortened, down to a least share, until it decreases the value by this share of what the
slope promises."""

_RESOLUTION = 1e-6
"""Relative differences of values below this are rounding."""

Evaluate = Callable[[Tensor], tuple[Tensor, Tensor]]
"""From points (L, K, D) to values (L, K), float64, and gradients (L, K, D)."""


class _Pair(NamedTuple):
    """A step and the change of the gradient. Each (L, K, D)."""

    step: Tensor
    change: Tensor
    inverse: Tensor
    """1 / (step · change), or 0 for a step that says nothing about curvature. Shape (L, K, 1)."""


def minimise(evaluate: Evaluate, start: Tensor, curvature: Tensor, n_steps: int) -> Tensor:
    """The points that are reached after `n_steps` steps from `start`. Shape (L, K, D).

    Args:
        curvature: a first estimate of the second derivative by each coordinate. Shape (L, K, D).
    """
    point = start
    value, gradient = evaluate(point)
    pairs: deque[_Pair] = deque(maxlen=_PAIRS)
    for _ in range(n_steps):
        direction = -_newton_step(gradient, pairs, curvature)
        new, value, new_gradient = _shortened(evaluate, point, value, gradient, direction)
        step, change = new - point, new_gradient - gradient
        product = _dot(step, change)
        inverse = torch.where(product > 0, 1 / product, 0.0).nan_to_num(posinf=0.0)
        pairs.append(_Pair(step, change, inverse))
        point, gradient = new, new_gradient
        progress.advance()
    return point


def _newton_step(gradient: Tensor, pairs: Iterable[_Pair], curvature: Tensor) -> Tensor:
    """The product of the estimated inverse Hessian and the gradient: the two-loop recursion."""
    pairs, found, shares = list(pairs), gradient, []
    for pair in reversed(pairs):
        share = pair.inverse * _dot(pair.step, found)
        found = found - share * pair.change
        shares.append(share)
    found = found / curvature
    if pairs:
        last = pairs[-1]
        size = last.inverse * _dot(last.change, last.change / curvature)
        found = torch.where(size > 0, found / size, found)
    for pair, share in zip(pairs, reversed(shares), strict=True):
        found = found + (share - pair.inverse * _dot(pair.change, found)) * pair.step
    return found


def _shortened(
    evaluate: Evaluate, point: Tensor, value: Tensor, gradient: Tensor, direction: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The point, value and gradient after a step of each problem, shortened as far as needed.

    A problem whose shortest step does not decrease its value stays where it is.
    """
    slope = _dot(gradient, direction)[..., 0]
    length = torch.ones_like(slope)
    while True:
        new = point + length[..., None] * direction
        new_value, new_gradient = evaluate(new)
        promised = value + _DECREASE * length * slope + _RESOLUTION * value.abs()
        better = new_value <= promised
        if (better | (length < _SHORTEST)).all():
            break
        length = torch.where(better, length, _SHORTER * length)
    kept = better[..., None]
    return (
        torch.where(kept, new, point),
        torch.where(better, new_value, value),
        torch.where(kept, new_gradient, gradient),
    )


def _dot(a: Tensor, b: Tensor) -> Tensor:
    """Products of (L, K, D) along D. Shape (L, K, 1)."""
    return (a * b).sum(2, keepdim=True)
