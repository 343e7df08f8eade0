"""Share of the variance of vectors explained by a word's place in the sentence."""

from __future__ import annotations

import numpy as np

from probes.common.arrays import Ints
from probes.statistics.sums import Rows, group_sums

PLACES = 200
"""Number of distinct places; later words share the last. Work grows with the cube of the number,
and places in few sentences say nothing."""


def position_share(rows: Rows, position: Ints, types: Ints) -> float | None:
    """Share of the variance within types explained by places, adjusted for chance.

    Vectors and indicators of places are centred within types. The share is the adjusted R² of the
    regression of vectors on indicators, summed over dimensions. With one type, this is one-way
    analysis of variance with effect size ε² (Kelley 1935). If places make no difference, the share
    is close to 0 and may be negative.

    Args:
        position, types: place and type of each word, numbered from 0. Shape (n,). Places above
            `PLACES` − 1 count as that one.

    Returns:
        None if words or places do not vary within types, or there are too few words.
    """
    position = np.minimum(position, PLACES - 1)
    n_types, n_places = int(types.max(initial=-1)) + 1, int(position.max(initial=-1)) + 1
    counts = np.zeros((n_types, n_places))
    np.add.at(counts, (types, position), 1)
    sizes = counts.sum(1, keepdims=True)
    sums = group_sums(rows, types, n_types)
    means = sums / np.maximum(sizes, 1)
    squares = float(np.einsum("ij,ij->", rows, rows, dtype=np.float64))
    total = squares - float((means * sums).sum())
    # Products of centred indicators with each other and with centred vectors.
    gram = np.diag(counts.sum(0)) - counts.T @ (counts / np.maximum(sizes, 1))
    products = group_sums(rows, position, n_places) - counts.T @ means
    values, directions = np.linalg.eigh(gram)
    varies = values > _ROUNDING * values.max(initial=0)
    explained = ((directions[:, varies].T @ products) ** 2).sum(1) @ (1 / values[varies])
    free = len(rows) - np.count_nonzero(sizes)
    left = free - np.count_nonzero(varies)
    if left < 1 or not varies.any() or total <= _ROUNDING * squares:
        return None
    return float(1 - ((total - explained) / left) / (total / free))


_ROUNDING = 1e-10
"""Differences smaller than this, relative to their terms, count as 0."""
