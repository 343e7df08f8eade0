"""Linear regression in closed form."""

from __future__ import annotations

import torch
from torch import Tensor

from probes.cells import Batches, Fit, best_per_seed, blocks, mean_loss
from probes.heads import Linear, SquaredError


def ridge(train: Batches, dev: Batches, grid: Tensor, weights: Tensor) -> Fit:
    """Linear regression in closed form, all strengths from one eigendecomposition.

    With weighted means taken off, w = (XᵀDX / n + strength · I)⁻¹ XᵀDy / n, where n = tr D. The
    sums over examples run on the device, the small rest on the CPU: not every device has float64.

    Args:
        grid: strengths of each layer that dev loss chooses from, float64 on the CPU. (L, G).
        weights: shape (K, N).
    """
    device = weights.device
    cells = []
    for sample in weights:
        total = sample.cpu().double().sum()
        mean_x, mean_y, gram, cross = _moments(train, sample)
        gram = gram / total - mean_x[:, :, None] * mean_x[:, None]
        cross = cross / total - mean_x * mean_y
        values, vectors = torch.linalg.eigh(gram)
        rotated = (vectors.transpose(1, 2) @ cross[..., None]).squeeze(-1)
        shrunk = rotated[:, None] / (values.clamp_min(0)[:, None] + grid[:, :, None])
        weight = shrunk @ vectors.transpose(1, 2)
        bias = mean_y - (weight * mean_x[:, None]).sum(-1)
        parameters = [weight[:, :, None].float().to(device), bias[..., None].float().to(device)]
        dev_loss = mean_loss(Linear(), SquaredError(), parameters, dev)
        strengths = grid.float().to(device)
        cells.append(
            best_per_seed(
                Fit(parameters, strengths, torch.ones_like(strengths), dev_loss), 1, grid.shape[1]
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
    for part in blocks(n_examples):
        x, weight = train.features.block(part), sample[part]
        weighted = x * weight[:, None]
        sum_x += weighted.sum(1).cpu()
        cross += (weighted * train.labels[part, None]).sum(1).cpu()
        gram += (weighted.transpose(1, 2) @ x).cpu()
    total = sample.cpu().double().sum()
    mean_y = (sample * train.labels).cpu().double().sum() / total
    return sum_x / total, mean_y, gram, cross
