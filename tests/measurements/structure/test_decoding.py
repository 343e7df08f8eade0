"""Trees, roots and correlations against scipy and examples by hand."""

import numpy as np
import pytest
import torch
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.stats import spearmanr

from probes.measurements.structure.decoding import (
    LEFT_OUT,
    START,
    by_length,
    correct_edges,
    gold_edges,
    roots,
    sentence_correlations,
    spanning_trees,
)
from probes.measurements.structure.trees import paths
from probes.statistics.rank_correlation import nspr

rng = np.random.default_rng(0)


def symmetric(m, n):
    found = rng.random((m, n, n)) + 0.1
    return found + found.swapaxes(1, 2)


def edges_of(parents):
    return {frozenset((i, int(p))) for i, p in enumerate(parents) if p >= 0}


def test_spanning_trees_are_scipys():
    distances, kept = symmetric(40, 9), rng.random((40, 9)) < 0.8
    found = spanning_trees(torch.tensor(distances), torch.tensor(kept)).numpy()
    for matrix, keep, parents in zip(distances, kept, found, strict=True):
        (words,) = np.nonzero(keep)
        tree = minimum_spanning_tree(matrix[np.ix_(words, words)]).tocoo()
        expected = {frozenset((words[i], words[j])) for i, j in zip(*tree.coords, strict=True)}
        assert edges_of(parents) == expected
        assert (parents == LEFT_OUT).tolist() == (~keep).tolist()
        assert (parents == START).sum() == 1
        assert parents[words[0]] == START


def test_sentences_without_or_with_a_single_word_have_no_edges():
    kept = torch.tensor([[False, False], [False, True]])
    found = spanning_trees(torch.zeros(2, 2, 2), kept)
    assert found.tolist() == [[LEFT_OUT, LEFT_OUT], [LEFT_OUT, START]]


def test_distances_of_zero_are_edges():
    kept = torch.ones(1, 3, dtype=torch.bool)
    assert spanning_trees(torch.zeros(1, 3, 3), kept).tolist() == [[START, 0, 0]]


HEADS = (1, -1, 4, 4, 1)
"""she SAW the old boats."""


def test_edges_by_hand():
    gold = torch.tensor(paths(HEADS).distances[None].astype(np.float32))
    kept = torch.ones(1, 5, dtype=torch.bool)
    assert np.argwhere(gold_edges(gold, kept)[0].numpy()).tolist() == [
        [0, 1],
        [1, 4],
        [2, 4],
        [3, 4],
    ]
    chain = torch.tensor([[START, 0, 1, 2, 3]])
    assert correct_edges(chain, gold).tolist() == [[False, True, False, False, True]]
    every = spanning_trees(gold, kept)
    assert int(correct_edges(every, gold).sum()) == 4
    # Without `saw` nothing joins `she`.
    kept[0, 1] = False
    assert int(gold_edges(gold, kept).sum()) == 2
    assert int(correct_edges(spanning_trees(gold, kept), gold).sum()) == 2


def test_roots_are_the_least_deep_words_that_are_kept():
    depths = torch.tensor([[[2.0, 0.5, 1.0], [0.1, 0.2, 0.3]]])
    kept = torch.tensor([[True, False, True], [False, False, False]])
    assert roots(depths, kept)[0, 0].item() == 2
    assert roots(depths, torch.ones(2, 3, dtype=torch.bool)).tolist() == [[1, 0]]


def test_correlations_are_scipys():
    gold = np.stack([paths(HEADS).distances, paths((-1, 0, 1, 2, 3)).distances]).astype(float)
    predicted = np.round(symmetric(6, 5).reshape(3, 2, 5, 5), 1)  # with ties
    sums, counts = sentence_correlations(predicted, gold)
    assert counts.tolist() == [5, 5]
    for cell in range(3):
        for sentence in range(2):
            rows = zip(predicted[cell, sentence], gold[sentence], strict=True)
            expected = sum(spearmanr(row, wanted).statistic for row, wanted in rows)
            assert sums[cell, sentence] == pytest.approx(expected)


def test_constant_rows():
    gold = np.array([[[1.0, 1.0, 1.0], [0.0, 1.0, 2.0]]])
    predicted = np.array([[[[3.0, 2.0, 1.0], [5.0, 5.0, 5.0]]]])
    sums, counts = sentence_correlations(predicted, gold)
    assert (sums.tolist(), counts.tolist()) == ([[0.0]], [1])


def test_averages_are_over_lengths():
    sums = np.array([[1.0, 0.5, 0.4, 9.0]])
    parts = by_length(sums, np.array([1, 1, 1, 1]), np.array([5, 5, 50, 51]))
    # Lengths 5 and 50 count alike, that of 51 words not at all.
    assert nspr(parts.sum(1))[0] == pytest.approx((0.75 + 0.4) / 2)
