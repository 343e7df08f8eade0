"""Examples of a split and fitted cells, as every way of fitting has them.

Cells of a layer stand in a fixed order: the real labels under every seed, then, if there are more
label sets (control tasks), the next set under every seed, and so on. Of S seeds and R label sets
cell r · S + s has set r and seed s; there are K = R · S.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from probes.features import Chosen, Features, Part
from probes.heads import Head, Loss, Parameters
from probes.precision import fast_products

BATCH = 512
"""Examples per step, give or take a sentence."""

EVALUATION = 1024
"""Examples per block of an evaluation: small, since fresh memory costs more than a call."""


@dataclass(frozen=True)
class Batches:
    """Examples of one split, features standardised, in an order of whole sentences.

    Attributes:
        features: of L layers, N examples.
        labels: class indices, or numbers, of every cell. Shape (K, N), or (1, N) for all alike.
        weights: of every cell; class weights, ones if the task has none. Shape as of labels.
        sentences: the sentence of each example. Shape (N,).
        bounds: batch b is examples `bounds[b]` to `bounds[b + 1]`; it holds whole sentences.
        sets: for multi-label which labels each set holds, float; `labels` are then indices of
            sets. Shape (S, C).
    """

    features: Features
    labels: Tensor
    weights: Tensor
    sentences: Tensor
    bounds: list[int]
    sets: Tensor | None = None

    def of_cells(self, cells: slice) -> Batches:
        """The same examples with the labels and weights of some cells."""
        return replace(self, labels=self.labels[cells], weights=self.weights[cells])

    def of_layers(self, layers: Sequence[int]) -> Batches:
        """The same examples at some layers, by their place."""
        return replace(self, features=self.features.of_layers(layers))

    def drawn(self) -> Batches:
        """The same batches without the examples that weigh nothing in any cell."""
        weighs = (self.weights != 0).any(0)
        if weighs.all():
            return self
        before = torch.cat([weighs.new_zeros(1, dtype=torch.int64), weighs.cumsum(0)]).cpu()
        return Batches(
            Chosen(self.features, weighs.nonzero().flatten()),
            self.labels[:, weighs],
            self.weights[:, weighs],
            self.sentences[weighs],
            before[self.bounds].tolist(),
            self.sets,
        )

    def joined(self, n: int) -> Batches:
        """The same examples, `n` batches made one."""
        return replace(self, bounds=[*self.bounds[:-1:n], self.bounds[-1]])

    def part(self, part: slice) -> Batches:
        """Consecutive examples, whole sentences of them, cut into batches anew."""
        sentences = self.sentences[part]
        return Batches(
            Part(self.features, part),
            self.labels[:, part],
            self.weights[:, part],
            sentences,
            batch_bounds(sentences),
            self.sets,
        )


@dataclass(frozen=True)
class Fit:
    """Fitted cells.

    Attributes:
        parameters: leading dimensions (L, K).
        strength: the one chosen on dev. Shape (L, K).
        step: Adam's at the start, chosen on dev; 0 of a closed form. Shape (L, K).
        stopped: share of the schedule after which dev loss was least; 1 is the end. (L, K).
        dev_loss: mean loss on dev in nats (classification), or half the squared error. (L, K).
    """

    parameters: Parameters
    strength: Tensor
    step: Tensor
    stopped: Tensor
    dev_loss: Tensor


def batch_bounds(sentences: Tensor, size: int = BATCH) -> list[int]:
    """Cut examples into batches of about `size`, near equal, that never split a sentence.

    Args:
        sentences: the sentence of each example, equal ones adjacent. Shape (N,).
    """
    n_examples = len(sentences)
    n_batches = max(1, round(n_examples / size))
    ends = [*(torch.nonzero(torch.diff(sentences)).flatten() + 1).tolist(), n_examples]
    bounds = [0]
    for end in ends:
        if end * n_batches >= len(bounds) * n_examples:
            bounds.append(end)
    return bounds


def bootstrap_weights(sentences: Tensor, seed: int) -> Tensor:
    """How often each example's sentence is drawn when sentences are drawn with replacement.

    Seed 0 draws every sentence once. Sentences are drawn in the order of their numbers, so
    the sample does not depend on how examples are laid out. Shape (N,).
    """
    if seed == 0:
        return torch.ones(len(sentences))
    numbers, place = sentences.unique(return_inverse=True)
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randint(len(numbers), (len(numbers),), generator=generator)
    return torch.bincount(drawn, minlength=len(numbers)).float()[place]


def best_of(fitted: Fit) -> Fit:
    """Of the cells of each layer the one with the least dev loss, (L, K) → (L, 1)."""
    best = fitted.dev_loss.argmin(1, keepdim=True)
    layer = torch.arange(len(best), device=best.device)[:, None]
    return _together([fitted], lambda parts: parts[0][layer, best])


def with_better(fitted: Fit, layers: Tensor, other: Fit) -> Fit:
    """The same fit, with what another one of some layers, (L', 1), has better by dev loss.

    Args:
        layers: the places in `fitted` of the other's layers. Shape (L',).
    """
    better = (other.dev_loss < fitted.dev_loss[layers])[:, 0]
    return _together(
        [fitted, other], lambda parts: parts[0].index_copy(0, layers[better], parts[1][better])
    )


def side_by_side(fits: Sequence[Fit]) -> Fit:
    """Cells of the same layers, (L, K) and (L, K') and so on, as one (L, K + K' + …)."""
    return _together(fits, lambda parts: torch.cat(parts, 1))


def of_seeds(fits: Sequence[Fit]) -> Fit:
    """The fits of S seeds, each of a cell per label set (L, R), as one (L, R · S)."""
    return _together(fits, lambda parts: torch.stack(parts, 2).flatten(1, 2))


def _together(fits: Sequence[Fit], join: Callable[[list[Tensor]], Tensor]) -> Fit:
    return Fit(
        [join(list(parts)) for parts in zip(*(f.parameters for f in fits), strict=True)],
        join([f.strength for f in fits]),
        join([f.step for f in fits]),
        join([f.stopped for f in fits]),
        join([f.dev_loss for f in fits]),
    )


def mean_loss(
    head: Head, loss: Loss, parameters: Parameters, data: Batches, *, rounded: bool = False
) -> Tensor:
    """Weighted mean loss of every cell. Shape (L, K).

    Args:
        rounded: whether products are as rough as those of a training step.
    """
    features = data.features
    total = torch.zeros(parameters[0].shape[:2], device=features.device)
    for part in blocks(features.shape[1]):
        x = features.rounded(part) if rounded else features.block(part)
        parameters = [p.to(x.dtype) for p in parameters]  # a copy at the first block alone
        with fast_products() if rounded else nullcontext():
            outputs = head.float_outputs(parameters, x)
        total += loss.total(outputs, data.labels[:, part], data.weights[:, part])
    return total / data.weights.sum(1)


def blocks(n_examples: int) -> list[slice]:
    """The parts in which a split is evaluated."""
    starts = range(0, n_examples, EVALUATION)
    return [slice(start, min(start + EVALUATION, n_examples)) for start in starts]
