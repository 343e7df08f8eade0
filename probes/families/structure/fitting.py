"""Fits all structural probes of a layer at once.

A probe of rank k is a matrix B of k rows. It is fitted so that ‖B(h_i − h_j)‖² is the distance of
two words in the tree, or ‖B h_i‖² the depth of a word (Hewitt & Manning 2019, sections 2.2, 2.3).

The matrices of all probes are stacked, so that one product projects a batch of vectors for all of
them. Vectors are read from the store batch by batch. No probe depends on the others, except by
rounding.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from probes.common.arrays import Ints
from probes.extraction.reading.vectors import Sharded
from probes.families.structure.trees import Trees
from probes.training.trainer import Adam

SENTENCES = 32
"""Number of sentences in a batch."""

_PAIRS = 2**18
"""Maximum number of word pairs in a batch; batches of long sentences are smaller."""

_SPREAD = 4.0
"""Random amount, in words, added to lengths before sorting: mixes batches with little padding."""


@dataclass(frozen=True)
class Batch:
    """Sentences, padded to the longest.

    Attributes:
        sentences: places of the sentences in `Trees`. Shape (b,).
        rows: rows of their words in the store; padding has the first word's. Shape (b, n).
        lengths: number of words of each sentence. Shape (b,).
        distances: distances in gold trees and in each draw of control trees; 0 in padding. Shape
            (1 + draws, b, n, n).
        depths: depths in the same trees. Shape (1 + draws, b, n).
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
        vectors = torch.from_numpy(layer[self.rows.ravel()]).to(self.lengths.device).float()
        return vectors.view(*self.rows.shape, -1)


def training_batches(trees: Trees, rows: Ints, seed: int, device: torch.device) -> list[Batch]:
    """All sentences in batches of about the same length, otherwise in random order.

    Args:
        rows: rows of all words of the split in the store.
    """
    spread = np.random.default_rng(seed).uniform(0, _SPREAD, len(trees.lengths))
    order = np.argsort(trees.lengths + spread, kind="stable")
    return [
        _batch(trees, rows, part, device)
        for part in _sentence_batches(order, trees.lengths, SENTENCES)
    ]


def exact_batches(trees: Trees, rows: Ints, device: torch.device) -> list[Batch]:
    """All sentences in batches of exactly the same length."""
    return [
        _batch(trees, rows, part, device)
        for length in np.unique(trees.lengths)
        for part in _sentence_batches(
            np.flatnonzero(trees.lengths == length), trees.lengths, _PAIRS
        )
    ]


def _sentence_batches(order: Ints, lengths: Ints, most: int) -> Iterator[Ints]:
    start = 0
    while start < len(order):
        # No later sentence of this part is much longer than the last one.
        longest = lengths[order[start : start + most]]
        fits = np.maximum.accumulate(longest) ** 2 * np.arange(1, len(longest) + 1) <= _PAIRS
        size = max(1, int(fits.sum()))
        yield order[start : start + size]
        start += size


def _batch(trees: Trees, rows: Ints, sentences: Ints, device: torch.device) -> Batch:
    lengths = trees.lengths[sentences]
    position = np.arange(lengths.max())
    inside = np.where(position < lengths[:, None], position, 0)
    all_paths = (trees.paths, *trees.control_paths)
    depths = np.zeros((len(all_paths), *inside.shape), dtype=np.float32)
    distances = np.zeros((*depths.shape, len(position)), dtype=np.float32)
    for tree, paths in enumerate(all_paths):
        for i, sentence in enumerate(sentences):
            n = lengths[i]
            distances[tree, i, :n, :n], depths[tree, i, :n] = paths[sentence]
    return Batch(
        sentences,
        rows[trees.first[sentences][:, None] + inside],
        torch.from_numpy(lengths).to(device),
        torch.from_numpy(distances).to(device),
        torch.from_numpy(depths).to(device),
    )


Kind = Literal["distance", "depth"]

SAMPLES = 3
"""Bootstrap samples of training documents, at the reported rank."""


class StructuralProbe(NamedTuple):
    """Description of one probe.

    Attributes:
        kind: "distance" or "depth", the quantity to predict.
        rank: number of rows of the matrix.
        control: draw of control trees to fit, from 1; 0 for gold trees.
        sample: bootstrap sample of training documents to fit, from 1; 0 for all documents.
    """

    kind: Kind
    rank: int
    control: int = 0
    sample: int = 0


