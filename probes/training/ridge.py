"""Linear regression in closed form."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from probes.training.batches import Batches, blocks
from probes.training.family import Parameters
from probes.training.fits import Fit, mean_loss, of_seeds
from probes.training.linear import Linear
from probes.training.losses import SquaredError


def ridge(train: Batches, dev: Batches, grid: Tensor, n_seeds: int) -> Fit:
    """Linear regression in closed form, all strengths from one eigendecomposition.

    With weighted means taken off, w = (XᵀDX / n + strength · I)⁻¹ XᵀDy / n, where n = tr D. The
    sums over examples run on the device, the small rest on the CPU: not every device has float64.
    The cells of a seed have the same weights D, so they share XᵀDX, and the strength: the one
    that suits the seed's first cell.

    Args:
        grid: strengths of each layer to choose from, float64 on the CPU. Shape (L, G).
    """
    head, loss = Linear(), SquaredError()
    fits = []
    for seed in range(n_seeds):
        cells = slice(seed, None, n_seeds)
        path = _Path(train.of_cells(cells).drawn())
        first = path.at(grid, slice(0, 1))
        best = mean_loss(head, loss, first, dev.of_cells(cells).of_cells(slice(0, 1))).argmin(1)
        strengths = grid.gather(1, best.cpu()[:, None])
        parameters = path.at(strengths, slice(None))
        dev_loss = mean_loss(head, loss, parameters, dev.of_cells(cells))
        same = strengths.to(dev_loss).expand_as(dev_loss)
        no_steps, to_the_end = torch.zeros_like(dev_loss), torch.ones_like(dev_loss)
        fits.append(Fit(parameters, same, no_steps, to_the_end, dev_loss))
    return of_seeds(fits)


class _Path:
    """The solutions of R label sets under the same weights, at any strength."""

    def __init__(self, train: Batches) -> None:
        self._device = train.features.device
        total = train.weights[0].cpu().double().sum()
        self._mean_x, self._mean_y, gram, cross = _moments(train)
        gram.div_(total).sub_(self._mean_x[:, :, None] * self._mean_x[:, None])
        cross = cross / total - self._mean_y[:, None] * self._mean_x[:, None]
        self._values, self._vectors = torch.linalg.eigh(gram)
        self._rotated = cross @ self._vectors

    def at(self, strengths: Tensor, sets: slice) -> Parameters:
        """Parameters of a linear head for some label sets.

        Args:
            strengths: one for all sets, or several for one. Shape (L, 1) or (L, G).
        """
        shrunk = self._values.clamp_min(0)[:, None] + strengths[:, :, None]
        weight = (self._rotated[:, sets] / shrunk) @ self._vectors.mT
        bias = self._mean_y[sets] - (weight * self._mean_x[:, None]).sum(-1)
        return [p.float().to(self._device) for p in (weight[:, :, None], bias[:, :, None])]


def _moments(train: Batches) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Weighted means of x (L, H) and y (R,), and sums of xxᵀ (L, H, H) and yx (L, R, H).

    In float64; each block is summed in float32 where the features lie.
    """
    n_layers, n_examples, n_features = train.features.shape
    sample, labels = train.weights[0], train.labels
    device = train.features.device
    # Sums are as large as a model's weights: they leave only devices that have no float64.
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
