"""Patterns of linear probes: how vectors vary with what a probe says of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from probes.common.arrays import Floats

if TYPE_CHECKING:
    from probes.measurements.context import Context


def patterns(context: Context, weights: Mapping[int, Floats]) -> dict[int, Floats]:
    """The covariance of training vectors with linear functions of them (Haufe et al. 2014).

    Their theorem 1 also divides by the covariance of the functions, which does not change the space
    that the patterns of several functions span, and of a single one changes only the length.

    Args:
        weights: by layer those of R functions of standardised features. Each (R, H).

    Returns:
        by layer (R, H), in the coordinates of the vectors; 0 for a feature that is constant.
    """
    import torch

    from probes.training.batches import blocks

    found = {}
    for layers, hold in context.groups(list(weights), 3):
        features = context.data.features(layers, hold)["train"]
        scales = context.data.standardisation(layers).scale.double().numpy()
        rows = torch.from_numpy(np.stack([weights[layer] for layer in layers]))
        rows = rows.float().to(features.device)
        # Features have mean 0.
        sums = torch.zeros(rows.shape, dtype=torch.float64)
        for part in blocks(features.shape[1]):
            x = features.block(part)
            sums += ((rows @ x.mT) @ x).cpu()
        for layer, total, scale in zip(layers, sums.numpy(), scales, strict=True):
            of_features = total / features.shape[1]
            zeros = np.zeros_like(of_features)
            found[layer] = np.divide(of_features, scale, out=zeros, where=scale > 0)
    return found
