"""Five classes of attention maps, by a rule.

Kovaleva et al. (2019), section 4.1, name the classes and had a convolutional network tell them
apart that was trained on some 400 maps labelled by hand; neither network nor labels were published.
Here a head has soft masses, each the share of attention that a pattern takes beyond what uniform
attention gives it: (mass − uniform) / (1 − uniform).

- diagonal: a token's attention to itself and both neighbours;
- vertical: attention to the two tokens that get most of it;
- block: attention of words to words of their own segment, in texts of two segments.

A head is *vertical + diagonal* if both masses are `MIXED` or more and together `CLEAR`; otherwise
it has the class of the greatest mass, if that is `CLEAR`; otherwise it is *heterogeneous*.
"""

from __future__ import annotations

from collections.abc import Mapping

CLEAR, MIXED = 0.5, 0.2

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


def pattern_of(masses: Mapping[str, float]) -> str:
    """The class of a head.

    Args:
        masses: beyond uniform attention, by name; block is missing in texts of one segment.
    """
    both = masses["vertical"], masses["diagonal"]
    if min(both) >= MIXED and sum(both) >= CLEAR:
        return "vertical + diagonal"
    greatest = max(masses, key=lambda name: masses[name])
    return greatest if masses[greatest] >= CLEAR else "heterogeneous"
