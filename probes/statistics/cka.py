"""Linear centred kernel alignment of layers, of one model or of two (Kornblith et al. 2019).

For centred X (n, d₁) and Y (n, d₂), CKA is ‖YᵀX‖²_F / (‖XᵀX‖_F ‖YᵀY‖_F); this equals eq. 1 and 2
of the paper without computing the n × n Gram matrices. Rotation and scaling do not change it;
other linear maps do. With few words, CKA is biased upward: see `bias_note`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from probes.common.arrays import Floats
from probes.statistics.sums import Rows, centred, cross_gram

ReadLayer = Callable[[int], Rows]
"""Returns the vectors (words, H) of a layer. All layers and models have the same words."""

ENOUGH = 10
"""Words per dimension at which the bias becomes small."""


def bias_note(n_words: int, n_dimensions: int) -> tuple[str, ...]:
    """A warning if there are too few words for CKA to be compared with other data."""
    if n_words >= ENOUGH * n_dimensions:
        return ()
    return (
        f"CKA is too high: {n_words:,} words are fewer than {ENOUGH} times the {n_dimensions:,} "
        "dimensions, which makes all layers look similar.",
    )


def linear_cka(x: Rows, y: Rows) -> float:
    """The similarity of two sets of vectors of the same words; NaN if one does not vary.

    Args:
        x, y: shapes (n, d₁) and (n, d₂); need not be centred.
    """
    x, y = centred(x), centred(y)
    return _similarity(x, y, _norm(x), _norm(y))


def cka_within(read: ReadLayer, layers: Sequence[int], step: Callable[[], object]) -> Floats:
    """The similarity of every two layers of a model, two of them in memory at a time.

    Args:
        step: called after each layer and each pair of different layers.

    Returns:
        shape (layers, layers); NaN where a layer does not vary.
    """
    norms: list[float] = []
    found = np.full((len(layers), len(layers)), np.nan)
    for i, layer in enumerate(layers):
        x = centred(read(layer))
        norms.append(_norm(x))
        found[i, i] = 1.0 if norms[i] > 0 else np.nan
        step()
        for j, other in enumerate(layers[:i]):
            y = centred(read(other))
            found[i, j] = found[j, i] = _similarity(x, y, norms[i], norms[j])
            step()
    return found


def cka_between(
    read: ReadLayer,
    layers: Sequence[int],
    other: ReadLayer,
    others: Sequence[int],
    step: Callable[[], object],
) -> Floats:
    """The similarity of each layer of one model with each layer of another.

    Args:
        other, others: `read` and `layers` of the other model, which may have another width.
        step: called after each pair.

    Returns:
        shape (layers, others); NaN where a layer does not vary.
    """
    norms = [_norm(centred(rows)) for rows in map(other, others)]
    found = np.full((len(layers), len(others)), np.nan)
    for i, layer in enumerate(layers):
        x = centred(read(layer))
        norm = _norm(x)
        for j, second in enumerate(others):
            found[i, j] = _similarity(x, centred(other(second)), norm, norms[j])
            step()
    return found


def _norm(x: Rows) -> float:
    """The Frobenius norm of XᵀX."""
    return float(np.linalg.norm(cross_gram(x, x)))


def _similarity(x: Rows, y: Rows, norm_x: float, norm_y: float) -> float:
    """CKA of centred vectors, given the norms of their Gram matrices."""
    if not norm_x * norm_y > 0:
        return float("nan")
    return float((cross_gram(x, y) ** 2).sum() / (norm_x * norm_y))
