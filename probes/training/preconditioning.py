"""Preconditioners of convex fits: estimates of the inverse Hessian at some parameters.

Points of L-BFGS are (L, K, C, H + 1), the weights of each output and its bias last. The Hessian of
the loss has a block for each pair of outputs. That of output c with itself is

    sum_i w_i h_ic x_i x_iᵀ / sum_i w_i + strength · I,     h_ic = ∂²loss_i / ∂o_ic²,

where x_i ends with a 1, which has no penalty. Preconditioners leave out all other blocks.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from probes.training.batches import Batches, evaluation_slices
from probes.training.family import Parameters, ProbeFamily
from probes.training.losses import Loss

Precondition = Callable[[Tensor], Tensor]
"""From gradients to estimates of the inverse Hessian times these. Each (L, K, C, H + 1)."""

DRAWS = 1 << 11
"""Examples from which the block of an output is estimated."""

WIDEST = 1 << 9
"""Features of a block, those with the most variance; of the others the diagonal is used."""

_SHRINKAGE = 0.03
"""Share of the diagonal in an estimated block, since examples are few for so many entries."""

_LEAST = 1e-9
"""Added to the curvature of all coordinates of a block: a bias has no penalty."""

_CONFIDENCE = 0.3
"""Curvature of a fitted probe's loss, relative to a probe that knows only label frequencies; a rule
of thumb."""


def point_of(parameters: Parameters) -> Tensor:
    """Weights (L, K, C, H) and biases (L, K, C) as one tensor."""
    weight, bias = parameters
    return torch.cat([weight, bias[..., None]], 3)


def parameters_of(point: Tensor) -> Parameters:
    """The inverse of `point_of`."""
    return [point[..., :-1].contiguous(), point[..., -1]]


def penalties(strengths: Tensor, n_features: int) -> Tensor:
    """L2 strength of each coordinate of a point. Shape (L, K, 1, H + 1)."""
    of_weights = strengths[:, :, None, None].expand(-1, -1, 1, n_features)
    return torch.cat([of_weights, torch.zeros_like(of_weights[..., :1])], 3)


def centred(point: Tensor, loss: Loss) -> Tensor:
    """The point without the mean over outputs, if the loss does not depend on it.

    Only the penalty bends that direction, so that steps along it would never end. At the optimum
    the mean is 0.
    """
    return point - point.mean(2, keepdim=True) if loss.shift_invariant else point


def without_mean(precondition: Precondition, loss: Loss) -> Precondition:
    """The estimate between centred gradients and centred steps; see `centred`."""
    return lambda gradient: centred(precondition(centred(gradient, loss)), loss)


def diagonal(train: Batches, loss: Loss, bias: Tensor, strengths: Tensor) -> Precondition:
    """The diagonal, far from the optimum: the curvature of outputs is that without features.

    Args:
        train: features in their principal axes.
        bias: biases of probes without features. Shape (L, K, C).
        strengths: L2 strengths. Shape (L, K).
    """
    n_layers, n_examples, n_features = train.features.shape
    squares = torch.zeros(n_layers, n_features + 1, device=bias.device)
    squares[:, -1] = 1
    for part in evaluation_slices(n_examples):
        squares[:, :-1] += train.features.kept_block(part).square().sum(1) / n_examples
    of_outputs = _CONFIDENCE * loss.curvatures(bias[..., None])
    curvature = of_outputs * squares[:, None, None] + penalties(strengths, n_features)
    return lambda gradient: gradient / curvature


def output_blocks(
    train: Batches, family: ProbeFamily, loss: Loss, parameters: Parameters, strengths: Tensor
) -> Precondition:
    """The block of each output, estimated from examples drawn in proportion to w h.

    So a rare class is represented by the few examples that it is uncertain about.

    Args:
        train: features in their principal axes, held in memory or in a file.
        parameters: where the Hessian is estimated. Leading dimensions (L, K), or (L, 1) for one
            estimate that all cells share.
        strengths: L2 strengths. Shape (L, K).
    """
    values = train.features.held
    assert values is not None
    n_layers, n_examples, n_features = values.shape
    _, n_cells, n_outputs, _ = parameters[0].shape
    draws = [
        _drawn_examples(train, family, loss, [p[i : i + 1] for p in parameters], i)
        for i in range(n_layers)
    ]
    examples, shares = (torch.stack(parts) for parts in zip(*draws, strict=True))
    # As rows of one table of all layers.
    examples += torch.arange(n_layers, device=values.device)[:, None, None, None] * n_examples
    narrow = max(0, n_features - WIDEST)  # principal axes come in ascending order of variance
    n_wide = n_features + 1 - narrow
    diagonals = values.new_empty(n_layers, n_cells, n_outputs, narrow)
    inverses = values.new_empty(n_layers, n_cells, n_outputs, n_wide, n_wide)
    penalty = penalties(strengths[:, :n_cells], n_features).squeeze(2)
    for cell in range(n_cells):
        for output in range(n_outputs):
            index = examples[:, cell, output].flatten()
            x = values.flatten(0, 1).index_select(0, index).view(n_layers, -1, n_features)
            root = shares[:, cell, output, :, None].sqrt()
            x = torch.cat([x * root, root], 2)
            diagonals[:, cell, output] = x[..., :narrow].square().sum(1) + penalty[:, cell, :narrow]
            block = x[..., narrow:].mT @ x[..., narrow:]
            own = block.diagonal(dim1=1, dim2=2).clone()
            block.mul_(1 - _SHRINKAGE)
            added = _SHRINKAGE * own + penalty[:, cell, narrow:] + _LEAST
            block.diagonal(dim1=1, dim2=2).add_(added)
            inverses[:, cell, output] = _inverse(block)

    def precondition(gradient: Tensor) -> Tensor:
        step = torch.empty_like(gradient)
        step[..., :narrow] = gradient[..., :narrow] / diagonals
        wide = gradient[..., narrow:]
        # Cells that share an estimate are columns of one product: to expand it would copy it.
        if n_cells == 1:
            step[..., narrow:] = (inverses[:, 0] @ wide.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        else:
            step[..., narrow:] = (inverses @ wide[..., None]).squeeze(-1)
        return step

    return without_mean(precondition, loss)


def _inverse(block: Tensor) -> Tensor:
    """Inverses of positive definite matrices (L, n, n); of others, without an error, not finite."""
    # Apple's GPUs lack these before torch 2.11.
    matrices = block.cpu() if block.device.type == "mps" else block
    root, failed = torch.linalg.cholesky_ex(matrices)
    inverse = torch.cholesky_inverse(root)
    return inverse.masked_fill(failed[:, None, None] != 0, torch.nan).to(block.device)


def _drawn_examples(
    train: Batches, family: ProbeFamily, loss: Loss, parameters: Parameters, layer: int
) -> tuple[Tensor, Tensor]:
    """Examples drawn at one layer, and the share of each in the sum. Each (K, C, M)."""
    n_examples = len(train.sentences)
    parts = []
    for part in evaluation_slices(n_examples):
        x = train.features.kept_block(part)[layer : layer + 1]
        parts.append(loss.curvatures(family.outputs(parameters, x))[0])
    weights = train.weights / train.weights.sum(1, keepdim=True)
    curvatures = torch.cat(parts, 2) * weights[:, None]
    if n_examples <= DRAWS:
        every = torch.arange(n_examples, device=curvatures.device)
        return every.expand_as(curvatures), curvatures
    # Other devices have no float64.
    exact = curvatures if curvatures.device.type == "cuda" else curvatures.cpu()
    cumulated = exact.double().cumsum(2)
    total = cumulated[..., -1:]
    generator = torch.Generator().manual_seed(0)
    strata = torch.arange(DRAWS) + torch.rand(DRAWS, generator=generator, dtype=torch.float64)
    points = strata.to(total) / DRAWS * total
    examples = torch.searchsorted(cumulated, points).clamp_max_(n_examples - 1)
    return examples.to(curvatures.device), (total / DRAWS).to(curvatures).expand(examples.shape)
