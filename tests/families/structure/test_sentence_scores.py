"""Parts of scores for each sentence, against loops with networkx and scipy."""

from itertools import combinations, pairwise

import networkx as nx
import numpy as np
import pytest
import torch
from planted_trees import random_trees, sentence_of_nouns, trees
from scipy.stats import spearmanr

from probes.data.sentence import ROOT
from probes.extraction.reading.vectors import Sharded
from probes.families.structure import fitting
from probes.families.structure.fitting import exact_batches
from probes.families.structure.sentence_scores import (
    chain_hits,
    control_hits,
    distances_and_depths,
    gold_edges,
    predicted_trees,
    sentence_contributions,
)
from probes.families.structure.trees import BINS, N_CONTROL_TREES
from probes.statistics.of_families.spanning_trees import LEFT_OUT

SIZE = 5


def batches_of(its):
    return exact_batches(its, np.arange(its.lengths.sum()), torch.device("cpu"))


@pytest.fixture(scope="module")
def tree_data():
    return trees(*random_trees(50, 14, seed=0))


@pytest.fixture(scope="module")
def layer(tree_data):
    vectors = np.float32(np.random.default_rng(1).normal(size=(tree_data.lengths.sum(), SIZE)))
    return Sharded([vectors[:100], vectors[100:]])


@pytest.fixture(scope="module")
def probes():
    rng = np.random.default_rng(2)
    shapes = [(3, 1), (5, 2)]
    return [
        *(tuple(rng.normal(size=(k, SIZE)).astype(np.float32) for k in pair) for pair in shapes),
        (None, None),
    ]


def projected(its, layer, probe):
    """The projected words of each sentence, float64."""
    every = layer[np.arange(its.lengths.sum())].astype(float)
    matrix = np.eye(SIZE) if probe is None else probe.astype(float)
    return [every[f : f + n] @ matrix.T for f, n in zip(its.first, its.lengths, strict=True)]


def words_of(its, place):
    return np.flatnonzero(~its.punctuation[place]).tolist()


def spanning_edges(z, words):
    graph = nx.Graph()
    for i, j in combinations(words, 2):
        graph.add_edge(i, j, weight=float(((z[i] - z[j]) ** 2).sum()))
    return {frozenset(edge) for edge in nx.minimum_spanning_tree(graph).edges}


def edges_of(heads, words):
    every = {frozenset(edge) for edge in enumerate(heads) if ROOT not in edge}
    return {edge for edge in every if edge <= set(words)}


def binned(edges):
    gaps = [max(edge) - min(edge) for edge in edges]
    return [sum(low <= gap <= high for gap in gaps) for low, high in BINS.values()]


def test_every_contribution_is_that_of_loops(tree_data, layer, probes):
    found = sentence_contributions(layer, batches_of(tree_data), tree_data, probes)
    for number, (distance, depth) in enumerate(probes):
        far, deep = projected(tree_data, layer, distance), projected(tree_data, layer, depth)
        for place, tree in enumerate(tree_data.paths):
            z, words = far[place], words_of(tree_data, place)
            right = spanning_edges(z, words) & edges_of(tree_data.heads[place], words)
            assert found.hits[number, place].tolist() == binned(right)
            distances = ((z[:, None] - z[None]) ** 2).sum(-1)
            pairs = zip(distances, tree.distances, strict=True)
            rho = [spearmanr(row, gold).statistic for row, gold in pairs]
            assert found.dspr[number, place] == pytest.approx(np.mean(rho), abs=1e-6)
            lengths = (deep[place] ** 2).sum(-1)
            rho = spearmanr(lengths, tree.depths).statistic
            assert found.nspr[number, place] == pytest.approx(rho, abs=1e-6)
            lowest = min(words, key=lambda word: lengths[word], default=None)
            assert found.roots[number, place] == (lowest == tree_data.heads[place].index(ROOT))
    assert found.hits.sum((0, 1)).min() > 0
    assert found.roots.any()


def test_edges_of_gold_and_of_control_trees_and_of_the_chain(tree_data, layer, probes):
    batches, probe = batches_of(tree_data), probes[0][0]
    edges, chain = (find(tree_data, batches) for find in (gold_edges, chain_hits))
    of_draws = [probe, probes[1][0], *[probe] * (N_CONTROL_TREES - 2)]
    hits = control_hits(layer, batches, tree_data, of_draws)
    assert len(edges) == len(chain) == 1 + len(hits) == 1 + N_CONTROL_TREES
    far = [projected(tree_data, layer, each) for each in of_draws]
    for place in range(len(tree_data.lengths)):
        words = words_of(tree_data, place)
        neighbours = {frozenset(pair) for pair in pairwise(words)}
        for tree, heads in enumerate((tree_data.heads, *tree_data.controls)):
            own = edges_of(heads[place], words)
            assert edges[tree, place].tolist() == binned(own)
            assert chain[tree, place].tolist() == binned(neighbours & own)
            if tree:
                found = spanning_edges(far[tree - 1][place], words) & own
                assert hits[tree - 1, place].tolist() == binned(found)
    assert (edges[0].sum(1) == tree_data.edges).all()
    assert edges[0].sum(0).min() > 0
    assert len({each.sum() for each in hits}) > 2


