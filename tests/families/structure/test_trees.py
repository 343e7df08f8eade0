"""Distances and depths, what has no tree, and control trees."""

from dataclasses import replace
from itertools import chain, combinations

import networkx as nx
import numpy as np
from planted_trees import sentence_of_nouns, trees
from random_trees import random_heads

from probes.data.find import find_corpus
from probes.families.structure.trees import (
    LONG,
    N_CONTROL_TREES,
    NO_TAGS,
    NO_TREE,
    ONE_WORD,
    control_heads,
    is_tree,
    paths,
    trees_of,
)

SAW = (1, -1, 4, 4, 1)
"""she SAW the old boats."""


def test_distances_and_depths_by_hand():
    found = paths(SAW)
    assert found.depths.tolist() == [1, 0, 2, 2, 1]
    assert found.distances.tolist() == [
        [0, 1, 3, 3, 2],
        [1, 0, 2, 2, 1],
        [3, 2, 0, 2, 1],
        [3, 2, 2, 0, 1],
        [2, 1, 1, 1, 0],
    ]


def test_distances_and_depths_are_networkxs_shortest_paths():
    rng = np.random.default_rng(0)
    for n in [*range(2, 12), 60]:
        heads = random_heads(n, rng)
        graph = nx.Graph((word, head) for word, head in enumerate(heads) if head >= 0)
        lengths = dict(nx.all_pairs_shortest_path_length(graph))
        found = paths(heads)
        assert found.distances.tolist() == [[lengths[i][j] for j in range(n)] for i in range(n)]
        assert found.depths.tolist() == [lengths[heads.index(-1)][i] for i in range(n)]


def test_what_is_a_tree_is_one_to_networkx():
    rng = np.random.default_rng(1)
    found = []
    for _ in range(400):
        heads = tuple(map(int, rng.integers(-1, 4, 4)))
        graph = nx.DiGraph((head, word) for word, head in enumerate(heads) if head >= 0)
        graph.add_nodes_from(range(4))
        found.append(is_tree(heads, 4))
        assert found[-1] == (heads.count(-1) == 1 and nx.is_arborescence(graph))
    assert 20 < sum(found) < 380
    # A long path, whose last word is many steps away from the root, and the same in a circle.
    assert is_tree((*range(1, 70), -1), 70)
    assert not is_tree((-1, *range(2, 70), 1), 70)
    assert not is_tree((-1, 5), 2)
    assert not is_tree((-1, 0), 3)


def test_what_is_left_out_is_counted_by_reason():
    fine = sentence_of_nouns(SAW)
    given = [
        sentence_of_nouns((-1,)),
        fine,
        sentence_of_nouns((1, 0, -1)),
        sentence_of_nouns((-1, -1, 0)),
        replace(fine, heads=()),
        replace(fine, upos=()),
        fine,
        sentence_of_nouns((-1, 0, 1)),
    ]
    long = np.array([False] * 6 + [True, False])
    found = trees_of(given, long)
    assert found.left_out == {ONE_WORD: 1, NO_TREE: 3, NO_TAGS: 1, LONG: 1}
    assert found.sentences.tolist() == [1, 7]
    # The words of sentences that are left out keep their rows.
    assert found.first.tolist() == [1, 1 + 5 + 3 + 3 + 5 + 5 + 5]
    assert found.lengths.tolist() == [5, 3]
    assert found.heads == (SAW, (-1, 0, 1))
    assert trees(fine).left_out == {}


def test_punctuation_its_edges_and_roots_that_are_punctuation():
    found = trees(
        sentence_of_nouns((1, -1, 1), ("NOUN", "PUNCT", "NOUN")),
        sentence_of_nouns((1, -1, 4, 4, 1, 1), ("PRON", "VERB", "DET", "ADJ", "NOUN", "PUNCT")),
        # An edge between two punctuation marks, and one from a word to the first of them.
        sentence_of_nouns((-1, 0, 1, 1), ("NOUN", "PUNCT", "PUNCT", "NOUN")),
    )
    assert found.punctuation_roots == 1
    assert found.roots.tolist() == [1, 1, 0]
    assert found.edges.tolist() == [0, 4, 0]
    assert found.scored_words(np.array([1])).tolist() == [[True] * 5 + [False]]


def test_control_trees_are_drawn_by_type():
    words = ("The", "cat", "saw", "the", "Cat", "cat", "the", "saw")
    heads = list(control_heads(words, 0))
    assert heads[0] == -1
    drawn = {}
    for place, word in enumerate(words[1:], 1):
        assert heads[place] in (0, place - 1)
        if place > 1:  # to the second word, the first one is both
            drawn.setdefault(word.lower(), set()).add(heads[place] == 0)
    assert all(len(each) == 1 for each in drawn.values())
    assert list(control_heads(words, 0)) == heads
    other = control_heads(("x", "y", *words), 0)
    # Heads that were the word before are so again, wherever the word is.
    assert [head == 0 for head in other[4:]] == [head == 0 for head in heads[2:]]


def test_about_half_of_the_types_attach_to_the_first_word():
    heads = control_heads(["x", "y", *(f"type{i}" for i in range(4000))], 0)
    to_first = sum(head == 0 for head in heads[2:])
    assert abs(to_first - 2000) < 4 * np.sqrt(4000 / 4)
    assert control_heads(["X", "Y", *(f"TYPE{i}" for i in range(4000))], 0) == heads


def test_draws_are_independent():
    types = ["x", "y", *(f"type{i}" for i in range(4000))]
    drawn = np.array([control_heads(types, draw) for draw in range(N_CONTROL_TREES)])[:, 2:] == 0
    agree = [(one == other).sum() for one, other in combinations(drawn, 2)]
    assert abs(np.array(agree) - 2000).max() < 4 * np.sqrt(4000 / 4)


def test_control_trees_of_the_sample_are_trees():
    sample = find_corpus("sample").load().splits["test"]
    found = trees(*sample)
    assert len(found.sentences) == len(sample) - sum(found.left_out.values()) > 300
    assert len(found.controls) == N_CONTROL_TREES
    for heads in chain(*found.controls):
        assert is_tree(heads, len(heads))
