"""Minibatch Adam for many cells at once: what every iterative fit runs on."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice

import torch
from torch import Tensor
from torch.nn.functional import pad

from probes.compute.allocator import give_back
from probes.compute.precision import fast_products
from probes.records.probe_spec import ProbeSpec
from probes.training.adam import Adam
from probes.training.batches import Batches
from probes.training.family import Head, Parameters
from probes.training.fits import Fit, mean_loss
from probes.training.losses import Loss


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
        """One schedule for all cells; see `Course`."""
        course = Course(self, start, strengths, steps, schedule, order)
        return next(run_together([course]))


class Course:
    """A fit of cells (layer, k) by one schedule, on its way.

    Of each cell the parameters with the least dev loss are found; without dev, the last.

    Args:
        start: starting parameters. Leading dimensions (L, K), or (L, 1) for all alike.
        strengths: shape (L, K).
        steps: Adam's at the start, float64. Shape (L,).
        order: seed of the order of batches.

    Attributes:
        start: starting parameters of every cell. Leading dimensions (L, K).
        n_steps: how many it takes.
    """

    def __init__(
        self,
        trainer: Trainer,
        start: Parameters,
        strengths: Tensor,
        steps: Tensor,
        schedule: Schedule,
        order: int = 0,
    ) -> None:
        self.trainer, self.strengths = trainer, strengths
        self._steps, self._schedule = steps, schedule
        self._train = train = trainer.train.joined(schedule.join)
        cells = strengths.shape[1]
        self.start = [p.expand(-1, cells, *p.shape[2:]).to(train.features.device) for p in start]
        n_batches = len(train.bounds) - 1
        # By the mean batch, not by this one: examples of a small batch weigh no more.
        self._weights = train.weights / (train.weights.sum(1, keepdim=True) / n_batches)
        full = max(trainer.spec.passes * n_batches, trainer.spec.min_steps / schedule.join)
        self.n_steps = math.ceil(schedule.share * full)
        self._batches = shuffled_batches(train, order)

    def begin(self, parameters: Parameters) -> None:
        """Go on from here, moving `parameters` in place."""
        self._parameters = parameters
        self._adam = Adam(parameters, self._steps.tolist())
        checks, strengths = self._schedule.checks, self.strengths
        self._check_at = {math.ceil(self.n_steps * i / checks) for i in range(1, checks + 1)}
        self._best = Fit(
            [p.clone() for p in parameters],
            strengths,
            self._steps.to(strengths)[:, None].expand_as(strengths),
            torch.zeros_like(strengths),
            torch.full_like(strengths, math.inf),
        )

    def batch(self) -> tuple[Tensor, Tensor, Tensor]:
        """What the next step reads: features (L, n, H), labels and weights (K, n)."""
        part, meant = next(self._batches)
        x = self._train.features.rounded(part)
        return x, self._train.labels[:, part], self._weights[:, part] * meant

    def step(self, number: int, gradients: Sequence[Tensor]) -> None:
        """Take a step, and look at dev where the schedule says so."""
        penalty = self.strengths[:, :, None, None]
        for weight, gradient in zip(self._parameters[::2], gradients[::2], strict=True):
            gradient.addcmul_(weight, penalty)
        self._adam.step(gradients, (1 - number / self.n_steps) ** self._schedule.decay)
        if number in self._check_at:
            self._keep_best(number / self.n_steps)
            give_back()

    def found(self) -> Fit:
        """The best of each cell."""
        trainer, best = self.trainer, self._best
        if trainer.dev is None or self._schedule.checks == 1:
            return best
        exact = mean_loss(trainer.head, trainer.loss, best.parameters, trainer.dev)
        # What no look found finite is still where it began.
        return replace(best, dev_loss=torch.where(best.dev_loss.isfinite(), exact, math.inf))

    def _keep_best(self, at: float) -> None:
        """The better of two, by losses that may be rounded where many are looked at."""
        trainer, best = self.trainer, self._best
        if trainer.dev is None:
            self._best = replace(best, parameters=self._parameters)
            return
        rounded = self._schedule.checks > 1
        dev_loss = mean_loss(
            trainer.head, trainer.loss, self._parameters, trainer.dev, rounded=rounded
        )
        better = dev_loss < best.dev_loss
        kept = [
            torch.where(better.view(*better.shape, *[1] * (p.dim() - 2)), p, old)
            for p, old in zip(self._parameters, best.parameters, strict=True)
        ]
        self._best = replace(
            best,
            parameters=kept,
            stopped=torch.where(better, at, best.stopped),
            dev_loss=torch.where(better, dev_loss, best.dev_loss),
        )


_SIDE_BY_SIDE = 10
"""As many as a code has prefixes."""


def courses_at_once(device: torch.device) -> int:
    """How many courses one step fits at most.

    Small products leave a GPU idle. A CPU's caches hold one course better than several
    (docs/performance.md).
    """
    return 1 if device.type == "cpu" else _SIDE_BY_SIDE


def run_together(courses: Iterable[Course]) -> Iterator[Fit]:
    """What several courses find, each as it would alone but for rounding.

    In the products of a step they stand where layers do: one multiplies the batches of all.

    Args:
        courses: of as many layers and cells, of the same head and loss; the rest may differ.
    """
    rest = iter(courses)
    for first in rest:
        at_once = courses_at_once(first.trainer.train.features.device)
        group = [first, *islice(rest, at_once - 1)]
        _run(group)
        yield from (course.found() for course in group)


def _run(courses: Sequence[Course]) -> None:
    # Those that still go on are then the first ones.
    courses = sorted(courses, key=lambda course: -course.n_steps)
    head, loss = courses[0].trainer.head, courses[0].trainer.loss
    n_layers = len(courses[0].strengths)
    parameters = [torch.cat(of) for of in zip(*(course.start for course in courses), strict=True)]
    for course, *own in zip(courses, *(p.split(n_layers) for p in parameters), strict=True):
        course.begin(own)
    for number in range(1, courses[0].n_steps + 1):
        going = [course for course in courses if number <= course.n_steps]
        x, labels, weights = _as_layers([course.batch() for course in going])
        errors = partial(loss.errors, labels=labels, weights=weights)
        with fast_products():
            gradients = head.gradient([p[: len(x)] for p in parameters], x, errors)
        for course, *own in zip(going, *(g.split(n_layers) for g in gradients), strict=True):
            course.step(number, own)


def _as_layers(batches: Sequence[tuple[Tensor, Tensor, Tensor]]) -> tuple[Tensor, ...]:
    """Batches of B courses as one of B · L layers; examples that a batch lacks weigh nothing.

    Args:
        batches: features (L, n, H), labels and weights (K, n) of each.

    Returns:
        the same of all; labels and weights (B · L, K, n) if there are several.
    """
    if len(batches) == 1:
        return batches[0]
    width = max(x.shape[1] for x, _, _ in batches)
    lacking = [width - x.shape[1] for x, _, _ in batches]
    features, *of_cells = zip(*batches, strict=True)
    x = torch.cat([pad(x, (0, 0, 0, n)) for x, n in zip(features, lacking, strict=True)])
    n_layers = len(x) // len(batches)
    return x, *(
        torch.stack(
            [pad(values, (0, n)) for values, n in zip(each, lacking, strict=True)]
        ).repeat_interleave(n_layers, 0)
        for each in of_cells
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
