"""Random trees."""

from probes.data.sentence import ROOT


def random_heads(n, rng):
    """The heads of a tree over n words, any of which may be the root."""
    order, heads = rng.permutation(n), [ROOT] * n
    for place in range(1, n):
        heads[order[place]] = int(order[rng.integers(place)])
    return tuple(heads)
