"""Minibatch Adam for many cells at once: what every iterative fit runs on."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice

import torch
from torch import Tensor

from probes.adam import Adam
from probes.allocator import give_back
from probes.cells import Batches, Fit, mean_loss
from probes.config import ProbeSpec
from probes.heads import Head, Loss, Parameters
from probes.precision import fast_products


@dataclass(frozen=True)
class Schedule:
    """How a fit's steps go.

    Attributes:
        decay: the size of steps falls to 0 as (1 - t)^decay.
        share: length as a share of the full one.
        checks: how often the dev loss is looked at, the last time at the end.
        join: how many batches of the data make one of the fit.
    """

    decay: int = 1
    share: float = 1.0
    checks: int = 1
    join: int = 1


class Trainer:
    """Fits cells (layer, k) side by side.

    Args:
        dev: what stopping points are chosen by; None for fits that run to their end.
    """

    def __init__(
        self, train: Batches, dev: Batches | None, head: Head, loss: Loss, spec: ProbeSpec
    ) -> None:
        self.train, self.dev, self.head, self.loss, self.spec = train, dev, head, loss, spec

    def of_cells(self, cells: slice) -> Trainer:
        """The same for the labels and weights of some cells alone."""
        return self._over(lambda batches: batches.of_cells(cells))

    def of_layers(self, layers: Sequence[int]) -> Trainer:
        """The same for some layers alone, by their place."""
        return self._over(lambda batches: batches.of_layers(layers))

    def drawn(self) -> Trainer:
        """The same without the training examples that weigh nothing in any cell."""
        return Trainer(self.train.drawn(), self.dev, self.head, self.loss, self.spec)

    def _over(self, of: Callable[[Batches], Batches]) -> Trainer:
        dev = None if self.dev is None else of(self.dev)
        return Trainer(of(self.train), dev, self.head, self.loss, self.spec)

    def steps(self, size: float) -> Tensor:
        """The same for all layers, as `run` takes them."""
        return torch.full(self.train.features.shape[:1], size, dtype=torch.float64)

    def run(
        self,
        start: Parameters,
        strengths: Tensor,
        steps: Tensor,
        schedule: Schedule,
        order: int = 0,
    ) -> Fit:
        """One schedule for all cells.

        Of each cell the parameters with the least dev loss are returned; without dev, the last.

        Args:
            start: starting parameters. Leading dimensions (L, K), or (L, 1) for all alike.
            strengths: shape (L, K).
            steps: Adam's at the start, float64. Shape (L,).
            order: seed of the order of batches.
        """
        train, device = self.train.joined(schedule.join), self.train.features.device
        n_cells = strengths.shape[1]
        wide = (p.expand(-1, n_cells, *p.shape[2:]) for p in start)
        parameters = [p.to(device, copy=True).contiguous() for p in wide]
        adam = Adam(parameters, steps.tolist())
        n_batches = len(train.bounds) - 1
        # By the mean batch, not by this one: examples of a small batch weigh no more.
        weights = train.weights / (train.weights.sum(1, keepdim=True) / n_batches)
        penalty = strengths[:, :, None, None]
        full = max(self.spec.passes * n_batches, self.spec.min_steps / schedule.join)
        n_steps = math.ceil(schedule.share * full)
        checks = schedule.checks
        check_at = {math.ceil(n_steps * i / checks) for i in range(1, checks + 1)}
        best = Fit(
            [p.clone() for p in parameters],
            strengths,
            steps.to(strengths)[:, None].expand_as(strengths),
            torch.zeros_like(strengths),
            torch.full_like(strengths, math.inf),
        )
        for step, (part, meant) in enumerate(islice(shuffled_batches(train, order), n_steps), 1):
            x = train.features.rounded(part)
            here = weights[:, part] * meant
            labels = train.labels[:, part]
            errors = partial(self.loss.errors, labels=labels, weights=here)
            with fast_products():
                gradients = self.head.gradient(parameters, x, errors)
            for weight, gradient in zip(parameters[::2], gradients[::2], strict=True):
                gradient.addcmul_(weight, penalty)
            adam.step(gradients, (1 - step / n_steps) ** schedule.decay)
            if step in check_at:
                best = self._keep_best(best, parameters, step / n_steps, rounded=checks > 1)
                give_back()
        if self.dev is None or checks == 1:
            return best
        exact = mean_loss(self.head, self.loss, best.parameters, self.dev)
        # What no look found finite is still where it began.
        return replace(best, dev_loss=torch.where(best.dev_loss.isfinite(), exact, math.inf))

    def _keep_best(self, best: Fit, parameters: Parameters, at: float, *, rounded: bool) -> Fit:
        """The better of two, by losses that may be rounded where many are looked at."""
        if self.dev is None:
            return replace(best, parameters=parameters)
        dev_loss = mean_loss(self.head, self.loss, parameters, self.dev, rounded=rounded)
        better = dev_loss < best.dev_loss
        kept = [
            torch.where(better.view(*better.shape, *[1] * (p.dim() - 2)), p, old)
            for p, old in zip(parameters, best.parameters, strict=True)
        ]
        return replace(
            best,
            parameters=kept,
            stopped=torch.where(better, at, best.stopped),
            dev_loss=torch.where(better, dev_loss, best.dev_loss),
        )


_WIDTHS = 32
"""Batches are read in multiples of so many examples."""


def shuffled_batches(train: Batches, order: int = 0) -> Iterator[tuple[slice, Tensor]]:
    """Batches without end, shuffled anew for each pass.

    Some are read a little wider than they are, since products are compiled anew for each shape.

    Yields:
        which examples to read, and which of those are meant (n,).
    """
    bounds = torch.tensor(train.bounds)
    first, last, n_examples = bounds[:-1], bounds[1:], int(bounds[-1])
    # A batch of which a bootstrap sample has nothing is read as well, and none of it meant.
    widths = ((last - first).clamp_min(1) + _WIDTHS - 1) // _WIDTHS * _WIDTHS
    widths.clamp_max_(n_examples)
    starts = first.clamp_max(n_examples - widths)
    parts = [slice(a, a + n) for a, n in zip(starts.tolist(), widths.tolist(), strict=True)]
    meant = []
    for part, low, high in zip(parts, first, last, strict=True):
        places = torch.arange(part.start, part.stop)
        meant.append(((places >= low) & (places < high)).to(train.features.device))
    generator = torch.Generator().manual_seed(order)
    while True:
        for batch in torch.randperm(len(parts), generator=generator).tolist():
            yield parts[batch], meant[batch]
