"""SyntaxGym's predictions: formulas over the surprisals of regions (Gauthier et al. 2020).

    [(5;%gap%) - (5;%no-gap%)] > 0 & (*;%good%) < (*;%bad%)

``(5;%gap%)`` is the surprisal of region 5 of the condition ``gap``, ``*`` that of all regions;
round and square brackets group alike. ``&`` binds weakest, then ``|``, comparisons, sums, products.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

Surprisals = Mapping[str, Sequence[float]]
"""Of each region, by condition."""

_TOKEN = re.compile(r"\s*(\(\s*(\*|\d+)\s*;\s*%([^%]+)%\s*\)|\d+\.?\d*|[-+*/<>&|()\[\]])")

_LEVELS: tuple[dict[str, Callable[[float, float], float]], ...] = (
    {"&": min},
    {"|": max},
    {"<": lambda a, b: (1 + (a < b) - (a > b)) / 2, ">": lambda a, b: (1 + (a > b) - (a < b)) / 2},
    {"+": lambda a, b: a + b, "-": lambda a, b: a - b},
    {"*": lambda a, b: a * b, "/": lambda a, b: a / b},
)
"""Operators by how strongly they bind. A comparison of equals is half true."""


def truth(formula: str, surprisals: Surprisals) -> float:
    """1 where the prediction is true of an item, 0 where it is false, ½ where it ties.

    Raises:
        ValueError: the formula cannot be read, or names a region or condition that is not there.
    """
    tokens, place = [], 0
    while place < len(formula.rstrip()):
        match = _TOKEN.match(formula, place)
        if match is None:
            raise ValueError(f"the formula {formula!r} cannot be read from {formula[place:]!r} on")
        tokens.append((match[1], match[2], match[3]))
        place = match.end()
    value, rest = _value(tokens, 0, surprisals)
    if rest:
        raise ValueError(f"the formula {formula!r} goes on after its end with {rest[0][0]!r}")
    return value


_Tokens = list[tuple[str, str, str]]


def _value(tokens: _Tokens, level: int, surprisals: Surprisals) -> tuple[float, _Tokens]:
    """The value of what begins a formula, and what is left of it."""
    if level == len(_LEVELS):
        return _operand(tokens, surprisals)
    value, tokens = _value(tokens, level + 1, surprisals)
    while tokens and tokens[0][0] in _LEVELS[level]:
        operator, tokens = tokens[0][0], tokens[1:]
        other, tokens = _value(tokens, level + 1, surprisals)
        value = _LEVELS[level][operator](value, other)
    return value, tokens


def _operand(tokens: _Tokens, surprisals: Surprisals) -> tuple[float, _Tokens]:
    if not tokens:
        raise ValueError("the formula ends where a surprisal is expected")
    (text, region, condition), rest = tokens[0], tokens[1:]
    if condition:
        try:
            regions = surprisals[condition]
            if region != "*" and int(region) == 0:
                raise IndexError
            return (sum(regions) if region == "*" else regions[int(region) - 1]), rest
        except (KeyError, IndexError):
            raise ValueError(f"there is no {text}") from None
    if text in "([":
        value, rest = _value(rest, 0, surprisals)
        if not rest or rest[0][0] not in ")]":
            raise ValueError(f"{text!r} is never closed")
        return value, rest[1:]
    return float(text), rest
