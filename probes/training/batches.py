"""Examples of a split, cut into batches of whole sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from probes.training.features import Chosen, Features, Part

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


def blocks(n_examples: int) -> list[slice]:
    """The parts in which a split is evaluated."""
    starts = range(0, n_examples, EVALUATION)
    return [slice(start, min(start + EVALUATION, n_examples)) for start in starts]
