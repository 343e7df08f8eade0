"""Random trees, sentences that have them, and vectors in which they lie."""

import numpy as np
from random_trees import random_heads
from sentences import sentence_with_tree

from probes.data.sentence import ROOT
from probes.families.structure.trees import trees_of


def sentence_of_nouns(heads, upos=None, words=None, name="s", document=""):
    """Nouns, unless something else is said."""
    tags = tuple(upos or ("NOUN",) * len(heads))
    words = words and [*words]
    return sentence_with_tree(heads, words=words, name=name, upos=tags, document=document)


def trees(*sentences):
    """The trees of sentences within the model's window."""
    return trees_of(sentences, np.zeros(len(sentences), dtype=bool))


def planted(heads, size):
    """For each word the sum of the unit vectors of the edges between it and the root.

    The edge from word i to its head is unit vector i, so that squared distances are distances in
    the tree, and squared lengths are depths. Shape (words, size).
    """
    found = np.zeros((len(heads), size))
    for word in range(len(heads)):
        at = word
        while heads[at] != ROOT:
            found[word, at] = 1
            at = heads[at]
    return found


def random_trees(n_sentences, longest, seed, shortest=2):
    """Sentences of random lengths with random trees, and about a sixth of punctuation."""
    rng = np.random.default_rng(seed)
    found = []
    for number in range(n_sentences):
        heads = random_heads(int(rng.integers(shortest, longest + 1)), rng)
        tags = rng.choice(["NOUN", "PUNCT"], len(heads), p=[5 / 6, 1 / 6])
        words = rng.choice([f"w{i}" for i in range(40)], len(heads))
        found.append(sentence_of_nouns(heads, map(str, tags), map(str, words), f"s{seed}-{number}"))
    return tuple(found)


def loss_in_loops(its, vectors, probe, b, sentence):
    """The loss of a probe on a sentence: absolute errors of distances, or of depths, on average."""
    tree = (its.paths, *its.control_paths)[probe.control][sentence]
    first, n = its.first[sentence], its.lengths[sentence]
    z = vectors[first : first + n].astype(float) @ b.T
    if probe.kind == "depth":
        return np.mean([abs(z[i] @ z[i] - tree.depths[i]) for i in range(n)])
    apart = {(i, j): z[i] - z[j] for i in range(n) for j in range(n)}
    return np.mean([abs(gap @ gap - tree.distances[pair]) for pair, gap in apart.items()])
