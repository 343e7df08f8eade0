"""Links between predicates and their core arguments, and controls at the same distance.

After Kovaleva et al. (2019), section 4.2, with PropBank roles instead of FrameNet elements: core
arguments of at most three words, at least two words from their predicate. A head may attend to
whatever is at that distance. So each link has *controls*: the same two spans, moved together to
every other place in the sentence that has no link. Attention is measured in both directions:
Kovaleva et al. do not fix one, and in their example the predicate attends to its argument.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from probes.common.arrays import Ints
from probes.data.sentence import Sentence, Span
from probes.extraction.views import Text, plain_text
from probes.families.attention.annotation import FEWEST_WORDS
from probes.families.attention.heads import ROLE_DIRECTIONS
from probes.families.attention.layout import Texts
from probes.families.attention.scored import ScoredHeads, summed_up
from probes.measurements.context import ModelContext
from probes.statistics.ratios import RatioParts

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
        row, column: argument word and predicate word of each pair. Shape (cells,).
        placement: placement of each pair. Shape (cells,).
        link: link of each placement. Shape (placements,).
        control: 1 if a placement is a control, else 0. Shape (placements,).
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
    """Distance of two spans in words; 1 for neighbours, 0 if they overlap."""
    return max(0, one[0] - other[1] + 1, other[0] - one[1] + 1)


def text_links(sentences: Iterable[Sentence]) -> dict[Text, TextLinks]:
    """The links of texts that have any. Sentences with the same words share theirs."""
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
    for text, of_text in links.items():
        digest.update(
            repr((text.words, of_text.links, of_text.row.tolist(), of_text.link.tolist())).encode()
        )
    return digest.hexdigest() if links else ""


SHORT = 12
"""Longest sentence, in words, that Kovaleva et al. (2019) use."""

Kind = Callable[[Link, int], bool]
"""Decides from a link and its sentence's length whether a feature includes the link."""


def _of_role(role: str) -> Kind:
    return lambda link, n_words: link.role == role


KINDS: dict[str, Kind] = {
    "core": lambda link, n_words: True,
    f"core, at most {SHORT} words": lambda link, n_words: n_words <= SHORT,
    **{role: _of_role(role) for role in ROLES},
}
"""Features: all links, those that Kovaleva et al. use, and those of each role."""


def roles(
    context: ModelContext, blocks: Sequence[int], splits: Mapping[str, Texts]
) -> tuple[list[ScoredHeads], dict[str, int], int]:
    """Scores of frequent roles, test links of rarer ones, and the number of links without controls.

    A score is the greatest weight from a word of the argument to one of the predicate, or back,
    averaged over links that have controls (Kovaleva et al. 2019, section 4.2). The baseline is the
    mean over controls; chance is the weight under uniform attention.
    """
    of_text = text_links(s for texts in splits.values() for s in texts.sentences)
    n_links = [len(of_text[text].links) if text in of_text else 0 for text in context.view.texts]
    first = context.first_rows(np.array(n_links, dtype=np.int64))
    values = np.concatenate(context.stored.arrays("links"))[:, blocks]
    found: dict[str, dict[str, tuple[RatioParts, ...]]] = {name: {} for name in KINDS}
    without = 0
    for split, texts in splits.items():
        sentence, row, links = _links(texts, of_text, context.view.index, first)
        usable = ~np.isnan(values[row]).any((1, 2, 3, 4))
        weights, controls = np.moveaxis(values[row, :, :-1], -1, 0)
        alike = np.broadcast_to(values[row, :, -1:, :, 0], weights.shape)
        n_cells = math.prod(weights.shape[1:])
        each = [x.reshape(len(row), n_cells) for x in (weights, controls, alike)]
        without += int((~usable & ~texts.left_out[sentence]).sum())
        for name, has in KINDS.items():
            chosen = usable & np.array([has(*link) for link in links], dtype=bool)
            found[name][split] = tuple(
                summed_up(sentence, len(texts.sentences), chosen, np.nan_to_num(x)) for x in each
            )
    frequent = [_scored(name, each) for name, each in found.items() if _is_frequent(each)]
    rare = {
        name: each["test"][0].n
        for name, each in found.items()
        if not _is_frequent(each) and max(links.n for links, *_ in each.values())
    }
    return frequent, rare, without


def _links(
    texts: Texts, of_text: Mapping[Text, TextLinks], index: Mapping[Text, int], first: Ints
) -> tuple[Ints, Ints, list[tuple[Link, int]]]:
    """Sentence, row in the store, and (link, sentence length) of each link of a split."""
    sentence: list[int] = []
    row: list[int] = []
    links: list[tuple[Link, int]] = []
    for number, each in enumerate(texts.sentences):
        text = plain_text(each)
        for link in links_of(each):
            sentence.append(number)
            row.append(int(first[index[text]]) + of_text[text].links.index(link))
            links.append((link, len(each)))
    return np.array(sentence, dtype=np.int64), np.array(row, dtype=np.int64), links


def _is_frequent(found: Mapping[str, tuple[RatioParts, ...]]) -> bool:
    return min(links.n for links, *_ in found.values()) >= FEWEST_WORDS


def _scored(name: str, found: Mapping[str, tuple[RatioParts, ...]]) -> ScoredHeads:
    return ScoredHeads(
        "role",
        name,
        ROLE_DIRECTIONS,
        found["dev"][0],
        found["test"][0],
        {split: controls for split, (_, controls, _) in found.items()},
        "controls",
        found["test"][2].scores,
        by_difference=True,
    )
