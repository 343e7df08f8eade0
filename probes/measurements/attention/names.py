"""Names of what is measured of heads."""

from __future__ import annotations

from typing import NamedTuple

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


class Described(NamedTuple):
    """A number that tables and cards give of every head.

    Attributes:
        column: what a table calls it.
        line: what a card calls it.
    """

    measure: str
    feature: str
    column: str
    line: str


DESCRIBED = (
    Described("entropy", "", "entropy", "entropy"),
    Described("first", "", "first\ntoken", "to the first token"),
    Described("separators", "", "separators", "to separators"),
    Described("feature", "punctuation", "punct.", "to punctuation"),
    Described("offset", "-1", "previous", "to the previous token"),
    Described("offset", "+0", "self", "to itself"),
    Described("offset", "+1", "next", "to the next token"),
)

DIRECTIONS = ("dependent to head", "head to dependent")
"""Who attends to whom."""

ROLE_DIRECTIONS = ("argument to predicate", "predicate to argument")
"""The same of links of semantic roles."""

TREES = (*DIRECTIONS, "undirected")
"""How a tree is read from a map."""

TOKENS = 16
"""Length of the texts whose maps are averaged, special tokens included."""

MEASURES = {
    "entropy": "entropy of a token's attention, as a share of the greatest possible",
    "first": "attention to the first token",
    "separators": "attention to special tokens after the text",
    "special": "attention to special tokens and punctuation",
    "offset": "attention to the token at a distance; 0 is itself",
    "pattern": "attention along a diagonal, in the two strongest columns, within a segment",
    "feature": "mean attention to the word of a kind that gets most of it",
    "relation": "how often the word attended to most is the head, or the dependent",
    "role": "greatest attention from a word of an argument to one of its predicate, or back",
    "uas": "words whose head is right in the maximum spanning arborescence",
    "uuas": "words that are linked to their head in the maximum spanning tree",
}
"""What is measured of each head."""

MIX_SENTENCES = 2000
"""Training sentences that mixes of heads are fitted to, by default."""

CLUSTER_SENTENCES = 1000
"""Sentences of dev and test on which heads are compared with each other, by default."""
