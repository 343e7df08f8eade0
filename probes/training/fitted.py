"""Fitted probes, their losses, and their parameters by name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from probes.records.parameters import of_layer
from probes.training.batches import Batches, evaluation_slices
from probes.training.family import FittedProbes, Parameters, ProbeFamily
from probes.training.losses import Loss
from probes.training.standardisation import Standardisation


def joined_probes(parts: Sequence[FittedProbes], cells: Sequence[Sequence[int]]) -> FittedProbes:
    """Join probes that were fitted in parts.

    Args:
        cells: the positions of each part's cells in the result.
    """
    place = torch.tensor(list(chain.from_iterable(cells))).argsort()

    def joined(tensors: Iterable[Tensor]) -> Tensor:
        found = torch.cat(list(tensors), 1)
        return found.index_select(1, place.to(found.device))

    return FittedProbes(
        [joined(tensors) for tensors in zip(*(part.parameters for part in parts), strict=True)],
        joined(part.strength for part in parts),
        joined(part.stopped for part in parts),
        joined(part.dev_loss for part in parts),
    )


def mean_loss(
    family: ProbeFamily,
    loss: Loss,
    parameters: Parameters,
    data: Batches,
    *,
    kept: bool = False,
) -> Tensor:
    """Weighted mean loss of every cell. Shape (L, K).

    Args:
        kept: whether the features are read many times; see `Features.kept_block`.
    """
    features = data.features
    total = torch.zeros(parameters[0].shape[:2], device=features.device)
    for part in evaluation_slices(features.shape[1]):
        x = features.kept_block(part) if kept else features.block(part)
        outputs = family.checked_outputs(parameters, x)
        total += loss.total(outputs, data.labels[:, part], data.weights[:, part])
    return total / data.weights.sum(1)


def parameters_by_name(
    layers: Sequence[int],
    how: Standardisation,
    fitted: FittedProbes,
    unit: tuple[float, float] | None,
) -> dict[str, NDArray[Any]]:
    """Parameters of the first cell of each layer, named as in `probes.records.parameters`.

    Args:
        unit: mean and deviation of the training labels of a regression; None for classes.
    """
    given = {"mean": how.mean, "scale": how.scale}
    for number, tensor in enumerate(fitted.parameters):
        suffix = f"-{number // 2 + 1}" if number > 1 else ""
        given[("weight", "bias")[number % 2] + suffix] = tensor[:, 0]
    if how.projected_scale is not None:
        given["projected-scale"] = how.projected_scale
    # Copies: a view would keep the tensors of all fits in memory.
    found = {
        of_layer(layer, name): tensor[place].float().cpu().numpy().copy()
        for name, tensor in given.items()
        for place, layer in enumerate(layers)
    }
    if how.projection is not None:
        found["projection"] = how.projection.cpu().numpy()
    if unit is not None:
        found["label-unit"] = np.array(unit)
    return found
