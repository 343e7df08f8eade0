"""Spanning trees and maximum arborescences against scipy, networkx, and examples by hand."""

from itertools import product

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import minimum_spanning_tree

from probes.data.sentence import ROOT
from probes.statistics.of_families.spanning_trees import LEFT_OUT, arborescences, spanning_trees


def symmetric(m, n):
    found = np.random.default_rng(0).random((m, n, n)) + 0.1
    return found + found.swapaxes(1, 2)


def edges_of(heads):
    return {frozenset((word, int(head))) for word, head in enumerate(heads) if head >= 0}


def test_spanning_trees_are_scipys():
    kept = np.random.default_rng(1).random((40, 9)) < 0.8
    distances = symmetric(40, 9)
    for matrix, keep, heads in zip(distances, kept, spanning_trees(distances, kept), strict=True):
        (words,) = np.nonzero(keep)
        tree = minimum_spanning_tree(matrix[np.ix_(words, words)]).tocoo()
        expected = {frozenset((words[i], words[j])) for i, j in zip(*tree.coords, strict=True)}
        assert edges_of(heads) == expected
        assert (heads == LEFT_OUT).tolist() == (~keep).tolist()
        assert np.flatnonzero(heads == ROOT).tolist() == [words[0]]


def test_sentences_without_or_with_a_single_word_have_no_edges():
    kept = np.array([[False, False], [False, True]])
    found = spanning_trees(np.zeros((2, 2, 2)), kept)
    assert found.tolist() == [[LEFT_OUT, LEFT_OUT], [LEFT_OUT, ROOT]]


def test_ties_go_to_earlier_words():
    kept = np.ones((1, 4), dtype=bool)
    assert spanning_trees(np.zeros((1, 4, 4)), kept).tolist() == [[ROOT, 0, 0, 0]]


def test_negative_distances_are_no_different():
    """Rounding of the products of equal vectors may leave them a little below 0."""
    distances = np.array([[[0, -1e-7, 2], [-1e-7, 0, 1], [2, 1, 0]]])
    assert spanning_trees(distances, np.ones((1, 3), dtype=bool)).tolist() == [[ROOT, 0, 1]]


def is_arborescence(heads):
    """Whether every word's chain of heads ends at the one root."""
    tree = nx.DiGraph([(head, word) for word, head in enumerate(heads) if head != ROOT])
    tree.add_nodes_from(range(len(heads)))
    return nx.is_arborescence(tree)


def weight_of(heads, weights):
    return sum(weights[word, head] for word, head in enumerate(heads) if head != ROOT)


def networkx_weight(weights):
    """The weight of networkx's arborescence. networkx's edges lead from the head to the word."""
    graph = nx.from_numpy_array(weights.T, create_using=nx.DiGraph)
    # Zeros are no edges there: a constant makes them edges and changes no comparison of trees.
    for i, j in product(range(len(weights)), repeat=2):
        if i != j:
            graph.add_edge(j, i, weight=weights[i, j] + 1)
    return nx.maximum_spanning_arborescence(graph).size("weight") - (len(weights) - 1)


def alone(weights):
    return arborescences(weights[None], np.array([len(weights)]))[0]


def drawn(kind, shape, rng):
    weights = rng.random(shape)
    return {
        "real": weights,
        "rows that sum to 1": weights / weights.sum(-1, keepdims=True),
        "whole": np.floor(weights * 4),
        "sparse": weights * (rng.random(shape) < 0.2),
        "negative": weights - 0.7,
    }[kind]


@pytest.mark.parametrize("kind", ["real", "rows that sum to 1", "whole", "sparse", "negative"])
def test_sums_are_networkxs(kind):
    rng = np.random.default_rng(0)
    for n in range(2, 13):
        weights = drawn(kind, (12, n, n), rng)
        for graph, heads in zip(weights, arborescences(weights, np.full(12, n)), strict=True):
            assert is_arborescence(heads)
            assert weight_of(heads, graph) == pytest.approx(networkx_weight(graph))


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_no_tree_is_heavier(n):
    trees = [heads for heads in product(range(-1, n), repeat=n) if heads.count(ROOT) == 1]
    trees = [heads for heads in trees if is_arborescence(heads)]
    assert len(trees) == n ** (n - 1)  # Cayley's formula, times n roots
    weights = np.random.default_rng(n).random((50, n, n))
    for graph, heads in zip(weights, arborescences(weights, np.full(50, n)), strict=True):
        assert tuple(heads) == max(trees, key=lambda tree: weight_of(tree, graph))


@settings(derandomize=True)
@given(
    st.integers(2, 6).flatmap(lambda n: st.lists(st.integers(0, 3), min_size=n * n, max_size=n * n))
)
def test_graphs_with_many_ties(values):
    n = int(len(values) ** 0.5)
    weights = np.array(values, dtype=float).reshape(n, n)
    heads = alone(weights)
    assert is_arborescence(heads)
    assert weight_of(heads, weights) == networkx_weight(weights)


def test_ties_of_arborescences_go_to_earlier_words():
    assert alone(np.ones((4, 4))).tolist() == [ROOT, 0, 0, 0]
    assert alone(np.zeros((4, 4))).tolist() == [ROOT, 0, 0, 0]


def test_sizes_may_differ_and_padding_is_not_read():
    rng = np.random.default_rng(3)
    sizes = np.array([3, 0, 5, 1, 3, 2])
    weights = rng.random((6, 5, 5))
    expected = [alone(weights[i, :n, :n]).tolist() if n else [] for i, n in enumerate(sizes)]
    for i, n in enumerate(sizes):
        weights[i, n:] = weights[i, :, n:] = np.nan
        weights[i, range(n), range(n)] = np.inf
    found = arborescences(weights, sizes).tolist()
    for heads, n, wanted in zip(found, sizes, expected, strict=True):
        assert heads == [*wanted, *[LEFT_OUT] * (5 - n)]
    assert found[3] == [ROOT, *[LEFT_OUT] * 4]


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_a_weight_that_is_not_finite_raises(odd):
    weights = np.ones((1, 3, 3))
    weights[0, 2, 1] = odd
    with pytest.raises(ValueError, match="not finite"):
        arborescences(weights, np.array([3]))