def test_the_chain_and_the_distance_of_words_by_hand():
    """`She , saw` is a pair of neighbours without punctuation, and two words apart."""
    tags = ("PRON", "PUNCT", "VERB", "DET", "ADJ", "NOUN", "NOUN", "NOUN", "NOUN", "PUNCT")
    its = trees(sentence_of_nouns((2, 2, -1, 5, 5, 2, 5, 5, 2, 2), tags))
    batches = batches_of(its)
    # Edges 0–2, 2–5, 2–8, 3–5, 4–5, 6–5, 7–5; the commas' are not counted.
    assert gold_edges(its, batches)[0].tolist() == [[2, 3, 1, 1]]
    assert chain_hits(its, batches)[0].tolist() == [[2, 1, 0, 0]]


def test_predictions_of_equal_vectors_tie(tree_data):
    """Words with one vector, though products of matrices may round each row otherwise."""
    rng = np.random.default_rng(3)
    same = Sharded([np.float32(np.repeat(rng.normal(size=(1, 60)), tree_data.lengths.sum(), 0))])
    matrix = rng.normal(size=(40, 60)).astype(np.float32)
    far, deep = distances_and_depths(same, batches_of(tree_data)[-1], [(matrix, matrix)])
    assert abs(far).max() < 1e-9
    assert len(np.unique(deep)) == 1
    found = sentence_contributions(same, batches_of(tree_data), tree_data, [(matrix, matrix)])
    assert not found.nspr.any()
    # Of ties, the earliest word.
    first = [words_of(tree_data, place)[:1] for place in range(len(tree_data.lengths))]
    assert found.roots[0].tolist() == [
        words == [heads.index(ROOT)] for words, heads in zip(first, tree_data.heads, strict=True)
    ]


def test_distances_from_words_with_equal_vectors_tie():
    """In products of float32, a few of them at rank 1 would not."""
    its = trees(*random_trees(300, 40, seed=5, shortest=3))
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(its.lengths.sum(), 384)).astype(np.float32)
    vectors[its.first + its.lengths - 1] = vectors[its.first]
    matrix = rng.normal(size=(1, 384)).astype(np.float32)
    for batch in batches_of(its):
        far, deep = distances_and_depths(Sharded([vectors]), batch, [(matrix, matrix)])
        np.testing.assert_array_equal(far[0, :, 0, 1:-1], far[0, :, -1, 1:-1])
        np.testing.assert_array_equal(deep[0, :, 0], deep[0, :, -1])


def test_predicted_trees_are_oriented_from_predicted_roots():
    """Words on a line at 0, 1, 3 and 9, and a comma; depths are those of another dimension."""
    tags = ("NOUN", "NOUN", "PUNCT", "NOUN", "NOUN")
    words = np.array([[3, 4], [0, 2], [9, 0], [1, 1], [9, 3]], dtype=np.float32)
    lonely = np.zeros((1, 2), dtype=np.float32)
    its = trees(
        sentence_of_nouns((-1,)),
        sentence_of_nouns((1, -1, 1, 1, 1), tags),
        sentence_of_nouns((-1, 0), ("PUNCT", "PUNCT")),
        sentence_of_nouns((-1, 0)),
    )
    last = np.array([[0, 1], [1, 0.5]], dtype=np.float32)
    layer = Sharded([np.concatenate([lonely, words, words[:2], last])])
    rows = np.arange(10)
    batches = exact_batches(its, rows, torch.device("cpu"))
    line, depth = np.float32([[1, 0]]), np.float32([[0, 1]])
    found = predicted_trees(layer, batches, its, (line, depth), 10)
    # 1 – 3 – 0 – 4 on the line, from word 3.
    expected = [3, 3, LEFT_OUT, ROOT, 0]
    assert found.tolist() == [LEFT_OUT, *expected, LEFT_OUT, LEFT_OUT, 1, ROOT]


def test_batches_of_one_sentence_give_the_same(tree_data, layer, probes, monkeypatch):
    together = batches_of(tree_data)
    assert len(together) < len(tree_data.lengths)
    found = sentence_contributions(layer, together, tree_data, probes)
    monkeypatch.setattr(fitting, "_PAIRS", 1)
    alone = batches_of(tree_data)
    assert len(alone) == len(tree_data.lengths)
    again = sentence_contributions(layer, alone, tree_data, probes)
    assert (again.hits == found.hits).all()
    assert (again.roots == found.roots).all()
    np.testing.assert_allclose(again.dspr, found.dspr, atol=1e-6)
    np.testing.assert_allclose(again.nspr, found.nspr, atol=1e-6)


def test_a_probe_gives_the_same_beside_others(tree_data, layer, probes):
    found = sentence_contributions(layer, batches_of(tree_data), tree_data, probes)
    for number, pair in enumerate(probes):
        alone = sentence_contributions(layer, batches_of(tree_data), tree_data, [pair])
        for one, part in zip(alone, found.at([number]), strict=True):
            np.testing.assert_array_equal(one, part)
