"""Items: texts to compare, or words to fill in, for a language model instead of a probe."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

Kind = Literal["pairs", "contexts"]
"""Texts of which one should be more probable; or contexts with a word to fill in."""

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
        good, rivals: of contexts, the condition whose word should be more probable than that of
            each rival.
        cluster: items with the same cluster are resampled together; the item itself if empty.
    """

    # Fields keep their names and order: the `repr` is part of `Corpus.fingerprint`.
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


def sample_of_each(items: Iterable[Item], limit: int) -> list[Item]:
    """A sample of each paradigm, in the order of the items; the same each time.

    The first items would not do: in CLAMS, they have the same subject. Items are drawn by the
    digests of their ids, so that a smaller sample is part of a larger one. Contexts are drawn by
    cluster, since conditions of the same context are compared.
    """

    def digest(item: Item) -> bytes:
        name = item.cluster or item.id if item.kind == "contexts" else item.id
        return hashlib.sha256(name.encode()).digest()

    paradigms: dict[str, list[Item]] = defaultdict(list)
    for item in items:
        paradigms[item.paradigm].append(item)
    ids = {item.id for group in paradigms.values() for item in sorted(group, key=digest)[:limit]}
    return [item for item in items if item.id in ids]
