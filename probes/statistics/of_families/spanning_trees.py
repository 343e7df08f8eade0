"""Spanning trees of many small complete graphs at once: undirected, and with a root."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from probes.common.arrays import Floats, Ints
from probes.data.sentence import ROOT

LEFT_OUT = -2
"""Head of a word that is in no tree, such as punctuation."""


def spanning_trees(distances: NDArray[np.floating[Any]], in_tree: NDArray[np.bool_]) -> Ints:
    """Minimum spanning trees of complete graphs, by Prim's algorithm; ties go to earlier words.

    Args:
        distances: shape (t, n, n).
        in_tree: True for words that a tree spans. Shape (t, n).

    Returns:
        the neighbour through which each word was reached: `ROOT` for a tree's first word,
        `LEFT_OUT` for words in no tree. Shape (t, n).
    """
    n_trees, n = in_tree.shape
    tree = np.arange(n_trees)
    heads = np.full((n_trees, n), LEFT_OUT)
    waiting = in_tree.copy()
    cost, via = np.where(in_tree, 0.0, np.inf), np.full((n_trees, n), ROOT)
    for _ in range(n):
        word = np.where(waiting, cost, np.inf).argmin(1)
        grown = waiting[tree, word]  # False for complete trees
        heads[tree[grown], word[grown]] = via[tree[grown], word[grown]]
        waiting[tree, word] = False
        distance = distances[tree, word]
        # At first every word costs 0 and has no neighbour; whatever edge comes replaces that.
        closer = (distance < cost) | (via == ROOT)
        cost, via = np.where(closer, distance, cost), np.where(closer, word[:, None], via)
    return heads


_BLOCK = 1 << 22
"""Bytes of the edges of graphs that are solved together; about the size of a processor's cache."""


def arborescences(weights: NDArray[np.floating[Any]], sizes: Ints) -> Ints:
    """Maximum spanning arborescences; each has one root, which may be any word.

    The algorithm of Chu and Liu (1965) and Edmonds (1967) in the form of Gabow, Galil, Spencer and
    Tarjan (1986), O(n²) per graph. Ties between edges go to the one from the earlier word. A tree
    depends only on its own graph.

    Args:
        weights: [graph, i, j] is the weight of word i depending on word j; it must be finite.
            Entries beyond a graph's size and on the diagonal are not read. Shape (graphs, n, n).
        sizes: number of words of each graph, at most n. Shape (graphs,).

    Returns:
        the head of each word: `ROOT` for the root, `LEFT_OUT` beyond the size. Shape (graphs, n).
    """
    heads = np.full(weights.shape[:2], LEFT_OUT)
    for n in np.unique(sizes[sizes > 0]):
        (which,) = np.nonzero(sizes == n)
        at_once = max(1, _BLOCK // (8 * n * (n + 8)))  # 8: each word also has a few integers
        for first in range(0, len(which), at_once):
            part = which[first : first + at_once]
            heads[part, :n] = _of_one_size(weights[part, :n, :n])
    return heads


class _Choices(NamedTuple):
    """The best edges into a word or into contracted words, at most one per graph.

    Attributes:
        graph, source, target: graph and ends of each edge. Each (edges,).
        first, end: positions `[first, end)` on the path of the words that the edge leads into; it
            ends at `target`. Each (edges,).
    """

    graph: Ints
    source: Ints
    target: Ints
    first: Ints
    end: Ints


def _of_one_size(weights: NDArray[np.floating[Any]]) -> Ints:
    """Arborescences of graphs (g, n, n) without padding. Shape (g, n).

    In every graph, a path grows backwards along the best edges. When it meets itself, the cycle is
    contracted. A cycle lies at the path's end, so contracted words have neighbouring positions.
    """
    g, n, _ = weights.shape
    edges = _edges(weights)
    targets = np.empty(edges.shape, dtype=np.int32)  # ends of the edges into contracted words
    targets[:] = np.arange(n)[:, None]
    rows, row_targets = edges.reshape(g * n, n + 1), targets.reshape(g * n, n + 1)
    graph = np.arange(g)
    position = np.full((g, n), -1)  # of each word on the path
    word = np.zeros((g, n), dtype=np.int64)  # the word at each position
    before = np.zeros((g, n), dtype=np.int64)  # start of the element before each position
    position[:, 0] = 0
    first, end = np.zeros(g, dtype=np.int64), np.ones(g, dtype=np.int64)  # the path's last element
    source = np.zeros(g, dtype=np.int64)  # start of the best edge into it, once known
    choices = []
    for _ in range(2 * n - 2):  # each adds a word to the path, or contracts its last two elements
        choosing = np.flatnonzero(position[graph, source] >= first)
        row = choosing * n + word[choosing, first[choosing]]
        into = rows[row]
        best = into[:, :n].argmax(1)
        # Once these words are contracted, an edge into them counts by its loss against the best.
        rows[row] = into - np.take_along_axis(into, best[:, None], axis=1)
        source[choosing] = best
        choices.append(
            _Choices(choosing, best, row_targets[row, best], first[choosing], end[choosing])
        )

        reached = position[graph, source] >= 0
        new, cycle = np.flatnonzero(~reached), np.flatnonzero(reached)
        before[new, end[new]] = first[new]
        first[new] = end[new]
        word[new, end[new]] = source[new]
        position[new, source[new]] = end[new]
        end[new] += 1

        begin = before[cycle, first[cycle]]
        last_row, begin_row = (cycle * n + word[cycle, at] for at in (first[cycle], begin))
        better = rows[last_row] > rows[begin_row]
        row_targets[begin_row] = np.where(better, row_targets[last_row], row_targets[begin_row])
        merged = np.maximum(rows[last_row], rows[begin_row])
        # An edge from inside the contracted words would not leave the cycle.
        merged[:, :n][position[cycle] >= begin[:, None]] = -np.inf
        rows[begin_row] = merged
        first[cycle] = begin
    root = targets[graph, word[:, 0], n].astype(np.int64)
    return _expanded(choices, position, root)


def _edges(weights: NDArray[np.floating[Any]]) -> Floats:
    """The edges into each word; the last one comes from a virtual root. Shape (g, n, n + 1)."""
    g, n, _ = weights.shape
    edges = np.zeros((g, n, n + 1))
    edges[..., :n] = weights
    edges[:, np.arange(n), np.arange(n)] = 0
    if not np.isfinite(edges).all():
        raise ValueError("the weight of an edge is not finite")
    edges[:, np.arange(n), np.arange(n)] = -np.inf
    return edges


def _expanded(choices: list[_Choices], position: Ints, root: Ints) -> Ints:
    """The edges that remain after opening cycles where a later edge enters. Shape (g, n)."""
    g, n = position.shape
    heads = np.full((g, n), LEFT_OUT)
    entered = np.zeros((g, n), dtype=bool)  # by position
    graphs, positions = np.arange(g), np.arange(n)
    heads[graphs, root] = ROOT
    entered[graphs, position[graphs, root]] = True
    for graph, source, target, first, end in reversed(choices):
        inside = (first[:, None] <= positions) & (positions < end[:, None])
        remaining = ~(inside & entered[graph]).any(1)
        at, word = graph[remaining], target[remaining]
        heads[at, word] = source[remaining]
        entered[at, position[at, word]] = True
    return heads
