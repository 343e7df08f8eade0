"""Links between predicates and their core arguments, and positions of the same distance.

Kovaleva et al. (2019), section 4.2, with PropBank's roles in the place of FrameNet's elements: core
arguments of at most three words, at least two words from their predicate. What a head gives to a
link, it may give to whatever is at that distance; so each link stands beside its *controls*: the
same two spans, moved together to every other place in the sentence where no predicate is linked to
an argument.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from probes.common.arrays import Ints
from probes.data.sentence import Sentence, Span
from probes.extraction.views import Text, plain_text

ROLES = tuple(f"ARG{n}" for n in range(6))

LONGEST, NEAREST = 3, 2
"""The most words of an argument, and its least distance from the predicate."""


class Link(NamedTuple):
    """A predicate and one of its arguments."""

    role: str
    argument: Span
    predicate: Span


@dataclass(frozen=True)
class TextLinks:
    """The links of a text, each with its placements: the link itself, then its controls.

    Attributes:
        row, column: words of each pair of a placement, argument and predicate, of which either may
            attend to the other. Shape (cells,).
        placement: the placement of each pair. Shape (cells,).
        link: the link of each placement. Shape (placements,).
        control: whether a placement is a control. Shape (placements,).
    """

    links: tuple[Link, ...]
    row: Ints
    column: Ints
    placement: Ints
    link: Ints
    control: Ints


def links_of(sentence: Sentence) -> list[Link]:
    """The links of a sentence, in order."""
    return [
        Link(role, span, frame.predicate)
        for frame in sentence.frames
        for role, span in frame.arguments
        if role in ROLES
        and span[1] - span[0] <= LONGEST
        and _apart(span, frame.predicate) >= NEAREST
    ]


def _apart(one: Span, other: Span) -> int:
    """Words from one span to the other; 1 for neighbours, 0 if they overlap."""
    return max(0, one[0] - other[1] + 1, other[0] - one[1] + 1)


def text_links(sentences: Iterable[Sentence]) -> dict[Text, TextLinks]:
    """The links of texts that have any; sentences of equal words share theirs."""
    links: dict[Text, list[Link]] = {}
    linked: dict[Text, set[tuple[int, int]]] = {}
    for sentence in sentences:
        if found := links_of(sentence):
            text = plain_text(sentence)
            known = links.setdefault(text, [])
            known += [link for link in dict.fromkeys(found) if link not in known]
            pairs = linked.setdefault(text, set())
            for frame in sentence.frames:
                for _, span in frame.arguments:
                    cells = set(_cells(span, frame.predicate))
                    pairs |= cells | {(column, row) for row, column in cells}
    return {text: _placed(text, links[text], linked[text]) for text in links}


def _cells(argument: Span, predicate: Span) -> list[tuple[int, int]]:
    return [(row, column) for row in range(*argument) for column in range(*predicate)]


def _placed(text: Text, links: list[Link], linked: set[tuple[int, int]]) -> TextLinks:
    cells: list[tuple[int, int, int]] = []
    of_link: list[int] = []
    control: list[int] = []
    for number, link in enumerate(links):
        first = min(link.argument[0], link.predicate[0])
        end = max(link.argument[1], link.predicate[1])
        for shift in (0, *(x for x in range(-first, len(text.words) - end + 1) if x)):
            moved = [(i + shift, j + shift) for i, j in _cells(link.argument, link.predicate)]
            if shift and not linked.isdisjoint(moved):
                continue
            cells += [(*cell, len(of_link)) for cell in moved]
            of_link.append(number)
            control.append(int(shift != 0))
    row, column, placement = np.array(cells).T
    return TextLinks(tuple(links), row, column, placement, np.array(of_link), np.array(control))


def digest_of(links: Mapping[Text, TextLinks]) -> str:
    """SHA-256 of the links of all texts, with their placements; empty if there are none."""
    digest = hashlib.sha256()
    for text, its in links.items():
        digest.update(repr((text.words, its.links, its.row.tolist(), its.link.tolist())).encode())
    return digest.hexdigest() if links else ""
