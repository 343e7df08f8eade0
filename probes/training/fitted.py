"""Fitted probes, and how they are combined.

The cells of a layer have a fixed order: the real labels under every seed, then, if there are more
label sets (control tasks), the next set under every seed, and so on. With S seeds and R label sets,
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
from probes.training.family import Parameters, ProbeFamily
from probes.training.losses import Loss


@dataclass(frozen=True)
class FittedProbes:
    """The probes of K cells at each of L layers.

    Attributes:
        parameters: leading dimensions (L, K).
        strength: L2 strength, chosen on dev. Shape (L, K).
        step: Adam's initial step size, chosen on dev; 0 for a closed form. Shape (L, K).
        stopped: share of the schedule after which the dev loss was least; 1 is its end. (L, K).
        dev_loss: mean loss on dev in nats (classification), or half the squared error. (L, K).
    """

    parameters: Parameters
    strength: Tensor
    step: Tensor
    stopped: Tensor
    dev_loss: Tensor


def best_cell(fitted: FittedProbes) -> FittedProbes:
    """The cell of each layer with the least dev loss, (L, K) → (L, 1)."""
    best = fitted.dev_loss.argmin(1, keepdim=True)
    layer = torch.arange(len(best), device=best.device)[:, None]
    return _combine([fitted], lambda parts: parts[0][layer, best])


def keep_better(fitted: FittedProbes, layers: Tensor, other: FittedProbes) -> FittedProbes:
    """`fitted`, (L, 1), with the layers replaced at which `other`, (L', 1), has less dev loss.

    Args:
        layers: the indices in `fitted` of the layers of `other`. Shape (L',).
    """
    better = (other.dev_loss < fitted.dev_loss[layers])[:, 0]
    return _combine(
        [fitted, other], lambda parts: parts[0].index_copy(0, layers[better], parts[1][better])
    )


def join_cells(parts: Sequence[FittedProbes]) -> FittedProbes:
    """Cells of the same layers, (L, K), (L, K'), …, as one (L, K + K' + …)."""
    return _combine(parts, lambda tensors: torch.cat(tensors, 1))


def join_seeds(parts: Sequence[FittedProbes]) -> FittedProbes:
    """The cells of S seeds, one per label set (L, R) each, as one (L, R · S)."""
    return _combine(parts, lambda tensors: torch.stack(tensors, 2).flatten(1, 2))


def _combine(
    fitted: Sequence[FittedProbes], join: Callable[[list[Tensor]], Tensor]
) -> FittedProbes:
    return FittedProbes(
        [join(list(tensors)) for tensors in zip(*(f.parameters for f in fitted), strict=True)],
        join([f.strength for f in fitted]),
        join([f.step for f in fitted]),
        join([f.stopped for f in fitted]),
        join([f.dev_loss for f in fitted]),
    )


def mean_loss(
    family: ProbeFamily,
    loss: Loss,
    parameters: Parameters,
    data: Batches,
    *,
    rounded: bool = False,
) -> Tensor:
    """Weighted mean loss of every cell. Shape (L, K).

    Args:
        rounded: whether to round the factors of products as a training step does.
    """
    features = data.features
    total = torch.zeros(parameters[0].shape[:2], device=features.device)
    for part in blocks(features.shape[1]):
        x = features.rounded(part) if rounded else features.block(part)
        parameters = [p.to(x.dtype) for p in parameters]  # copies at the first block only
        with fast_products() if rounded else nullcontext():
            outputs = family.float_outputs(parameters, x)
        total += loss.total(outputs, data.labels[:, part], data.weights[:, part])
    return total / data.weights.sum(1)
