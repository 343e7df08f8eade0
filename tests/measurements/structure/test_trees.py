"""Paths in trees, control trees, and the sentences that are left out."""

import networkx
import numpy as np

from probes.data.sentence import ROOT, Sentence
from probes.measurements.structure.trees import (
    LONG,
    NO_TAGS,
    NO_TREE,
    ONE_WORD,
    control_heads,
    is_tree,
    paths,
    trees_of,
)

rng = np.random.default_rng(0)


def random_heads(n):
    """A tree with its words in random order."""
    order = rng.permutation(n)
    heads = np.full(n, ROOT)
    for place in range(1, n):
        heads[order[place]] = order[rng.integers(place)]
    return heads.tolist()


def test_paths_are_networkxs():
    for n in (1, 2, 9, 30):
        heads = random_heads(n)
        graph = networkx.Graph()
        graph.add_nodes_from(range(n))
        graph.add_edges_from((i, head) for i, head in enumerate(heads) if head != ROOT)
        expected = dict(networkx.all_pairs_shortest_path_length(graph))
        found = paths(heads)
        assert found.distances.tolist() == [[expected[i][j] for j in range(n)] for i in range(n)]
        assert found.depths.tolist() == found.distances[heads.index(ROOT)].tolist()


def test_what_is_no_tree():
    assert is_tree([1, ROOT, 1], 3)
    assert not is_tree([1, 0, ROOT], 3)  # a cycle
    assert not is_tree([ROOT, ROOT, 0], 3)
    assert not is_tree([], 2)
    assert not is_tree([5, ROOT], 2)


def sentence(words, heads, tags=()):
    return Sentence("s", "en", tuple(words), upos=tuple(tags or ["X"] * len(words)), heads=heads)


def test_sentences_are_left_out_with_a_reason():
    good = sentence("ab.", (ROOT, 0, 0), ["X", "X", "PUNCT"])
    marked = sentence("!a", (ROOT, 0), ["PUNCT", "X"])
    untagged = Sentence("s", "en", ("a", "b"), heads=(ROOT, 0))
    given = [
        sentence("a", (ROOT,)),
        good,
        sentence("ab", (1, 0)),
        sentence("abc", (ROOT, 0, 1)),
        untagged,
        marked,
    ]
    found = trees_of(given, np.array([False, False, False, True, False, False]))
    assert found.left_out == {ONE_WORD: 1, NO_TREE: 1, LONG: 1, NO_TAGS: 1}
    assert found.sentences.tolist() == [1, 5]
    assert found.first.tolist() == [1, 11]
    assert found.lengths.tolist() == [3, 2]
    assert found.edges.tolist() == [1, 0]
    assert found.punctuation_roots == 1
    assert found.kept(np.array([0])).tolist() == [[True, True, False]]


def test_a_type_draws_once_and_half_of_them_draw_the_first_word():
    words = [f"w{n}" for n in range(2000)]
    heads = control_heads(["first", "second", *words])
    assert heads[0] == ROOT
    draws = [head == 0 for head in heads[2:]]
    assert 0.45 < np.mean(draws) < 0.55
    assert all(head in (0, place - 1) for place, head in enumerate(heads[1:], start=1))
    # The same in any other sentence, and in capitals.
    order = rng.permutation(2000)
    again = control_heads(["other", "words", *(words[i].upper() for i in order)])
    assert [head == 0 for head in again[2:]] == [draws[i] for i in order]
