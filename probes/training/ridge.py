"""Ridge regression in closed form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from probes.common.terminal import progress
from probes.training.batches import Batches, blocks
from probes.training.family import Linear, Parameters
from probes.training.fitted import FittedProbes, in_order, mean_loss
from probes.training.losses import SquaredError


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
        solver = _Solver(train.of_cells(list(cells)).drawn(), len(cells))
        first = solver.solve(grid, slice(0, 1))
        of_group = dev.of_cells(list(cells))
        best = mean_loss(family, loss, first, of_group.of_cells(slice(0, 1))).argmin(1)
        strengths = grid.gather(1, best.cpu()[:, None])
        parameters = solver.solve(strengths, slice(None))
        dev_loss = mean_loss(family, loss, parameters, of_group)
        same = strengths.to(dev_loss).expand_as(dev_loss)
        fitted.append(FittedProbes(parameters, same, torch.ones_like(dev_loss), dev_loss))
        progress.advance()
    return in_order(fitted, groups)


class _Solver:
    """Solver for R label sets with the same example weights, at any strength."""

    def __init__(self, train: Batches, n_sets: int) -> None:
        train = replace(train, labels=train.labels.expand(n_sets, -1))
        self._device = train.features.device
        total = train.weights[0].cpu().double().sum()
        self._mean_x, self._mean_y, gram, cross = _moments(train)
        gram.div_(total).sub_(self._mean_x[:, :, None] * self._mean_x[:, None])
        cross = cross / total - self._mean_y[:, None] * self._mean_x[:, None]
        self._values, self._vectors = torch.linalg.eigh(gram)
        self._rotated = cross @ self._vectors

    def solve(self, strengths: Tensor, sets: slice) -> Parameters:
        """Parameters of linear probes for some label sets.

        Args:
            strengths: one for all sets (L, 1), or G strengths for a single set (L, G).
        """
        shrunk = self._values.clamp_min(0)[:, None] + strengths[:, :, None]
        weight = (self._rotated[:, sets] / shrunk) @ self._vectors.mT
        bias = self._mean_y[sets] - (weight * self._mean_x[:, None]).sum(-1)
        return [p.float().to(self._device) for p in (weight[:, :, None], bias[:, :, None])]


def _moments(train: Batches) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Weighted means of x (L, H) and y (R,), and sums of xxᵀ (L, H, H) and yx (L, R, H).

    Blocks are summed in float32 on the device of the features, their totals in float64.
    """
    n_layers, n_examples, n_features = train.features.shape
    sample, labels = train.weights[0], train.labels
    device = train.features.device
    # The sums are large. They stay on a device that has float64.
    where = device if device.type == "cuda" else torch.device("cpu")
    zeros = partial(torch.zeros, dtype=torch.float64, device=where)
    sum_x = zeros(n_layers, n_features)
    cross = zeros(n_layers, len(labels), n_features)
    gram = zeros(n_layers, n_features, n_features)
    for part in blocks(n_examples):
        x, weight = train.features.block(part), sample[part]
        weighted = x * weight[:, None]
        sum_x += weighted.sum(1).to(where)
        cross += (labels[:, part] @ weighted).to(where)
        gram += (weighted.transpose(1, 2) @ x).to(where)
    total = sample.cpu().double().sum()
    mean_y = (sample * labels).cpu().double().sum(1) / total
    return sum_x.cpu() / total, mean_y, gram.cpu(), cross.cpu()
