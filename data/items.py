"""Items: what a language model is asked, instead of sentences with annotation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

Kind = Literal["pairs", "contexts"]
"""Texts that differ in how likely they should be; or contexts with a word to be filled in."""

KINDS: dict[Kind, str] = {
    "pairs": "minimal pairs, or texts under several conditions",
    "contexts": "contexts with a word to be filled in",
}
"""What corpora are made of if not of sentences, in words."""

WHOLE = "(*;%good%) < (*;%bad%)"
"""The prediction of a minimal pair: the whole good sentence surprises less than the bad one."""


@dataclass(frozen=True, slots=True)
class Item:
    """Versions of a text, and what is to be true of a language model's surprisals.

    Attributes:
        id: unique within the corpus.
        kind: see `Kind`.
        paradigm: what it is one of, such as BLiMP's UID: one way to test one phenomenon.
        phenomenon: what paradigms belong to; may be empty.
        texts: by condition, the regions of the text as it is written, spaces included.
        predictions: of pairs, formulas over the surprisals of regions, as SyntaxGym writes them
            (Gauthier et al. 2020): ``(3;%gap%)`` is region 3 of the condition ``gap``, and ``*``
            are all regions.
        target: of contexts, the region to be filled in, from 0.
        answers: of contexts, conditions whose words complete it rightly.
        good, rivals: of contexts, the condition in which the word there should be likelier than in
            each of the others.
        cluster: what is resampled together; the item itself if empty.
    """

    id: str
    kind: Kind
    paradigm: str
    texts: Mapping[str, tuple[str, ...]]
    phenomenon: str = ""
    predictions: tuple[str, ...] = ()
    target: int = 0
    answers: tuple[str, ...] = ()
    good: str = ""
    rivals: tuple[str, ...] = ()
    cluster: str = ""


def minimal_pair(
    name: str, paradigm: str, good: str, bad: str, phenomenon: str = "", cluster: str = ""
) -> Item:
    """An item of an acceptable sentence and one that is less so."""
    texts = {"good": (good,), "bad": (bad,)}
    return Item(name, "pairs", paradigm, texts, phenomenon, (WHOLE,), cluster=cluster)


def first_of_each(items: Iterable[Item], limit: int) -> Iterator[Item]:
    """The first items of each paradigm."""
    seen: Counter[str] = Counter()
    for item in items:
        seen[item.paradigm] += 1
        if seen[item.paradigm] <= limit:
            yield item
