"""Parts of scores for each sentence: edges found, roots found, rank correlations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from probes.common.arrays import Ints
from probes.data.sentence import ROOT
from probes.extraction.reading.vectors import Sharded
from probes.families.structure.fitting import Batch, distances, squared_lengths
from probes.families.structure.trees import BINS, Trees
from probes.statistics.of_families.spanning_trees import LEFT_OUT, spanning_trees
from probes.statistics.rank_correlation import spearman

Array = NDArray[Any]

Matrix = NDArray[np.float32] | None
"""A probe (rank, H); None for the identity matrix."""

Edges = NDArray[np.uint16]
"""Number of edges by sentence and distance of their words (see `BINS`). Shape (…, s, bins)."""


class Contributions(NamedTuple):
    """Parts of the scores of probes (c), for each sentence (s).

    Attributes:
        hits: number of gold edges found. Shape (c, s, bins).
        dspr: mean over words of the correlation of their distances. Shape (c, s).
        roots: True if the root is found. Shape (c, s).
        nspr: correlation of depths; NaN where gold depths are equal. Shape (c, s).
    """

    hits: Edges
    dspr: NDArray[np.float32]
    roots: NDArray[np.bool_]
    nspr: NDArray[np.float32]

    def at(self, index: Any) -> Contributions:
        """Select probes by an index of the first axes."""
        return Contributions(*(part[index] for part in self))


def sentence_contributions(
    layer: Sharded, batches: Sequence[Batch], trees: Trees, probes: Sequence[tuple[Matrix, Matrix]]
) -> Contributions:
    """Apply pairs of a distance and a depth probe to all sentences of a split.

    Args:
        batches: batches of sentences of equal length.
    """
    shape = len(probes), len(trees.lengths)
    contributions = Contributions(
        _no_edges(len(probes), trees),
        np.zeros(shape, dtype=np.float32),
        np.zeros(shape, dtype=bool),
        np.zeros(shape, dtype=np.float32),
    )
    for batch in batches:
        at = batch.sentences
        is_scored, gold = trees.scored_words(at), batch.distances[0].cpu().numpy()
        far, deep = distances_and_depths(layer, batch, probes)
        contributions.hits[:, at] = edges_in(_all_trees(far, is_scored), gold)
        contributions.dspr[:, at] = spearman(far, gold).mean(-1)
        contributions.roots[:, at] = _lowest(deep, is_scored) == trees.roots[at]
        contributions.nspr[:, at] = spearman(deep, batch.depths[0].cpu().numpy())
    return contributions


def control_hits(
    layer: Sharded, batches: Sequence[Batch], trees: Trees, probes: Sequence[Matrix]
) -> Edges:
    """Edges of control trees that distance probes find, one probe per draw. (draws, s, bins)."""
    hits = _no_edges(len(probes), trees)
    for batch in batches:
        far, _ = distances_and_depths(layer, batch, [(probe, probe) for probe in probes])
        heads = _all_trees(far, trees.scored_words(batch.sentences))
        hits[:, batch.sentences] = edges_in(heads, batch.distances[1:].cpu().numpy())
    return hits


def gold_edges(trees: Trees, batches: Sequence[Batch]) -> Edges:
    """Edges without punctuation, of gold trees and then of control trees. (1 + draws, s, bins)."""
    all_heads = (trees.heads, *trees.controls)
    edges = _no_edges(len(all_heads), trees)
    for batch in batches:
        heads = np.array([[tree[i] for i in batch.sentences] for tree in all_heads])
        is_scored = np.broadcast_to(trees.scored_words(batch.sentences), heads.shape)
        linked = (heads >= 0) & is_scored & np.take_along_axis(is_scored, heads.clip(0), axis=-1)
        gold = batch.distances.cpu().numpy()
        edges[:, batch.sentences] = edges_in(np.where(linked, heads, LEFT_OUT), gold)
    return edges


def chain_hits(trees: Trees, batches: Sequence[Batch]) -> Edges:
    """Edges of `gold_edges` found by linking neighbouring words. Shape (1 + draws, s, bins)."""
    hits = _no_edges(1 + len(trees.controls), trees)
    for batch in batches:
        is_scored = trees.scored_words(batch.sentences)
        last = np.maximum.accumulate(np.where(is_scored, np.arange(is_scored.shape[1]), -1), axis=1)
        before = np.concatenate([np.full((len(is_scored), 1), -1), last[:, :-1]], axis=1)
        chain = np.where(is_scored, before, LEFT_OUT)
        hits[:, batch.sentences] = edges_in(chain[None], batch.distances.cpu().numpy())
    return hits


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
    all_heads = np.full(n, LEFT_OUT, dtype=np.int32)
    for batch in batches:
        is_scored = trees.scored_words(batch.sentences)
        far, deep = distances_and_depths(layer, batch, [probes])
        heads, roots = spanning_trees(far[0], is_scored), _lowest(deep[0], is_scored)
        for tree, root, first in zip(heads, roots, trees.first[batch.sentences], strict=True):
            oriented, word, below = tree.copy(), int(root), ROOT
            while word != ROOT:  # reverse the edges from the new root to the old one
                oriented[word], word, below = below, int(tree[word]), word
            all_heads[first : first + len(tree)] = oriented
    return all_heads


def distances_and_depths(
    layer: Sharded, batch: Batch, probes: Sequence[tuple[Matrix, Matrix]]
) -> tuple[Array, Array]:
    """Distances (c, m, n, n) and depths (c, m, n), float32.

    Computed in float64 and rounded, so that words with equal vectors tie.
    """
    vectors = batch.vectors(layer).cpu().double()

    def projected(matrix: Matrix) -> torch.Tensor:
        return vectors if matrix is None else vectors @ torch.from_numpy(matrix).double().T

    far = [distances(projected(matrix)).float() for matrix, _ in probes]
    deep = [squared_lengths(projected(matrix)).float() for _, matrix in probes]
    return torch.stack(far).numpy(), torch.stack(deep).numpy()


def edges_in(heads: Ints, gold: Array) -> Ints:
    """Count the edges that are in the gold tree, by distance of the words (see `BINS`).

    Args:
        heads: shape (c, m, n).
        gold: distances in the gold tree (m, n, n), or in c trees (c, m, n, n). Several gold trees
            may be compared with one set of heads (1, m, n).

    Returns:
        shape (c, m, bins).
    """
    gold = gold if gold.ndim == 4 else gold[None]
    between = np.take_along_axis(gold, heads.clip(0)[..., None], axis=-1)[..., 0]
    right = (heads >= 0) & (between == 1)
    gap = np.abs(heads - np.arange(heads.shape[-1]))
    return np.stack(
        [(right & (low <= gap) & (gap <= high)).sum(-1) for low, high in BINS.values()], axis=-1
    )


def _no_edges(n: int, trees: Trees) -> Edges:
    return np.zeros((n, len(trees.lengths), len(BINS)), dtype=np.uint16)


def _all_trees(far: Array, is_scored: NDArray[np.bool_]) -> Ints:
    """Spanning trees for several probes. (c, m, n, n) to (c, m, n)."""
    n_probes, m, n, _ = far.shape
    heads = spanning_trees(far.reshape(-1, n, n), np.tile(is_scored, (n_probes, 1)))
    return heads.reshape(n_probes, m, n)


def _lowest(depths: NDArray[np.floating[Any]], is_scored: NDArray[np.bool_]) -> Ints:
    """The least deep of the words in `is_scored`; `ROOT` if there are none. (…, n) to (…,)."""
    lowest: Ints = np.where(is_scored, depths, np.inf).argmin(-1)
    return np.where(is_scored.any(-1), lowest, ROOT)