def distances(projected: Tensor) -> Tensor:
    """Squared distances of projected words. Shape (b, n, k) to (b, n, n)."""
    products = projected @ projected.transpose(1, 2)
    lengths = products.diagonal(dim1=1, dim2=2)
    return lengths[:, :, None] + lengths[:, None, :] - 2 * products


def squared_lengths(projected: Tensor) -> Tensor:
    """Squared lengths of projected words. Shape (b, n, k) to (b, n)."""
    return projected.square().sum(-1)


def losses(probes: Sequence[StructuralProbe], projected: Tensor, batch: Batch) -> Tensor:
    """The loss of each probe on each sentence.

    For a sentence of n words: Σ_ij |distance − gold| / n² over pairs, or Σ_i |depth − gold| / n.

    Args:
        projected: words projected by the rows of all probes. Shape (b, n, R).

    Returns:
        shape (probes, b).
    """
    words = batch.word_weights
    pairs = words[:, :, None] * words[:, None, :]
    probe_losses = []
    for probe, z in zip(probes, _rows_by_probe(probes, projected), strict=True):
        tree = probe.control
        if probe.kind == "distance":
            probe_losses.append(((distances(z) - batch.distances[tree]).abs() * pairs).sum((1, 2)))
        else:
            probe_losses.append(((squared_lengths(z) - batch.depths[tree]).abs() * words).sum(1))
    return torch.stack(probe_losses)


def slopes(
    probes: Sequence[StructuralProbe], projected: Tensor, batch: Batch, weights: dict[int, Tensor]
) -> Tensor:
    """The gradient of Σ_s weight_s · loss_s with respect to the projected words.

    Written by hand, since autograd takes twice as long, mostly for pairs of words.

    Args:
        projected: see `losses`.
        weights: weights of sentences by bootstrap sample. Each (b,).

    Returns:
        shape (b, n, R).
    """
    words = batch.word_weights
    pairs = words[:, :, None] * words[:, None, :]
    gradient = torch.empty_like(projected)
    for probe, z, slope in zip(
        probes, _rows_by_probe(probes, projected), _rows_by_probe(probes, gradient), strict=True
    ):
        tree, weight = probe.control, weights[probe.sample]
        if probe.kind == "distance":
            signs = (distances(z) - batch.distances[tree]).sign_().mul_(pairs)
            signs *= weight[:, None, None]
            # Σ_ij s_ij ‖z_i − z_j‖² = 2 tr(Zᵀ L Z), where L is the Laplacian of s.
            slope.copy_((torch.diag_embed(signs.sum(-1)) - signs) @ z).mul_(4)
        else:
            signs = (squared_lengths(z) - batch.depths[tree]).sign_() * words * weight[:, None]
            slope.copy_(z).mul_(2 * signs[..., None])
    return gradient


def _rows_by_probe(probes: Sequence[StructuralProbe], rows: Tensor) -> tuple[Tensor, ...]:
    """Split rows by probe. Each (b, n, rank)."""
    parts: tuple[Tensor, ...] = rows.split([probe.rank for probe in probes], dim=-1)
    return parts


EPOCHS = 10

FEWEST_STEPS = 200
"""Minimum number of steps; small corpora need more epochs."""

CHECKS = 10
"""Number of times the dev loss is computed, at equal intervals."""

LEARNING_RATE = 0.003
"""Learning rate of a row times √rank at the first step; it falls to 0."""


STARTS = 4
"""Number of starts of rank 1, which may end in a local minimum; rank 2 has half, others one."""


@dataclass(frozen=True)
class LayerFit:
    """The probes of a layer.

    Attributes:
        matrices: matrices for the model's vectors. Each (rank, H), float32.
        dev_losses: mean loss over dev sentences.
    """

    matrices: dict[StructuralProbe, NDArray[np.float32]]
    dev_losses: dict[StructuralProbe, float]


def n_steps(n_batches: int) -> int:
    """Number of steps of a fit."""
    return max(EPOCHS * n_batches, FEWEST_STEPS)


