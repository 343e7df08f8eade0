"""Examples of a split and fitted cells, as every way of fitting has them.

Cells of a layer stand in a fixed order: the real labels under every seed, then, if there are more
label sets (control tasks), the next set under every seed, and so on. Of S seeds and R label sets
cell r · S + s has set r and seed s; there are K = R · S.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor

from probes.compute.precision import fast_products
from probes.training.batches import Batches, blocks
from probes.training.family import Head, Parameters
from probes.training.losses import Loss


@dataclass(frozen=True)
class Fit:
    """Fitted cells.

    Attributes:
        parameters: leading dimensions (L, K).
        strength: the one chosen on dev. Shape (L, K).
        step: Adam's at the start, chosen on dev; 0 of a closed form. Shape (L, K).
        stopped: share of the schedule after which dev loss was least; 1 is the end. (L, K).
        dev_loss: mean loss on dev in nats (classification), or half the squared error. (L, K).
    """

    parameters: Parameters
    strength: Tensor
    step: Tensor
    stopped: Tensor
    dev_loss: Tensor


def best_of(fitted: Fit) -> Fit:
    """Of the cells of each layer the one with the least dev loss, (L, K) → (L, 1)."""
    best = fitted.dev_loss.argmin(1, keepdim=True)
    layer = torch.arange(len(best), device=best.device)[:, None]
    return _together([fitted], lambda parts: parts[0][layer, best])


def with_better(fitted: Fit, layers: Tensor, other: Fit) -> Fit:
    """The same fit, with what another one of some layers, (L', 1), has better by dev loss.

    Args:
        layers: the places in `fitted` of the other's layers. Shape (L',).
    """
    better = (other.dev_loss < fitted.dev_loss[layers])[:, 0]
    return _together(
        [fitted, other], lambda parts: parts[0].index_copy(0, layers[better], parts[1][better])
    )


def side_by_side(fits: Sequence[Fit]) -> Fit:
    """Cells of the same layers, (L, K) and (L, K') and so on, as one (L, K + K' + …)."""
    return _together(fits, lambda parts: torch.cat(parts, 1))


def of_seeds(fits: Sequence[Fit]) -> Fit:
    """The fits of S seeds, each of a cell per label set (L, R), as one (L, R · S)."""
    return _together(fits, lambda parts: torch.stack(parts, 2).flatten(1, 2))


def _together(fits: Sequence[Fit], join: Callable[[list[Tensor]], Tensor]) -> Fit:
    return Fit(
        [join(list(parts)) for parts in zip(*(f.parameters for f in fits), strict=True)],
        join([f.strength for f in fits]),
        join([f.step for f in fits]),
        join([f.stopped for f in fits]),
        join([f.dev_loss for f in fits]),
    )


def mean_loss(
    head: Head, loss: Loss, parameters: Parameters, data: Batches, *, rounded: bool = False
) -> Tensor:
    """Weighted mean loss of every cell. Shape (L, K).

    Args:
        rounded: whether products are as rough as those of a training step.
    """
    features = data.features
    total = torch.zeros(parameters[0].shape[:2], device=features.device)
    for part in blocks(features.shape[1]):
        x = features.rounded(part) if rounded else features.block(part)
        parameters = [p.to(x.dtype) for p in parameters]  # a copy at the first block alone
        with fast_products() if rounded else nullcontext():
            outputs = head.float_outputs(parameters, x)
        total += loss.total(outputs, data.labels[:, part], data.weights[:, part])
    return total / data.weights.sum(1)
