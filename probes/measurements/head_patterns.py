"""Five classes of attention maps, by a rule.

Kovaleva et al. (2019), section 4.1, name the classes and had a convolutional network tell them
apart that was trained on some 400 maps labelled by hand; neither network nor labels were published.
Here a head has soft masses, each the share of attention that a pattern takes beyond what uniform
attention gives it: (mass − uniform) / (1 − uniform).

- diagonal: a token's attention to itself and both neighbours;
- vertical: attention to the two tokens that get most of it from other rows than are counted;
- block: attention of words to words of their own segment, in texts of two segments.

A head is *vertical + diagonal* if both masses are `MIXED` or more and together `CLEAR`; otherwise
it has the class of the greatest mass, if that is `CLEAR`; otherwise it is *heterogeneous*. How many
heads have a class hangs on where that bound is set, so that counts are given for all `BOUNDS`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import chain

import numpy as np

from probes.common.arrays import Floats
from probes.measurements.head_rows import HeadRows
from probes.records.table import NOTHING

CLEAR, MIXED = 0.5, 0.2

BOUNDS = (0.4, 0.5, 0.6, 0.7)
"""What `CLEAR` might be as well; nothing is said of the share of a class that one contradicts."""

MASSES = ("vertical", "diagonal", "block")

CLASSES = {
    "vertical": "V",
    "diagonal": "D",
    "vertical + diagonal": "VD",
    "block": "B",
    "heterogeneous": "H",
}
"""The classes, each with its sign in pictures."""


def beyond_uniform(mass: Floats, uniform: Floats) -> Floats:
    """The share of attention that a pattern takes beyond uniform attention; at most 1."""
    rest = 1 - uniform
    return np.divide(mass - uniform, rest, out=np.zeros_like(mass), where=rest > 0)


def pattern_of(masses: Mapping[str, float], clear: float = CLEAR) -> str:
    """The class of a head.

    Args:
        masses: beyond uniform attention, by name; block is missing in texts of one segment.
    """
    both = masses["vertical"], masses["diagonal"]
    if min(both) >= MIXED and sum(both) >= clear:
        return "vertical + diagonal"
    greatest = max(masses, key=lambda name: masses[name])
    return greatest if masses[greatest] >= clear else "heterogeneous"


def classes(found: HeadRows, clear: float = CLEAR) -> list[list[str]]:
    """The class of every head, by layer, then by head."""
    beyond = {
        str(name): beyond_uniform(mass.values, mass.baseline)
        for (name, _), mass in found.each("pattern").items()
    }
    return [
        [
            pattern_of({name: each[layer, head] for name, each in beyond.items()}, clear)
            for head in range(found.n_heads)
        ]
        for layer in range(len(found.layers))
    ]


def counted_classes(found: HeadRows) -> list[tuple[str, ...]]:
    """How many heads have each class: cells of a row for each layer, then of all for each bound."""
    rows = [(str(layer), names) for layer, names in zip(found.layers, classes(found), strict=True)]
    rows += [
        (f"all, {bound:.1f}".replace("0.", "."), list(chain(*classes(found, bound))))
        for bound in BOUNDS
    ]
    counts = [(first, Counter(names)) for first, names in rows]
    return [(first, *(str(of[name] or NOTHING) for name in CLASSES)) for first, of in counts]


WHERE_BOUNDS = (
    f"Layers: with a bound of {CLEAR:.1f}; last rows: of all heads with other bounds, too."
).replace(" 0.", " .")
"""What the rows of counts are."""
