"""Fits all cells of a task at once.

A cell is one probe: (layer, label set, seed), in the order that `cells` states. Seed 0 trains on
the training set as it is; every other seed on a bootstrap sample of its sentences, as example
weights, so that all cells read the same features. Strength and stopping point are chosen on dev;
test is not seen. A cell with control labels is the probe of its layer and seed again: of the same
strength, sample and initialisation.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice

import torch
from torch import Tensor

from probes.adam import Adam
from probes.allocator import give_back, kept_memory
from probes.cells import (
    Batches,
    Fit,
    best_per_seed,
    blocks,
    bootstrap_weights,
    mean_loss,
    of_seeds,
    side_by_side,
)
from probes.config import ProbeSpec
from probes.families import head_of
from probes.features import Features
from probes.heads import CrossEntropy, Head, LogLoss, Loss, Parameters, SquaredError
from probes.multi_label import BinaryCrossEntropy
from probes.precision import fast_products
from probes.ridge import ridge


@kept_memory()
def fit(train: Batches, dev: Batches, n_outputs: int, spec: ProbeSpec, seeds: list[int]) -> Fit:
    """Fit all cells, strength and stopping point chosen on dev loss.

    The strength is the one that suits the first cell; in a regression with a linear probe, each
    seed's real labels.

    Args:
        train, dev: labels and weights of shape (K, N), K a multiple of the number of seeds. The
            weights of train are multiplied by each seed's bootstrap counts.
        n_outputs: number of classes; 0 for regression.
    """
    device = train.features.device
    counts = torch.stack([bootstrap_weights(train.sentences.cpu(), seed) for seed in seeds])
    n_sets = len(train.labels) // len(seeds)
    train = replace(train, weights=counts.to(device).repeat(n_sets, 1) * train.weights)
    n_layers, _, n_features = train.features.shape
    if spec.family == "linear" and n_outputs == 0:
        every = sorted({a * b for a in spec.strengths for b in spec.refinement})
        closed_form = torch.tensor(every, dtype=torch.float64).expand(n_layers, -1)
        return ridge(train, dev, closed_form, len(seeds))
    head, loss = family(spec, n_outputs, train.sets)
    first = slice(0, 1)
    trainer = _Trainer(train.of_cells(first), dev.of_cells(first), head, loss, spec)
    search = trainer.search(head.initial(n_layers, seeds[:1], n_features, max(1, n_outputs)))
    coarse = best_per_seed(search, 1, search.strength.shape[1])
    if spec.family == "linear":
        start = head.initial(n_layers, seeds * n_sets, n_features, n_outputs)
        for all_cells, best in zip(start, coarse.parameters, strict=True):
            all_cells[:, : len(seeds)] = best
        strengths = _between(search)[:, None].expand(-1, len(train.labels))
        trainer = _Trainer(train, dev, head, loss, spec)
        return trainer.run(start, strengths.contiguous(), _near_the_end(spec))
    fits = []
    strengths = coarse.strength.expand(-1, n_sets).contiguous()
    for place, seed in enumerate(seeds):
        # Where an MLP ends depends on the order of its batches too: each seed has its own.
        cells = slice(place, None, len(seeds))
        # A bootstrap sample lacks more than a third of the sentences.
        sample = train.of_cells(cells).drawn()
        trainer = _Trainer(sample, dev.of_cells(cells), head, loss, spec)
        start = head.initial(n_layers, [seed] * n_sets, n_features, max(1, n_outputs))
        fits.append(trainer.run(start, strengths, _full_schedule(spec), seed))
    return of_seeds(fits)


@kept_memory()
def fit_given(
    train: Batches, n_outputs: int, spec: ProbeSpec, strengths: Tensor, seeds: list[int]
) -> Parameters:
    """Fit all cells at given strengths to the end of the schedule, without dev.

    Args:
        train: labels and weights of shape (K, N), the weights as they are meant.
        n_outputs: number of classes.
        strengths: shape (L, K).
        seeds: what cells' initialisations are drawn from, the same for every label set.
    """
    head, loss = head_of(spec), log_loss(train.sets)
    n_layers, _, n_features = train.features.shape
    n_sets = len(train.labels) // len(seeds)
    start = head.initial(n_layers, seeds * n_sets, n_features, n_outputs)
    # A short schedule is not to spend its steps on how frequent the labels are.
    start[-1] = loss.prior(train.labels, train.weights, n_outputs).expand(n_layers, -1, -1)
    # Without dev to stop by, the end is to be quiet.
    schedule = _Schedule(spec.step, decay=2)
    return _Trainer(train, None, head, loss, spec).run(start, strengths, schedule).parameters


@kept_memory()
def fit_at(
    train: Batches,
    dev: Batches,
    n_outputs: int,
    spec: ProbeSpec,
    strengths: Tensor,
    near: Parameters,
) -> Fit:
    """Fit one cell per layer, seed 0's, at given strengths; the stopping point is dev's choice.

    Args:
        near: parameters near the end, from which a convex fit starts. Leading dimensions (L, 1).
        train, dev: labels and weights of shape (1, N).
        n_outputs: number of classes; 0 for regression.
        strengths: shape (L, 1).
    """
    if spec.family == "linear" and n_outputs == 0:
        return ridge(train, dev, strengths.cpu().double(), 1)
    head, loss = family(spec, n_outputs, train.sets)
    trainer = _Trainer(train, dev, head, loss, spec)
    if spec.family == "linear":
        return trainer.run(near, strengths, _near_the_end(spec))
    n_layers, _, n_features = train.features.shape
    start = head.initial(n_layers, [0], n_features, max(1, n_outputs))
    return trainer.run(start, strengths, _full_schedule(spec))


def family(spec: ProbeSpec, n_outputs: int, sets: Tensor | None) -> tuple[Head, Loss]:
    """The formula of a probe, and its loss; regression has 0 outputs.

    Args:
        sets: see `probes.cells.Batches`.
    """
    return head_of(spec), log_loss(sets) if n_outputs else SquaredError()


def log_loss(sets: Tensor | None) -> LogLoss:
    """The loss of a classification, or of a multi-label task with these label sets."""
    return CrossEntropy() if sets is None else BinaryCrossEntropy(sets)


def _between(search: Fit) -> Tensor:
    """The strength at which a parabola through the least loss and its neighbours is least.

    Args:
        search: cells of three or more strengths, each the same multiple of the one before.

    Returns:
        within the range of the three points; shape (L,).
    """
    grid, losses = search.strength[0], search.dev_loss
    middle = losses.argmin(1, keepdim=True).clamp(1, len(grid) - 2)
    low, mid, high = (losses.gather(1, middle + i) for i in (-1, 0, 1))
    bend = low - 2 * mid + high
    vertex = 0.5 * (low - high) / bend.clamp_min(1e-12)
    # Without a bend upwards, the better end.
    end = torch.where(low < high, -1.0, 1.0)
    offset = torch.where(bend > 0, vertex, end).clamp(-1, 1)
    ratio = grid[1] / grid[0]
    return (grid[middle] * ratio**offset).squeeze(1)


@dataclass(frozen=True)
class _Schedule:
    """How a fit's steps go.

    Attributes:
        step: the size of the first; the size falls to 0 as (1 - t)^decay.
        share: length as a share of the full one.
        checks: how often the dev loss is looked at, the last time at the end.
        join: how many batches of the data make one of the fit.
    """

    step: float
    decay: int = 1
    share: float = 1.0
    checks: int = 1
    join: int = 1


def _full_schedule(spec: ProbeSpec) -> _Schedule:
    """For a fit that is not convex: the best parameters along the way are kept."""
    return _Schedule(spec.step, checks=spec.checks)


def _near_the_end(spec: ProbeSpec) -> _Schedule:
    """For a convex fit that starts near the end: steps that do not leave it again."""
    return _Schedule(0.75 * spec.step, join=2)


class _Trainer:
    """Minibatch Adam, all cells side by side."""

    def __init__(
        self, train: Batches, dev: Batches | None, head: Head, loss: Loss, spec: ProbeSpec
    ) -> None:
        self.train, self.dev, self.head, self.loss, self.spec = train, dev, head, loss, spec

    def search(self, start: Parameters) -> Fit:
        """A fit for each strength, of MLPs from the weakest up while dev loss falls anywhere.

        Dev loss has one valley along the strengths, up to chance. Of an MLP what is past a layer's
        first rise does not count, tried or not: that depends on which other layers are fitted.

        Args:
            start: of one cell. Leading dimensions (L, 1).

        Returns:
            the fits of K strengths, the least dev loss among them.
        """
        spec, schedule = self.spec, self._search_schedule()
        grid = torch.tensor(sorted(spec.strengths), device=self.train.features.device)
        # Linear cells cost little beside reading what they are trained on.
        at_first = len(grid) if spec.family == "linear" else 2
        found = self.run(start, grid[:at_first].expand(len(start[0]), -1), schedule)
        for strength in grid[at_first:]:
            if not (found.dev_loss[:, -1] < found.dev_loss[:, -2]).any():
                break
            more = self.run(start, strength.expand(len(start[0]), 1), schedule)
            found = side_by_side([found, more])
        if at_first == len(grid):
            return found
        past = (found.dev_loss.diff(dim=1) >= 0).cumsum(1) > 0
        past = torch.nn.functional.pad(past, (1, 0))
        return replace(found, dev_loss=found.dev_loss.masked_fill(past, math.inf))

    def _search_schedule(self) -> _Schedule:
        """Part of a full fit; of an MLP on few examples, all of it.

        They are learnt by heart in the fit's later passes, from which strength protects.
        """
        spec = self.spec
        few = spec.passes * (len(self.train.bounds) - 1) < spec.min_steps
        if few and spec.family != "linear":
            return _full_schedule(spec)
        return _Schedule(spec.step, share=spec.search)

    def run(self, start: Parameters, strengths: Tensor, schedule: _Schedule, order: int = 0) -> Fit:
        """One schedule for cells (layer, k).

        Of each cell the parameters with the least dev loss are returned; without dev, the last.

        Args:
            start: starting parameters. Leading dimensions (L, K), or (L, 1) for all alike.
            strengths: shape (L, K).
            order: seed of the order of batches.
        """
        train, device = self.train.joined(schedule.join), self.train.features.device
        n_cells = strengths.shape[1]
        wide = (p.expand(-1, n_cells, *p.shape[2:]) for p in start)
        parameters = [p.to(device, copy=True).contiguous() for p in wide]
        adam = Adam(parameters)
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
            adam.step(gradients, schedule.step * (1 - step / n_steps) ** schedule.decay)
            if step in check_at:
                best = self._keep_best(best, parameters, step / n_steps, rounded=checks > 1)
                give_back()
        if self.dev is None or checks == 1:
            return best
        return replace(best, dev_loss=mean_loss(self.head, self.loss, best.parameters, self.dev))

    def _keep_best(self, best: Fit, parameters: Parameters, at: float, *, rounded: bool) -> Fit:
        """The better of two, by losses that may be rounded where many are looked at."""
        strengths = best.strength
        if self.dev is None:
            return Fit(parameters, strengths, best.stopped, best.dev_loss)
        dev_loss = mean_loss(self.head, self.loss, parameters, self.dev, rounded=rounded)
        better = dev_loss < best.dev_loss
        kept = [
            torch.where(better.view(*better.shape, *[1] * (p.dim() - 2)), p, old)
            for p, old in zip(parameters, best.parameters, strict=True)
        ]
        return Fit(
            kept,
            strengths,
            torch.where(better, at, best.stopped),
            torch.where(better, dev_loss, best.dev_loss),
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


@kept_memory()
def predict(
    fitted: Fit, features: Features, n_outputs: int, spec: ProbeSpec, sets: Tensor | None = None
) -> Tensor:
    """What the fitted cells say: class indices, or numbers (L, K, N), or bits (L, K, N, bytes).

    Args:
        sets: see `probes.cells.Batches`.
    """
    head, loss = family(spec, n_outputs, sets)
    parts = []
    for part in blocks(features.shape[1]):
        outputs = head.float_outputs(fitted.parameters, features.block(part))
        parts.append(loss.decide(outputs))
    return torch.cat(parts, 2)
