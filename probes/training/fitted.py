"""Fitted probes, and their losses.

The cells of a layer have a fixed order: the real labels under every seed, then, if there are more
label sets (control tasks), the next set under every seed, and so on. With S seeds and R label sets,
cell r · S + s has set r and seed s; there are K = R · S.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from probes.training.batches import Batches, blocks
from probes.training.family import Parameters, ProbeFamily
from probes.training.losses import Loss


@dataclass(frozen=True)
class FittedProbes:
    """The probes of K cells at each of L layers.

    Attributes:
        parameters: leading dimensions (L, K).
        strength: L2 strength. Shape (L, K).
        stopped: share of the steps after which the dev loss was least; 1 is its end. (L, K).
        dev_loss: mean loss on dev in nats (classification), or half the squared error. (L, K).
    """

    parameters: Parameters
    strength: Tensor
    stopped: Tensor
    dev_loss: Tensor


def join_seeds(parts: Sequence[FittedProbes]) -> FittedProbes:
    """The cells of S seeds, one per label set (L, R) each, as one (L, R · S)."""

    def join(tensors: Sequence[Tensor]) -> Tensor:
        return torch.stack(list(tensors), 2).flatten(1, 2)

    return FittedProbes(
        [join(tensors) for tensors in zip(*(f.parameters for f in parts), strict=True)],
        join([f.strength for f in parts]),
        join([f.stopped for f in parts]),
        join([f.dev_loss for f in parts]),
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
        outputs = family.float_outputs(parameters, x)
        total += loss.total(outputs, data.labels[:, part], data.weights[:, part])
    return total / data.weights.sum(1)
