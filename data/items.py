"""Items: texts to compare, or words to fill in, for a language model instead of a probe."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

Kind = Literal["pairs", "contexts"]
"""Texts of which one should be likelier; or contexts with a word to fill in."""

KINDS: dict[Kind, str] = {
    "pairs": "minimal pairs, or texts under several conditions",
    "contexts": "contexts with a word to be filled in",
}
"""Descriptions of both kinds."""

WHOLE = "(*;%good%) < (*;%bad%)"
"""The prediction of a minimal pair: the whole good sentence surprises less than the bad one."""


@dataclass(frozen=True, slots=True)
class Item:
    """Versions of a text, and a prediction about a language model's surprisals.

    Attributes:
        id: unique within the corpus.
        kind: see `Kind`.
        paradigm: one way to test one phenomenon, such as BLiMP's UID.
        phenomenon: the phenomenon that the paradigm tests; may be empty.
        texts: by condition, the regions of the text as it is written, spaces included.
        predictions: of pairs, formulas over the surprisals of regions, as SyntaxGym writes them
            (Gauthier et al. 2020): ``(3;%gap%)`` is region 3 of the condition ``gap``, and ``*``
            stands for all regions.
        target: of contexts, index of the region to fill in.
        answers: of contexts, conditions whose words are correct.
        good, rivals: of contexts, the condition whose word should be likelier than each rival's.
        cluster: items with the same cluster are resampled together; the item itself if empty.
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