def fit_structural_probes(
    layer: Sharded,
    train: Sequence[Batch],
    dev: Sequence[Batch],
    probes: Sequence[StructuralProbe],
    weights: Mapping[int, Tensor],
    step_done: Callable[[], object] = lambda: None,
) -> LayerFit:
    """Fit probes to one layer.

    Adam (β .9 and .99) minimises the mean loss of a batch's sentences. The learning rate falls
    linearly from `LEARNING_RATE` / √rank to 0 in ten epochs. The dev loss is computed ten times at
    equal intervals; the state with the least loss is kept, and the best of several starts.

    Each dimension is divided by its standard deviation in train; the returned matrices undo this.
    Vectors are not centred, since depths are not invariant to translation.

    Args:
        weights: weights of training sentences by bootstrap sample, with mean 1. Each (s,).
        step_done: called after every step.
    """
    starts = [(probe, n) for probe in probes for n in range(max(1, STARTS // probe.rank))]
    probes, device = [probe for probe, _ in starts], train[0].lengths.device
    ranks = [probe.rank for probe in probes]
    scale = 1 / deviations(layer, train)
    # Adam moves a row times √rank, so that distances change equally fast for all ranks.
    row_scale = torch.cat([torch.full((rank, 1), rank**-0.5) for rank in ranks]).to(device)
    rows = torch.cat([initial_rows(*start, len(scale)) for start in starts]).to(device)
    adam, steps, rng = Adam([rows], LEARNING_RATE), n_steps(len(train)), np.random.default_rng(0)
    checks = {round(steps * (check + 1) / CHECKS) for check in range(CHECKS)}
    best = torch.full((len(probes),), torch.inf, device=device)
    best_rows, order = rows.clone(), np.array([], dtype=np.int64)
    for step in range(steps):
        if not len(order):
            order = rng.permutation(len(train))
        batch, order = train[order[0]], order[1:]
        vectors = batch.vectors(layer) * scale
        projected = vectors @ (rows * row_scale).T
        of_batch = {sample: weight[batch.sentences] for sample, weight in weights.items()}
        slope = slopes(probes, projected, batch, of_batch).flatten(0, 1)
        gradient = slope.T @ vectors.flatten(0, 1) * row_scale / len(batch.sentences)
        adam.step([gradient], 1 - step / steps)
        step_done()
        if step + 1 in checks:
            loss = mean_losses(layer, dev, probes, rows * row_scale * scale)
            better = loss < best
            best = torch.where(better, loss, best)
            of_rows = better.repeat_interleave(torch.tensor(ranks, device=device))
            best_rows[of_rows] = rows[of_rows]
    matrices = (best_rows * row_scale * scale).cpu().split(ranks)
    best_start: dict[StructuralProbe, int] = {}
    for i, probe in enumerate(probes):
        if probe not in best_start or best[i] < best[best_start[probe]]:
            best_start[probe] = i
    return LayerFit(
        {probe: matrices[i].numpy() for probe, i in best_start.items()},
        {probe: float(best[i]) for probe, i in best_start.items()},
    )


def mean_losses(
    layer: Sharded, batches: Sequence[Batch], probes: Sequence[StructuralProbe], rows: Tensor
) -> Tensor:
    """The mean loss of each probe over sentences. Shape (probes,).

    Args:
        rows: matrices of all probes, for the model's vectors. Shape (R, H).
    """
    sums = [losses(probes, batch.vectors(layer) @ rows.T, batch).sum(1) for batch in batches]
    n_sentences = sum(len(batch.sentences) for batch in batches)
    means: Tensor = torch.stack(sums).sum(0) / n_sentences
    return means


def deviations(layer: Sharded, batches: Sequence[Batch]) -> Tensor:
    """Standard deviation of each dimension over words; 1 if it does not vary. Shape (H,)."""
    n, (sums, squares) = 0, torch.zeros(2, layer.shape[1], dtype=torch.float64)
    for batch in batches:
        # On the CPU, as not every device has float64.
        real = batch.vectors(layer)[batch.word_weights > 0].cpu().double()
        n += len(real)
        sums += real.sum(0)
        squares += real.square().sum(0)
    deviation = (squares / n - (sums / n).square()).clamp(min=0).sqrt()
    deviation[deviation == 0] = 1
    scales: Tensor = deviation.float().to(batches[0].lengths.device)
    return scales


def initial_rows(probe: StructuralProbe, start: int, hidden_size: int) -> Tensor:
    """Normal initial values of rows times √rank. Shape (rank, hidden size).

    Distances of words begin at about .2. The seed depends on the probe, so bootstrap samples
    differ.
    """
    digest = hashlib.sha256(repr((*probe, start)).encode()).digest()
    generator = torch.Generator().manual_seed(int.from_bytes(digest[:7]))
    rows = torch.randn(probe.rank, hidden_size, generator=generator)
    return rows * math.sqrt(0.1 / hidden_size)
