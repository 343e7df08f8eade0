"""Scalar mixes of layers, learnt together with a probe on top (Tenney et al. 2019a, eq. 1).

The mix of reach k reads the first k + 1 layers:

    γ(s) · Σ_{j ≤ k} s_j x_j,   s = softmax(a_0, …, a_k),

where x_j are the standardised features of layer j. The paper learns γ. Under a penalty on the
probe's weights, a free γ would only undo the penalty. We choose γ so that a mix has the variance of
the layers in it:

    γ(s)² = Σ_j s_j R_jj / Σ_ij s_i s_j R_ij,

where R_ij = E[x_i x_j] is the mean over examples and features. A penalty then has the same meaning
for every mix, and the mix of reach 0 is layer 0 itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import islice

import torch
from torch import Tensor

from probes.common.terminal import progress
from probes.compute.memory import device_of_sums
from probes.records.probe_spec import ProbeSpec
from probes.training.batches import (
    Batches,
    batch_bounds,
    bootstrap_batches,
    evaluation_slices,
    rebatched,
    shuffled_batches,
)
from probes.training.families import family_of
from probes.training.family import LossGradient, Parameters, ProbeFamily
from probes.training.features import Features, InAxes
from probes.training.fitted import mean_loss
from probes.training.losses import loss_for
from probes.training.trainer import Adam, convex_rate

MIX_BATCH = 256
"""Examples per step."""

_PASSES = 2
"""Passes over the training examples, if they take `_MIN_STEPS` or more."""

_MIN_STEPS = 600
"""Minimum length of the schedule. With many examples, mixes converge long before their probes."""

_LEARNING_RATE = 0.06
"""Adam's initial learning rate for a. It falls to 0 quadratically, as does the probe's here."""


class Mixed(Features):
    """Features of C mixes, computed from those of J layers block by block.

    Args:
        scales: γ(s) · s of each mix. Shape (C, J).
    """

    def __init__(self, layers: Features, scales: Tensor) -> None:
        self._layers, self._scales, self.device = layers, scales, layers.device

    @property
    def shape(self) -> tuple[int, int, int]:
        """C mixes, N examples, H features."""
        _, n_examples, n_features = self._layers.shape
        return len(self._scales), n_examples, n_features

    def block(self, part: slice) -> Tensor:
        """Mixes of consecutive examples. Shape (C, n, H)."""
        return mix(self._layers.block(part), self._scales)

    @cached_property
    def in_principal_axes(self) -> InAxes:
        """Mixes in common axes of all layers, so that no block has to be rotated."""
        layers, axes = self._layers.in_common_axes
        return InAxes(Mixed(layers, self._scales), axes)


def mix(x: Tensor, scales: Tensor) -> Tensor:
    """Weighted sums of layers: (J, n, H) and (C, J) → (C, n, H)."""
    return (scales @ x.flatten(1)).view(len(scales), *x.shape[1:])


def mix_scales(weights: Tensor, overlap: Tensor) -> Tensor:
    """γ(s) · s of mixes s (C, J), given R (J, J). Shape (C, J)."""
    layers = (weights * overlap.diagonal()).sum(1)
    # Mixes of constant layers are constant: avoid 0 / 0.
    mixes = ((weights @ overlap) * weights).sum(1).clamp_min(1e-12)
    return weights * (layers / mixes).sqrt()[:, None]


def layer_overlap(features: Features) -> Tensor:
    """R, the mean product of two layers' features. Shape (J, J)."""
    n_layers, n_examples, n_features = features.shape
    sum_device = device_of_sums(features.device)
    total = torch.zeros(n_layers, n_layers, dtype=torch.float64, device=sum_device)
    for part in evaluation_slices(n_examples):
        x = features.block(part).flatten(1)
        total += (x @ x.T).to(sum_device)
    return (total / (n_examples * n_features)).float().to(features.device)


def even_logits(reach: Sequence[int], n_layers: int) -> Tensor:
    """Initial logits a, for uniform weights over the layers within reach. Shape (C, J)."""
    beyond = torch.arange(n_layers) > torch.tensor(reach)[:, None]
    return torch.zeros(beyond.shape).masked_fill(beyond, -math.inf)


