"""Fits of convex probes in which every step reads all training examples."""

from __future__ import annotations

import torch
from torch import Tensor

from probes.training.batches import Batches, blocks
from probes.training.family import Parameters, ProbeFamily
from probes.training.features import Features
from probes.training.losses import LogLoss
from probes.training.quasi_newton import minimise

_CONFIDENCE = 0.3
"""The curvature of a fitted probe's loss, over that of one that knows label frequencies only."""


def fit_full_batch(
    train: Batches,
    family: ProbeFamily,
    loss: LogLoss,
    start: Parameters,
    strengths: Tensor,
    n_steps: int,
) -> Parameters:
    """Fit probes of a convex family by L-BFGS.

    Args:
        train: features in their principal axes; labels and weights of shape (K, N) or (1, N).
        start: starting parameters, one weight and one bias; leading dimensions (L, K).
        strengths: of L2. Shape (L, K).
    """
    weight, bias = start
    labels = train.labels.expand(weight.shape[1], -1)
    sizes = [weight[0, 0].numel(), bias[0, 0].numel()]
    weights = train.weights / train.weights.sum(1, keepdim=True)

    def apart(point: Tensor) -> Parameters:
        weight_, bias_ = point.split(sizes, 2)
        return [weight_.unflatten(2, weight.shape[2:]), bias_]

    def together(weight: Tensor, bias: Tensor) -> Tensor:
        return torch.cat([weight.flatten(2), bias], 2)

    # Other devices have no float64.
    exact = torch.float64 if weight.device.type in ("cpu", "cuda") else torch.float32
    penalty = together(strengths[:, :, None, None].expand_as(weight), torch.zeros_like(bias))

    def evaluate(point: Tensor) -> tuple[Tensor, Tensor]:
        parameters, value = apart(point), 0.5 * (penalty * point * point).sum(2).to(exact)
        gradient = penalty * point
        for part in blocks(len(train.sentences)):
            of_part = labels[:, part], weights[:, part]

            def errors(outputs: Tensor, of_part: tuple[Tensor, Tensor] = of_part) -> Tensor:
                value.add_(loss.total(outputs, *of_part))
                return loss.errors(outputs, *of_part)

            x = train.features.kept_block(part)
            gradient += together(*family.gradient(parameters, x, errors))
        return value, gradient

    shares = loss.shares(labels, train.weights.expand_as(labels), bias.shape[2])
    of_outputs = _CONFIDENCE * shares * (1 - shares)
    of_weights = of_outputs[..., None] * _mean_squares(train.features)[:, None, None]
    curvature = together(of_weights.expand_as(weight), of_outputs.expand_as(bias)) + penalty
    return apart(minimise(evaluate, together(weight, bias), curvature, n_steps))


def _mean_squares(features: Features) -> Tensor:
    """The mean square of each feature. Shape (L, H)."""
    n_layers, n_examples, n_features = features.shape
    total = torch.zeros(n_layers, n_features, device=features.device)
    for part in blocks(n_examples):
        total += features.kept_block(part).square().sum(1)
    return total / n_examples
