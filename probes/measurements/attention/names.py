"""Names of what is measured of heads."""

from __future__ import annotations

OFFSETS = range(-5, 6)
"""Distances at which attention is counted; 0 is the token itself."""

COLUMNS = 2
"""The columns of a vertical pattern: those that get the most attention, such as [CLS] and [SEP]."""

STATISTICS = (
    "entropy",
    "first",
    "separators",
    *(f"offset {offset:+d}" for offset in OFFSETS),
    "vertical",
    "diagonal",
    "block",
)
"""What is kept of each map."""


DIRECTIONS = ("dependent to head", "head to dependent")
"""Who attends to whom."""

ROLE_DIRECTIONS = ("argument to predicate", "predicate to argument")
"""The same of links of semantic roles."""

TREES = (*DIRECTIONS, "undirected")
"""How a tree is read from a map."""

TOKENS = 16
"""Length of the texts whose maps are averaged, special tokens included."""

MIX_SENTENCES = 2000
"""Training sentences that mixes of heads are fitted to, by default."""