def mix_steps(sentences: Tensor) -> int:
    """Number of steps for learning mixes.

    Args:
        sentences: the sentence of each training example, equal ones adjacent. Shape (N,).
    """
    n_batches = len(batch_bounds(sentences, MIX_BATCH)) - 1
    return max(_PASSES * n_batches, _MIN_STEPS)


def learn_mixes(
    train: Batches,
    dev: Batches,
    n_outputs: int,
    spec: ProbeSpec,
    overlap: Tensor,
    reach: Sequence[int],
    samples: Sequence[int],
) -> Tensor:
    """Learn the weights s of C cells; each is a mix with a probe on top, learnt together.

    The result has the weights with the least dev loss, which is computed as often as in other fits.

    Args:
        train, dev: features of J layers; labels and weights of shape (1, N).
        overlap: R of `layer_overlap`. Shape (J, J).
        reach: the last layer of each of the C mixes.
        samples: bootstrap sample of each mix; see `probes.training.fit.FitSeed`.

    Returns:
        the weights, shape (C, J).

    Raises:
        ValueError: the family is not convex. Mixes found with MLPs score below single layers.
    """
    device = train.features.device
    family, loss = family_of(spec), loss_for(n_outputs, train.sets)
    if not family.convex:
        raise ValueError(f"{spec.family}: mixes are learnt with convex families only")
    n_layers, n_examples, n_features = train.features.shape
    train = rebatched(train, MIX_BATCH)
    in_axes = train.features.in_common_axes
    logits = even_logits(reach, n_layers).to(device)
    # Cells stand where other fits have layers: each reads features of its own.
    start = family.initial(len(reach), [0], n_features, max(1, n_outputs))
    parameters = [p.to(device) for p in start]
    penalty = spec.l2[0] / n_examples
    n_batches = len(train.bounds) - 1
    weights = bootstrap_batches(train, samples).weights[:, None]
    weights = weights / (weights.sum(-1, keepdim=True) / n_batches)
    of_probes = Adam(parameters, convex_rate(spec, n_features))
    of_mixes = Adam([logits], _LEARNING_RATE)
    n_steps = mix_steps(train.sentences.cpu())
    check_at = {math.ceil(n_steps * i / spec.checks) for i in range(1, spec.checks + 1)}
    best = logits.softmax(1)
    least = torch.full((len(reach),), math.inf, device=device)
    for step, (part, mask) in enumerate(islice(shuffled_batches(train), n_steps), 1):
        x = in_axes.features.kept_block(part)
        batch_weights = weights[..., part] * mask
        loss_gradient = partial(loss.errors, labels=train.labels[:, part], weights=batch_weights)
        *gradients, by_logits = _mix_gradients(
            family, parameters, logits, overlap, x, loss_gradient
        )
        gradients[::2] = [
            g.add(weight, alpha=penalty)
            for g, weight in zip(gradients[::2], parameters[::2], strict=True)
        ]
        decay = (1 - step / n_steps) ** 2
        of_probes.step(gradients, decay)
        of_mixes.step([by_logits], decay)
        progress.advance()
        if step in check_at:
            current = logits.softmax(1)
            mixed = Mixed(dev.features, mix_scales(current, overlap))
            probes = in_axes.rotated_back(parameters)
            dev_loss = mean_loss(family, loss, probes, replace(dev, features=mixed))[:, 0]
            best = torch.where((dev_loss < least)[:, None], current, best)
            least = torch.minimum(dev_loss, least)
    return best


def _mix_gradients(
    family: ProbeFamily,
    parameters: Parameters,
    logits: Tensor,
    overlap: Tensor,
    x: Tensor,
    loss_gradient: LossGradient,
) -> tuple[Tensor, ...]:
    """Gradients of the loss with respect to each of `parameters`, then to `logits`.

    Args:
        x: features of all layers. Shape (J, n, H).
        loss_gradient: derivative of the loss with respect to outputs (C, 1, outputs, n).
    """
    leaves = [p.detach().requires_grad_() for p in (*parameters, logits)]
    with torch.enable_grad():
        mixed = mix(x, mix_scales(leaves[-1].softmax(1), overlap))
        outputs = family.checked_outputs(leaves[:-1], mixed)
    return torch.autograd.grad(outputs, leaves, loss_gradient(outputs.detach()))
