"""Sentences of about the same length in batches, with the trees that are to be found in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from probes.common.arrays import Ints
from probes.extraction.vectors import Sharded
from probes.measurements.structure.trees import Trees, WordTree

SENTENCES = 32
"""Sentences of a batch."""

_PAIRS = 2**18
"""Pairs of words of a batch: of long sentences there are fewer."""

_SPREAD = 4.0
"""By how many words lengths in a training batch differ: mixed, but little padded."""


@dataclass(frozen=True)
class Batch:
    """Sentences, the shorter ones padded.

    Attributes:
        sentences: their places in `Trees`. Shape (b,).
        rows: of their words in the store; in padding, of the first word. Shape (b, n).
        lengths: words of each. Shape (b,).
        distances: in gold trees and in each draw of control trees; 0 in padding. Shape
            (1 + draws, b, n, n).
        depths: the same. Shape (1 + draws, b, n).
    """

    sentences: Ints
    rows: Ints
    lengths: Tensor
    distances: Tensor
    depths: Tensor

    @property
    def word_weights(self) -> Tensor:
        """1 / n for a word of a sentence of n, 0 for padding. Shape (b, n)."""
        real = torch.arange(self.rows.shape[1], device=self.lengths.device) < self.lengths[:, None]
        return real / self.lengths[:, None]

    def vectors(self, layer: Sharded) -> Tensor:
        """The words' vectors, float32. Shape (b, n, H)."""
        found = torch.from_numpy(layer[self.rows.ravel()]).to(self.lengths.device).float()
        return found.view(*self.rows.shape, -1)


def training_batches(trees: Trees, rows: Ints, seed: int, device: torch.device) -> list[Batch]:
    """All sentences in batches of about the same length, otherwise mixed.

    Args:
        rows: of all words of the split in the store.
    """
    spread = np.random.default_rng(seed).uniform(0, _SPREAD, len(trees.lengths))
    order = np.argsort(trees.lengths + spread, kind="stable")
    return [_batch(trees, rows, part, device) for part in _parts(order, trees.lengths, SENTENCES)]


def exact_batches(trees: Trees, rows: Ints, device: torch.device) -> list[Batch]:
    """All sentences in batches of exactly the same length."""
    return [
        _batch(trees, rows, part, device)
        for length in np.unique(trees.lengths)
        for part in _parts(np.flatnonzero(trees.lengths == length), trees.lengths, _PAIRS)
    ]


def _parts(order: Ints, lengths: Ints, most: int) -> Iterator[Ints]:
    start = 0
    while start < len(order):
        # No later sentence of this part is much longer than its last one.
        longest = lengths[order[start : start + most]]
        fits = np.maximum.accumulate(longest) ** 2 * np.arange(1, len(longest) + 1) <= _PAIRS
        size = max(1, int(fits.sum()))
        yield order[start : start + size]
        start += size


def _batch(trees: Trees, rows: Ints, sentences: Ints, device: torch.device) -> Batch:
    lengths = trees.lengths[sentences]
    place = np.arange(lengths.max())
    inside = np.where(place < lengths[:, None], place, 0)
    every = [
        _stacked([paths[i] for i in sentences], len(place))
        for paths in (trees.paths, *trees.control_paths)
    ]
    distances, depths = (np.stack(each) for each in zip(*every, strict=True))
    return Batch(
        sentences,
        rows[trees.first[sentences][:, None] + inside],
        torch.from_numpy(lengths).to(device),
        torch.from_numpy(distances).to(device),
        torch.from_numpy(depths).to(device),
    )


def _stacked(
    paths: Sequence[WordTree], width: int
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    distances = np.zeros((len(paths), width, width), dtype=np.float32)
    depths = np.zeros((len(paths), width), dtype=np.float32)
    for place, tree in enumerate(paths):
        n = len(tree.depths)
        distances[place, :n, :n] = tree.distances
        depths[place, :n] = tree.depths
    return distances, depths
