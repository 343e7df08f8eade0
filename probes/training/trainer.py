"""Minibatch Adam for many cells at once: fits of MLPs, and the start of convex ones."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby, islice

import torch
from torch import Tensor
from torch.nn.functional import pad

from probes.common.terminal import progress
from probes.records.probe_spec import ProbeSpec
from probes.training.bags import Bags
from probes.training.batches import Batches, shuffled_batches
from probes.training.family import FittedProbes, Parameters, ProbeFamily
from probes.training.fitted import mean_loss
from probes.training.losses import Loss

_WIDTH = 512
"""Number of features for which a convex fit has the learning rate of the specification."""


def convex_rate(spec: ProbeSpec, n_features: int) -> float:
    """Adam's initial learning rate in convex fits.

    A step of Adam moves an output in proportion to the number of features. Convex fits are not
    stopped by dev loss, so they need smaller steps for wide features. Narrow features have larger
    weights, which larger steps reach sooner.
    """
    ratio = _WIDTH / n_features
    return spec.learning_rate * min(ratio, math.sqrt(ratio))


def scheduled_steps(spec: ProbeSpec, n_batches: int) -> int:
    """The number of steps of a fit."""
    return max(spec.epochs * n_batches, spec.min_steps)


class Trainer:
    """Data, family and loss of a fit. Unless it is convex, the stopping point is chosen on dev."""

    def __init__(
        self, train: Batches, dev: Batches, family: ProbeFamily, loss: Loss, spec: ProbeSpec
    ) -> None:
        self.train, self.dev, self.family, self.loss, self.spec = train, dev, family, loss, spec

    def of_cells(self, cells: list[int]) -> Trainer:
        """A trainer for some of the cells."""
        train, dev = self.train.of_cells(cells), self.dev.of_cells(cells)
        return Trainer(train, dev, self.family, self.loss, self.spec)

    def with_train(self, train: Batches) -> Trainer:
        """A trainer with other training examples or features."""
        return Trainer(train, self.dev, self.family, self.loss, self.spec)

    def initial(self, seeds: Sequence[int], n_outputs: int) -> Parameters:
        """Starting parameters; those of cell k depend only on `seeds[k]`.

        Args:
            n_outputs: number of classes; 0 for a regression.
        """
        n_layers, _, n_features = self.train.features.shape
        return self.family.initial(n_layers, list(seeds), n_features, max(1, n_outputs))


class MinibatchFit:
    """A fit of cells (layer, k). Each cell keeps the parameters with the least dev loss.

    Args:
        start: starting parameters. Leading dimensions (L, K), or (L, 1) if cells share them.
        strengths: L2 strengths. Shape (L, K).
        order: seed of the order of batches.

    Attributes:
        start: starting parameters of every cell. Leading dimensions (L, K).
        n_steps: number of steps.
        best: the best parameters of each cell; set by `begin`.
    """

    def __init__(
        self, trainer: Trainer, start: Parameters, strengths: Tensor, order: int = 0
    ) -> None:
        self.trainer, self.strengths = trainer, strengths
        train = trainer.train
        cells, device = strengths.shape[1], train.features.device
        self.start = [p.expand(-1, cells, *p.shape[2:]).to(device) for p in start]
        n_batches = len(train.bounds) - 1
        # Divided by the mean weight of a batch, so that examples of a small batch count no more.
        self._weights = train.weights / (train.weights.sum(1, keepdim=True) / n_batches)
        self.n_steps = scheduled_steps(trainer.spec, n_batches)
        self._batches = shuffled_batches(train, order)

    def begin(self, parameters: Parameters) -> None:
        """Start from `parameters`, which later steps update in place."""
        self._parameters = parameters
        trainer, strengths = self.trainer, self.strengths
        rate, n_features = trainer.spec.learning_rate, trainer.train.features.shape[2]
        # One weight per feature, as in convex probes.
        rate = convex_rate(trainer.spec, n_features) if trainer.family.reads_tokens else rate
        self._adam = Adam(parameters, rate)
        checks = trainer.spec.checks
        self._check_at = {math.ceil(self.n_steps * i / checks) for i in range(1, checks + 1)}
        self.best = FittedProbes(
            [p.clone() for p in parameters],
            strengths,
            torch.zeros_like(strengths),
            torch.full_like(strengths, math.inf),
        )

    def batch(self) -> tuple[Tensor, Tensor, Tensor]:
        """Next batch: features (L, n, H), labels and weights (K, n) or (1, n)."""
        part, mask = next(self._batches)
        x = self.trainer.train.features.kept_block(part)
        return x, self.trainer.train.labels[:, part], self._weights[:, part] * mask

    def step(self, number: int, gradients: Sequence[Tensor]) -> None:
        """Take a step, and compute the dev loss if it is due."""
        penalty = self.strengths[:, :, None, None]
        for weight, gradient in zip(self._parameters[::2], gradients[::2], strict=True):
            gradient.addcmul_(weight, penalty)
        self._adam.step(gradients, 1 - number / self.n_steps)
        progress.advance()
        if number in self._check_at:
            self._keep_best(number / self.n_steps)

    def _keep_best(self, share: float) -> None:
        """Keep the parameters of cells whose dev loss is the least so far."""
        trainer, best = self.trainer, self.best
        dev_loss = mean_loss(
            trainer.family, trainer.loss, self._parameters, trainer.dev, repeated=True
        )
        better = dev_loss < best.dev_loss
        best_parameters = [
            torch.where(better.view(*better.shape, *[1] * (p.dim() - 2)), p, old)
            for p, old in zip(self._parameters, best.parameters, strict=True)
        ]
        self.best = replace(
            best,
            parameters=best_parameters,
            stopped=torch.where(better, share, best.stopped),
            dev_loss=torch.where(better, dev_loss, best.dev_loss),
        )


_FITS_AT_ONCE = 10
"""Number of fits that take steps together, except on a CPU."""


def fits_at_once(device: torch.device) -> int:
    """Maximum number of fits that take their steps together.

    One fit's small products leave a GPU idle, but a CPU's caches hold one fit better than several
    (docs/performance.md).
    """
    return 1 if device.type == "cpu" else _FITS_AT_ONCE


def run_fits(fits: Iterable[MinibatchFit]) -> Iterator[FittedProbes]:
    """Run fits, several at once on a GPU; results differ by rounding only.

    Fits with equal numbers of layers and cells are stacked along the dimension of layers.

    Args:
        fits: fits of the same family and loss.
    """
    for _, same_shape in groupby(fits, key=lambda fit: fit.strengths.shape):
        waiting_fits = iter(same_shape)
        for first in waiting_fits:
            features = first.trainer.train.features
            # Bags of one batch have other lengths than those of the next.
            at_once = 1 if isinstance(features, Bags) else fits_at_once(features.device)
            group = [first, *islice(waiting_fits, at_once - 1)]
            _run_together(group)
            yield from (fit.best for fit in group)


def _run_together(fits: Sequence[MinibatchFit]) -> None:
    # Longest first, so that running fits always precede finished ones.
    fits = sorted(fits, key=lambda fit: -fit.n_steps)
    family, loss = fits[0].trainer.family, fits[0].trainer.loss
    n_layers = len(fits[0].strengths)
    parameters = [torch.cat(starts) for starts in zip(*(fit.start for fit in fits), strict=True)]
    for fit, *tensors in zip(fits, *(p.split(n_layers) for p in parameters), strict=True):
        fit.begin(tensors)
    for step in range(1, fits[0].n_steps + 1):
        running = [fit for fit in fits if step <= fit.n_steps]
        x, labels, weights = _stack([fit.batch() for fit in running])
        n_running = len(running) * n_layers
        loss_gradient = partial(loss.errors, labels=labels, weights=weights)
        gradients = family.gradient([p[:n_running] for p in parameters], x, loss_gradient)
        for fit, *tensors in zip(running, *(g.split(n_layers) for g in gradients), strict=True):
            fit.step(step, tensors)


def _stack(batches: Sequence[tuple[Tensor, Tensor, Tensor]]) -> tuple[Tensor, ...]:
    """Stack the batches of B fits along layers, padded with examples of weight 0.

    Args:
        batches: features (L, n, H), labels and weights (K, n) or (1, n) of each.

    Returns:
        features (B · L, n, H), labels and weights (B · L, K or 1, n); a single batch unchanged.
    """
    if len(batches) == 1:
        return batches[0]
    width = max(x.shape[1] for x, _, _ in batches)
    padding = [width - x.shape[1] for x, _, _ in batches]
    features, *of_cells = zip(*batches, strict=True)
    x = torch.cat([pad(x, (0, 0, 0, n)) for x, n in zip(features, padding, strict=True)])
    n_layers = len(x) // len(batches)
    return x, *(
        torch.stack(
            [pad(values, (0, n)) for values, n in zip(tensors, padding, strict=True)]
        ).repeat_interleave(n_layers, 0)
        for tensors in of_cells
    )


class Adam:
    """Adam (Kingma and Ba 2015, algorithm 1) on torch's fused kernel, given gradients by hand.

    Args:
        parameters: float32, contiguous, on one device.
        learning_rate: initial rate (α in the paper).
    """

    def __init__(self, parameters: Sequence[Tensor], learning_rate: float) -> None:
        self._parameters, self._learning_rate = list(parameters), learning_rate
        self._adam = torch.optim.Adam(
            self._parameters, lr=learning_rate, betas=(0.9, 0.99), eps=1e-8, fused=True
        )

    def step(self, gradients: Sequence[Tensor], share: float) -> None:
        """Take a step against `gradients` with `share` times the initial learning rate."""
        for parameter, gradient in zip(self._parameters, gradients, strict=True):
            parameter.grad = gradient.contiguous()
        self._adam.param_groups[0]["lr"] = share * self._learning_rate
        self._adam.step()
        self._adam.zero_grad()
