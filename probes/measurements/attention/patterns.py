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

from collections.abc import Iterable, Mapping
from typing import Literal

from probes.measurements.attention.payload import HeadNumbers

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


def beyond_uniform(mass: float, uniform: float) -> float:
    """The share of attention that a pattern takes beyond uniform attention; at most 1."""
    return (mass - uniform) / (1 - uniform) if uniform < 1 else 0.0


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


def classes(
    numbers: Iterable[HeadNumbers],
    clear: float = CLEAR,
    end: Literal["values", "low", "high"] = "values",
) -> tuple[tuple[str, ...], ...]:
    """The class of every head, by layer, then by head.

    Args:
        numbers: among others those of all masses.
        end: of their intervals, instead of the masses themselves.
    """
    masses = {x.feature: x for x in numbers if x.measure == "pattern"}

    def of(layer: int, head: int) -> str:
        beyond = {}
        for name, each in masses.items():
            mass, uniform = getattr(each, end)[layer][head], each.baseline_of(layer, head)
            assert uniform is not None
            beyond[name] = beyond_uniform(mass, uniform)
        return pattern_of(beyond, clear)

    rows = enumerate(masses["vertical"].values)
    return tuple(tuple(of(layer, head) for head in range(len(row))) for layer, row in rows)
