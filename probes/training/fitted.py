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
from probes.training.batches import Batches, evaluation_parts
from probes.training.family import FittedProbes, Parameters, ProbeFamily
from probes.training.losses import Loss
from probes.training.standardisation import Standardisation


def joined_probes(parts: Sequence[FittedProbes], cells: Sequence[Sequence[int]]) -> FittedProbes:
    """Join probes that were fitted in parts.

    Args:
        cells: the positions of each part's cells in the result.
    """
    order = torch.tensor(list(chain.from_iterable(cells))).argsort()

    def in_order(tensors: Iterable[Tensor]) -> Tensor:
        tensor = torch.cat(list(tensors), 1)
        return tensor.index_select(1, order.to(tensor.device))

    return FittedProbes(
        [in_order(tensors) for tensors in zip(*(part.parameters for part in parts), strict=True)],
        in_order(part.strength for part in parts),
        in_order(part.stopped for part in parts),
        in_order(part.dev_loss for part in parts),
    )


def mean_loss(
    family: ProbeFamily,
    loss: Loss,
    parameters: Parameters,
    data: Batches,
    *,
    repeated: bool = False,
) -> Tensor:
    """Weighted mean loss of every cell. Shape (L, K).

    Args:
        repeated: whether the features are read many times; see `Features.kept_block`.
    """
    features = data.features
    total = torch.zeros(parameters[0].shape[:2], device=features.device)
    for part in evaluation_parts(features):
        x = features.kept_block(part) if repeated else features.block(part)
        outputs = family.checked_outputs(parameters, x)
        total += loss.total(outputs, data.labels[:, part], data.weights[:, part])
    return total / data.weights.sum(1)


def parameters_by_name(
    layers: Sequence[int],
    standardisation: Standardisation,
    fitted: FittedProbes,
    unit: tuple[float, float] | None,
    layers_read: Sequence[int] | None = None,
) -> dict[str, NDArray[Any]]:
    """Parameters of the first cell of each layer, named as in `probes.records.parameters`.

    Args:
        unit: mean and deviation of the training labels of a regression; None for classes.
        layers_read: the layers that are standardised; by default `layers`.
    """
    tensors = {}
    for number, tensor in enumerate(fitted.parameters):
        suffix = f"-{number // 2 + 1}" if number > 1 else ""
        tensors[("weight", "bias")[number % 2] + suffix] = tensor[:, 0]
    scales = {"mean": standardisation.mean, "scale": standardisation.scale}
    if standardisation.projected_scale is not None:
        scales["projected-scale"] = standardisation.projected_scale
    # Copies: a view would keep the tensors of all fits in memory.
    arrays = {
        of_layer(layer, name): tensor[i].float().cpu().numpy().copy()
        for numbers, by_name in ((layers, tensors), (layers_read or layers, scales))
        for name, tensor in by_name.items()
        for i, layer in enumerate(numbers)
    }
    if standardisation.projection is not None:
        arrays["projection"] = standardisation.projection.cpu().numpy()
    if unit is not None:
        arrays["label-unit"] = np.array(unit)
    return arrays
