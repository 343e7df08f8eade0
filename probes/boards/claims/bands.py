"""The parts of a model that the Primer speaks of, in models of any number of layers.

It gives them for BERT-base and BERT-large, of 12 and 24 layers.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from probes.boards.claims.claim import MissingError

Band = Callable[[int, int], bool]
"""Whether a layer of a model of so many layers belongs to some part of it."""


def lower(layer: int, n_layers: int) -> bool:
    """Up to layer 4 of 12, around which word order declines in Lin et al. 2019."""
    return 3 * layer <= n_layers


def middle(layer: int, n_layers: int) -> bool:
    """Layers 6–9 of 12 and 14–19 of 24: those of tree depth in Hewitt & Manning 2019."""
    first, last = _ends_of_middle(n_layers)
    return first <= layer / n_layers <= last


def late_middle(layer: int, n_layers: int) -> bool:
    """What rounds to layers 8 and 9 of 12: those of agreement in Goldberg 2019."""
    return 7.5 * n_layers <= 12 * layer <= 9.5 * n_layers


def higher(layer: int, n_layers: int) -> bool:
    """Above the middle: from layer 10 of 12 and 20 of 24."""
    return layer / n_layers > _ends_of_middle(n_layers)[1]


def within(n_layers: int, band: Band) -> set[int]:
    """The layers of a model that lie in a band.

    Raises:
        MissingError: it has none.
    """
    layers = {layer for layer in range(n_layers + 1) if band(layer, n_layers)}
    if not layers:
        raise MissingError(f"a model of {n_layers} layers has none that counts as {name_of(band)}")
    return layers


def name_of(band: Band) -> str:
    """``late-middle``."""
    return band.__name__.replace("_", "-")


def around_layer_4(n_layers: int) -> tuple[int, int]:
    """Layers 3 and 5 of 12: the last before and the first after the decline of word order."""
    return n_layers // 4, -(-5 * n_layers // 12)


def _ends_of_middle(n_layers: int) -> tuple[float, float]:
    """Relative depths; linear between 12 and 24 layers, those of 12 below and of 24 above."""
    first = np.interp(n_layers, (12, 24), (6 / 12, 14 / 24))
    last = np.interp(n_layers, (12, 24), (9 / 12, 19 / 24))
    return float(first), float(last)
