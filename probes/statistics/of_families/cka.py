"""Linear centred kernel alignment of layers, of one model or of two.

CKA (Kornblith et al. 2019, eq. 1 and 2) is HSIC(X, Y) / √(HSIC(X, X) HSIC(Y, Y)). Rotation and
scaling do not change it; other linear maps do. Two estimates of HSIC are made. The biased one of
the paper is too high if there are few words. The unbiased one (Song et al. 2012, eq. 5; Nguyen et
al. 2021) is 0 on average if layers are independent, so it may be below 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from probes.common.arrays import Floats
from probes.statistics.sums import VectorRows, centred, cross_gram

ReadLayer = Callable[[int], VectorRows]
"""Returns the vectors (words, H) of a layer. All layers and models have the same words."""

ESTIMATES = "cka", "unbiased_cka"
"""Names of the two estimates, biased and unbiased."""


def linear_cka(x: VectorRows, y: VectorRows) -> Floats:
    """Similarity of two sets of vectors of the same words.

    Args:
        x, y: shapes (n, d₁) and (n, d₂); need not be centred.

    Returns:
        both estimates, shape (2,). NaN if one set does not vary; the unbiased estimate is also NaN
        for fewer than four words.
    """
    x, y = centred(x), centred(y)
    return _normalised(_hsic(x, y), _hsic(x, x), _hsic(y, y))


def cka_within(read_layer: ReadLayer, layers: Sequence[int], step: Callable[[], object]) -> Floats:
    """Similarity of every two layers of a model, two of them in memory at a time.

    Args:
        step: called after each layer and each pair of different layers.

    Returns:
        shape (2, layers, layers), like `linear_cka`.
    """
    norms: list[Floats] = []
    cka = np.full((2, len(layers), len(layers)), np.nan)
    for i, layer in enumerate(layers):
        x = centred(read_layer(layer))
        norms.append(_hsic(x, x))
        cka[:, i, i] = _normalised(norms[i], norms[i], norms[i])
        step()
        for j, other_layer in enumerate(layers[:i]):
            cka[:, i, j] = _normalised(
                _hsic(x, centred(read_layer(other_layer))), norms[i], norms[j]
            )
            cka[:, j, i] = cka[:, i, j]
            step()
    return cka


def cka_between(
    read_layer: ReadLayer,
    layers: Sequence[int],
    read_other: ReadLayer,
    other_layers: Sequence[int],
    step: Callable[[], object],
) -> Floats:
    """Similarity of each layer of one model with each layer of another.

    Args:
        read_other, other_layers: reader and layers of the other model, of any width.
        step: called after each pair.

    Returns:
        shape (2, layers, other layers), like `linear_cka`.
    """
    norms = [_hsic(y, y) for y in map(centred, map(read_other, other_layers))]
    cka = np.full((2, len(layers), len(other_layers)), np.nan)
    for i, layer in enumerate(layers):
        x = centred(read_layer(layer))
        x_norm = _hsic(x, x)
        for j, other_layer in enumerate(other_layers):
            cka[:, i, j] = _normalised(_hsic(x, centred(read_other(other_layer))), x_norm, norms[j])
            step()
    return cka


def _hsic(x: VectorRows, y: VectorRows) -> Floats:
    """HSIC of centred vectors, biased and unbiased, each up to a factor that depends on n alone.

    For centred vectors the sums of Song et al. need no n × n matrix: the kernel matrix without
    its diagonal has row sums −‖xᵢ‖².
    """
    n = len(x)
    biased = (cross_gram(x, y) ** 2).sum()
    if n < 4:
        return np.array([biased, np.nan])
    k, m = (np.einsum("ij,ij->i", z, z, dtype=np.float64) for z in (x, y))
    diagonal = n / (n - 2) * (k @ m) - k.sum() * m.sum() / ((n - 1) * (n - 2))
    return np.array([biased, biased - diagonal])


def _normalised(between: Floats, one: Floats, other: Floats) -> Floats:
    """HSIC over the geometric mean of the sets with themselves; NaN if either is not above 0."""
    valid = (one > 0) & (other > 0)
    cka: Floats = between / np.sqrt(np.where(valid, one * other, np.nan))
    return cka
