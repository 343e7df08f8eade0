"""Sentences with random trees, and vectors that embed these."""

from types import SimpleNamespace

import numpy as np
import torch
from planted_vectors import PlantedVectors

from probes.data.sentence import ROOT, Corpus, Sentence

device = torch.device("cpu")

WORDS = 12
"""Of the longest sentences."""

SIZE = WORDS + 4
"""Of the vectors: a dimension for every word, and others for noise."""


def embedded(heads):
    """Vectors whose squared distances are those in the tree, and squared lengths depths.

    Each word but the root has a direction of its own: its vector is the sum of the directions on
    the path from the root. Shape (n, SIZE).
    """
    found = np.zeros((len(heads), SIZE))
    for word in range(len(heads)):
        at = word
        while heads[at] != ROOT:
            found[word, at] = 1
            at = heads[at]
    return found


def planted(n_train, n_dev, n_test, noise=0.5, options=None):
    """A context of two layers: the embedded trees, and the same rotated, stretched, with noise."""
    rng = np.random.default_rng(0)

    def sentence(n, number):
        order, heads = rng.permutation(n), np.full(n, ROOT)
        for place in range(1, n):
            heads[order[place]] = order[rng.integers(place)]
        words = tuple(f"w{rng.integers(50)}" for _ in range(n))
        return Sentence(
            f"{number}", "en", words, ("X",) * n, heads=tuple(heads.tolist()), document=f"d{number}"
        )

    sizes = {"train": n_train, "dev": n_dev, "test": n_test}
    splits = {
        split: tuple(sentence(5 + k % (WORDS - 4), k) for k in range(n))
        for split, n in sizes.items()
    }
    turn, _ = np.linalg.qr(rng.standard_normal((SIZE, SIZE)))
    stretch = np.exp(rng.uniform(-1, 1, SIZE))

    def vectors(given, layer):
        found = embedded(given.heads)
        if layer == 0:
            return found
        seed = int(given.id) + 1000 * len(given.heads)
        found[:, WORDS:] = noise * np.random.default_rng(seed).standard_normal((len(found), 4))
        return found @ turn * stretch

    context = PlantedVectors(Corpus("planted", "1", "", splits), (0, 1), options, vectors)
    context.device, context.model = device, SimpleNamespace(digest="m", hidden_size=SIZE)
    return context
