"""The examples of a split, cut into batches of whole sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from probes.statistics.partition import Partition
from probes.training.bags import Bags
from probes.training.features import Features, Slice, Subset

BATCH = 512
"""The most examples per step, up to a sentence more or less; `ProbeSpec.batch` may be smaller."""

EVALUATION = 1024
"""Examples per block of an evaluation: small, since fresh memory costs more than a call."""

READERS = 2
"""Threads that prepare features, each a block or a layer at a time."""


@dataclass(frozen=True)
class Batches:
    """The examples of one split, features standardised, whole sentences in some order.

    Attributes:
        features: features of N examples at L layers.
        labels: class indices or numbers of each cell. Shape (K, N), or (1, N) if cells share them.
        weights: weight of each example in the loss of each cell. Shape (K, N) or (1, N).
        sentences: the sentence of each example. Shape (N,).
        bounds: batch b consists of examples `bounds[b]` to `bounds[b + 1]`, whole sentences.
        sets: for a multi-label task, 1 for each label that a set contains, float; `labels` are then
            indices of sets. Shape (S, C).
        partition: clusters that bootstrap samples draw; None for the sentences here.
        scale: factor by which features were multiplied (L, H); None if they are not standardised.
    """

    features: Features
    labels: Tensor
    weights: Tensor
    sentences: Tensor
    bounds: list[int]
    sets: Tensor | None = None
    partition: Partition | None = None
    scale: Tensor | None = None

    def of_cells(self, cells: slice | list[int]) -> Batches:
        """A copy with the labels and weights of some cells."""
        index = cells if isinstance(cells, slice) else torch.tensor(cells)

        def selected(values: Tensor) -> Tensor:
            return values if len(values) == 1 else values[index]

        return replace(self, labels=selected(self.labels), weights=selected(self.weights))

    def without_unused(self) -> Batches:
        """A copy without the examples whose weight is 0 in every cell; bags of tokens keep them."""
        weighs = (self.weights != 0).any(0)
        if weighs.all() or isinstance(self.features, Bags):
            return self
        n_before = torch.cat([weighs.new_zeros(1, dtype=torch.int64), weighs.cumsum(0)]).cpu()
        return replace(
            self,
            features=Subset(self.features, weighs.nonzero().flatten()),
            labels=self.labels[:, weighs],
            weights=self.weights[:, weighs],
            sentences=self.sentences[weighs],
            bounds=n_before[self.bounds].tolist(),
        )

    def part(self, part: slice) -> Batches:
        """Consecutive examples (whole sentences), cut into batches again."""
        sentences = self.sentences[part]
        return replace(
            self,
            features=Slice(self.features, part),
            labels=self.labels[:, part],
            weights=self.weights[:, part],
            sentences=sentences,
            bounds=batch_bounds(sentences),
        )

    @property
    def clusters(self) -> Tensor:
        """The cluster of each example, on the CPU. Shape (N,)."""
        sentences = self.sentences.cpu()
        if self.partition is None:
            return sentences
        return torch.from_numpy(self.partition.of_sentence)[sentences]


def batch_bounds(sentences: Tensor, size: int = BATCH) -> list[int]:
    """Cut examples into batches of about `size`, nearly equal, that never split a sentence.

    Args:
        sentences: the sentence of each example, those of a sentence adjacent. Shape (N,).
    """
    n_examples = len(sentences)
    n_batches = max(1, round(n_examples / size))
    ends = [*(torch.nonzero(torch.diff(sentences)).flatten() + 1).tolist(), n_examples]
    bounds = [0]
    for end in ends:
        if end * n_batches >= len(bounds) * n_examples:
            bounds.append(end)
    return bounds


def rebatched(train: Batches, size: int) -> Batches:
    """Cut the examples into batches of about `size`."""
    return replace(train, bounds=batch_bounds(train.sentences.cpu(), size))


def token_batches(texts: Batches) -> Batches:
    """Single tokens as examples with the label of their text.

    The tokens of a text weigh together as much as the text does.

    Args:
        texts: features are `Bags`.
    """
    bags = texts.features
    assert isinstance(bags, Bags)
    times = bags.lengths.to(bags.device)

    def repeated(values: Tensor) -> Tensor:
        return values.repeat_interleave(times, -1)

    sentences = repeated(texts.sentences)
    return replace(
        texts,
        features=bags.tokens,
        labels=repeated(texts.labels),
        weights=repeated(texts.weights / times),
        sentences=sentences,
        bounds=batch_bounds(sentences.cpu()),
    )


def bootstrap_weights(clusters: Tensor, sample: int) -> Tensor:
    """Number of times that each example's cluster is in a bootstrap sample of clusters. (N,).

    Sample 0 has every cluster once. Clusters are drawn in the order of their numbers, so that
    the sample does not depend on the order of examples.
    """
    if sample == 0:
        return torch.ones(len(clusters))
    numbers, cluster_index = clusters.unique(return_inverse=True)
    generator = torch.Generator().manual_seed(sample)
    sampled_clusters = torch.randint(len(numbers), (len(numbers),), generator=generator)
    return torch.bincount(sampled_clusters, minlength=len(numbers)).float()[cluster_index]


def bootstrap_batches(train: Batches, samples: Sequence[int]) -> Batches:
    """Weight examples for each cell by their number in the cell's bootstrap sample.

    Args:
        samples: number of each cell's sample; see `bootstrap_weights`. Shape (K,).
    """
    if not any(samples):
        return train
    clusters = train.clusters
    counts = {sample: bootstrap_weights(clusters, sample) for sample in set(samples)}
    # Equal samples, which is the rule for several label sets, share a row.
    rows = [counts[sample] for sample in (samples if len(counts) > 1 else samples[:1])]
    return replace(train, weights=torch.stack(rows).to(train.features.device) * train.weights)


def evaluation_slices(n_examples: int) -> list[slice]:
    """The parts in which a split is evaluated."""
    starts = range(0, n_examples, EVALUATION)
    return [slice(start, min(start + EVALUATION, n_examples)) for start in starts]


def evaluation_parts(features: Features) -> list[slice]:
    """The parts in which features of a split are evaluated."""
    return features.parts if isinstance(features, Bags) else evaluation_slices(features.shape[1])


_WIDTHS = 32
"""Batches are read in multiples of this many examples."""


def shuffled_batches(train: Batches, order: int = 0) -> Iterator[tuple[slice, Tensor]]:
    """An endless sequence of batches, reshuffled for each pass.

    A batch may be read a little wider than it is: oneDNN compiles products for each new shape.

    Args:
        order: seed of the shuffles.

    Yields:
        the slice of examples to read, and a mask of those in the batch (n,).
    """
    bounds = torch.tensor(train.bounds)
    first, last, n_examples = bounds[:-1], bounds[1:], int(bounds[-1])
    # A batch that is empty in a bootstrap sample is read as well, and masked.
    widths = ((last - first).clamp_min(1) + _WIDTHS - 1) // _WIDTHS * _WIDTHS
    widths.clamp_max_(n_examples)
    starts = first.clamp_max(n_examples - widths)
    parts = [slice(a, a + n) for a, n in zip(starts.tolist(), widths.tolist(), strict=True)]
    masks = []
    for part, low, high in zip(parts, first.tolist(), last.tolist(), strict=True):
        # Made on the device, which otherwise is waited for.
        examples = torch.arange(part.start, part.stop, device=train.features.device)
        masks.append((examples >= low) & (examples < high))
    generator = torch.Generator().manual_seed(order)
    while True:
        for batch in torch.randperm(len(parts), generator=generator).tolist():
            yield parts[batch], masks[batch]
