"""Minimum spanning trees against scipy and examples by hand."""

import numpy as np
from scipy.sparse.csgraph import minimum_spanning_tree

from probes.data.sentence import ROOT
from probes.statistics.spanning_trees import LEFT_OUT, spanning_trees


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
