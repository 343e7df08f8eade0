"""Trees, roots, correlations and edges against scipy and examples by hand."""

import numpy as np
import pytest
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.stats import spearmanr

from probes.data.sentence import ROOT
from probes.measurements.structure.contributions import chains, edges_in
from probes.measurements.structure.decoding import (
    LEFT_OUT,
    correlations,
    lowest,
    oriented,
    spanning_trees,
)
from probes.measurements.structure.trees import paths

rng = np.random.default_rng(0)


def symmetric(m, n):
    found = rng.random((m, n, n)) + 0.1
    return found + found.swapaxes(1, 2)


def edges_of(heads):
    return {frozenset((i, int(head))) for i, head in enumerate(heads) if head >= 0}


def test_spanning_trees_are_scipys():
    distances, kept = symmetric(40, 9), rng.random((40, 9)) < 0.8
    found = spanning_trees(distances, kept)
    for matrix, keep, heads in zip(distances, kept, found, strict=True):
        (words,) = np.nonzero(keep)
        tree = minimum_spanning_tree(matrix[np.ix_(words, words)]).tocoo()
        assert edges_of(heads) == {
            frozenset((words[i], words[j])) for i, j in zip(*tree.coords, strict=True)
        }
        assert (heads == LEFT_OUT).tolist() == (~keep).tolist()
        assert heads[words[0]] == ROOT


def test_few_words_and_distances_of_zero():
    none, one, equal = [False] * 3, [False, True, False], [True] * 3
    found = spanning_trees(np.zeros((3, 3, 3)), np.array([none, one, equal]))
    assert found.tolist() == [[LEFT_OUT] * 3, [LEFT_OUT, ROOT, LEFT_OUT], [ROOT, 0, 0]]


def test_a_tree_keeps_its_edges_towards_another_root():
    heads = np.array([ROOT, 0, 1, LEFT_OUT, 1])
    turned = oriented(heads, 2)
    assert turned.tolist() == [1, 2, ROOT, LEFT_OUT, 1]
    assert edges_of(turned) == edges_of(heads)


def test_roots_are_the_least_deep_words_that_are_kept():
    depths = np.array([[2.0, 0.5, 1.0], [0.1, 0.2, 0.3]])
    kept = np.array([[True, False, True], [False, False, False]])
    assert lowest(depths, kept).tolist() == [2, -1]


def test_correlations_are_scipys():
    gold = rng.integers(0, 4, (30, 8)).astype(float)
    predicted = np.round(rng.random((3, 30, 8)), 1)
    found = correlations(predicted, gold)
    expected = [
        [spearmanr(x, y).statistic for x, y in zip(z, gold, strict=True)] for z in predicted
    ]
    assert found == pytest.approx(np.array(expected))
    assert correlations(np.ones(3), np.arange(3.0)) == 0
    assert np.isnan(correlations(np.arange(3.0), np.ones(3)))


HEADS = (1, ROOT, 4, 4, 1)
"""she SAW the old boats."""


def test_edges_are_counted_by_the_distance_of_their_words():
    gold = paths(HEADS).distances[None]
    # she–saw, old–boats; saw–boats is three words long, the–boats two.
    assert edges_in(np.array([[HEADS]]), gold).tolist() == [[[2, 1, 1, 0]]]
    assert edges_in(np.array([[[ROOT, 0, 1, 2, 3]]]), gold).tolist() == [[[2, 0, 0, 0]]]


def test_chains_pass_over_punctuation():
    kept = np.array([[False, True, True, False, True]])
    assert chains(kept).tolist() == [[LEFT_OUT, ROOT, 1, LEFT_OUT, 2]]
