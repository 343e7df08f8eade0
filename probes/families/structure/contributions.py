"""Parts of scores for each sentence: edges found, roots found, rank correlations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from probes.common.arrays import Ints
from probes.data.sentence import ROOT
from probes.extraction.vectors import Sharded
from probes.families.structure.fitting import Batch, depths, distances
from probes.families.structure.trees import BINS, Trees
from probes.statistics.rank_correlation import spearman
from probes.statistics.spanning_trees import LEFT_OUT, spanning_trees

Array = NDArray[Any]

Matrix = NDArray[np.float32] | None
"""A probe (rank, H); None for the identity matrix."""


@dataclass(frozen=True)
class Contributions:
    """Parts of the scores of probes (c), for each sentence (s).

    Attributes:
        hits: number of gold edges found, by distance of the words (see `BINS`). Shape (c, s, bins).
        dspr: mean over words of the correlation of their distances. Shape (c, s).
        roots: True if the root is found. Shape (c, s).
        nspr: correlation of depths; NaN where gold depths are equal. Shape (c, s).
    """

    hits: NDArray[np.uint16]
    dspr: NDArray[np.float32]
    roots: NDArray[np.bool_]
    nspr: NDArray[np.float32]

    def of(self, probe: int) -> Contributions:
        """Select one probe."""
        return Contributions(*(getattr(self, x.name)[probe : probe + 1] for x in fields(self)))


def joined(parts: Sequence[Contributions]) -> Contributions:
    """Concatenate contributions along probes."""
    return Contributions(
        *(np.concatenate([getattr(x, each.name) for x in parts]) for each in fields(Contributions))
    )


def contributions(
    layer: Sharded,
    batches: Sequence[Batch],
    trees: Trees,
    probes: Sequence[tuple[Matrix, Matrix]],
) -> Contributions:
    """Apply pairs of a distance and a depth probe to all sentences of a split.

    Args:
        batches: batches of sentences of equal length.
    """
    shape = len(probes), len(trees.lengths)
    found = Contributions(
        np.zeros((*shape, len(BINS)), dtype=np.uint16),
        np.zeros(shape, dtype=np.float32),
        np.zeros(shape, dtype=bool),
        np.zeros(shape, dtype=np.float32),
    )
    for batch in batches:
        at = batch.sentences
        kept, gold = trees.kept(at), batch.distances[0].cpu().numpy()
        far, deep = predictions(layer, batch, probes)
        found.hits[:, at] = edges_in(all_trees(far, kept), gold)
        found.dspr[:, at] = spearman(far, gold).mean(-1)
        found.roots[:, at] = lowest(deep, kept) == trees.roots[at]
        found.nspr[:, at] = spearman(deep, batch.depths[0].cpu().numpy())
    return found


def control_hits(
    layer: Sharded, batches: Sequence[Batch], trees: Trees, probes: Sequence[Matrix]
) -> NDArray[np.uint16]:
    """Edges of control trees that distance probes find, one probe per draw. (draws, s, bins)."""
    found = np.zeros((len(probes), len(trees.lengths), len(BINS)), dtype=np.uint16)
    for batch in batches:
        far, _ = predictions(layer, batch, [(probe, probe) for probe in probes])
        heads = all_trees(far, trees.kept(batch.sentences))
        for draw, gold in enumerate(batch.distances[1:].cpu().numpy()):
            found[draw, batch.sentences] = edges_in(heads[draw : draw + 1], gold)[0]
    return found


def predicted_trees(
    layer: Sharded, batches: Sequence[Batch], trees: Trees, probes: tuple[Matrix, Matrix], n: int
) -> NDArray[np.int32]:
    """Heads in the predicted trees, oriented from the predicted roots, in corpus order.

    Args:
        n: number of words in the split.

    Returns:
        head of each word within its sentence; `ROOT` for the root, `LEFT_OUT` for punctuation
        and for words of excluded sentences. Shape (n,).
    """
    found = np.full(n, LEFT_OUT, dtype=np.int32)
    for batch in batches:
        kept = trees.kept(batch.sentences)
        far, deep = predictions(layer, batch, [probes])
        heads, roots = spanning_trees(far[0], kept), lowest(deep[0], kept)
        for i, sentence in enumerate(batch.sentences):
            first = trees.first[sentence]
            found[first : first + len(kept[i])] = oriented(heads[i], roots[i])
    return found


def oriented(heads: Ints, root: int) -> Ints:
    """Reorient the tree of one sentence towards another root. Shape (n,)."""
    found, word, below = heads.copy(), root, ROOT
    while word != ROOT:
        found[word], word, below = below, int(heads[word]), word
    return found


def lowest(depths: NDArray[np.floating[Any]], kept: NDArray[np.bool_]) -> Ints:
    """The least deep of the words in `kept`; -1 if there are none. (…, n) to (…,)."""
    found: Ints = np.where(kept, depths, np.inf).argmin(-1)
    return np.where(kept.any(-1), found, ROOT)


def predictions(
    layer: Sharded, batch: Batch, probes: Sequence[tuple[Matrix, Matrix]]
) -> tuple[Array, Array]:
    """Distances (c, m, n, n) and depths (c, m, n), float32.

    Computed in float64 and rounded, so that words with equal vectors tie.
    """
    vectors = batch.vectors(layer).cpu().double()

    def projected(matrix: Matrix) -> torch.Tensor:
        return vectors if matrix is None else vectors @ torch.from_numpy(matrix).double().T

    far = [distances(projected(matrix)).float() for matrix, _ in probes]
    deep = [depths(projected(matrix)).float() for _, matrix in probes]
    return torch.stack(far).numpy(), torch.stack(deep).numpy()


def all_trees(far: Array, kept: NDArray[np.bool_]) -> Ints:
    """Spanning trees for several probes. Shape (c, m, n)."""
    n_probes, m, n, _ = far.shape
    heads = spanning_trees(far.reshape(-1, n, n), np.tile(kept, (n_probes, 1)))
    return heads.reshape(n_probes, m, n)


def gold_edges(trees: Trees, batches: Sequence[Batch]) -> NDArray[np.uint16]:
    """Edges without punctuation, of gold trees and then of control trees. (1 + draws, s, bins)."""
    drawn = (trees.heads, *trees.controls)
    found = np.zeros((len(drawn), len(trees.lengths), len(BINS)), dtype=np.uint16)
    for batch in batches:
        at, kept = batch.sentences, trees.kept(batch.sentences)
        for i, tree in enumerate(batch.distances.cpu().numpy()):
            heads = np.stack([drawn[i][sentence] for sentence in at])
            linked = (heads >= 0) & kept & np.take_along_axis(kept, heads.clip(0), axis=1)
            found[i, at] = edges_in(np.where(linked, heads, LEFT_OUT)[None], tree)[0]
    return found


def chain_hits(trees: Trees, batches: Sequence[Batch]) -> NDArray[np.uint16]:
    """Edges of `gold_edges` found by linking neighbouring words. Shape (1 + draws, s, bins)."""
    n_drawn = 1 + len(trees.controls)
    found = np.zeros((n_drawn, len(trees.lengths), len(BINS)), dtype=np.uint16)
    for batch in batches:
        chain = chains(trees.kept(batch.sentences))[None]
        for i, tree in enumerate(batch.distances.cpu().numpy()):
            found[i, batch.sentences] = edges_in(chain, tree)[0]
    return found


def chains(kept: NDArray[np.bool_]) -> Ints:
    """Trees in which each word in `kept` depends on the one before it. Shape (m, n)."""
    n = kept.shape[1]
    last = np.maximum.accumulate(np.where(kept, np.arange(n), -1), axis=1)
    before = np.concatenate([np.full((len(kept), 1), -1), last[:, :-1]], axis=1)
    return np.where(kept, before, LEFT_OUT)


def edges_in(heads: Ints, gold: Array) -> Ints:
    """Count the edges that are in the gold tree, by distance of the words (see `BINS`).

    Args:
        heads: shape (c, m, n).
        gold: distances in the gold tree. Shape (m, n, n).

    Returns:
        shape (c, m, bins).
    """
    between = np.take_along_axis(gold[None], heads.clip(0)[..., None], axis=-1)[..., 0]
    right = (heads >= 0) & (between == 1)
    gap = np.abs(heads - np.arange(heads.shape[-1]))
    return np.stack(
        [(right & (low <= gap) & (gap <= high)).sum(-1) for low, high in BINS.values()], axis=-1
    )
