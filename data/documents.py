"""Windows of a document: neighbouring sentences as one text."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

from probes.data.sentence import ROOT, Sentence

JOINED = ("upos", "xpos", "feats", "heads", "deprels", "chunks", "lemmas", "mentions")
"""The annotation layers that windows have."""


def windows(sentences: Iterable[Sentence], size: int) -> Iterator[Sentence]:
    """For each sentence, in order, a window that ends with it.

    It has at most `size` sentences, all of one document. A sentence that names no document is by
    itself.
    """
    window: deque[Sentence] = deque(maxlen=size)
    for sentence in sentences:
        if window and not (window[-1].document == sentence.document != ""):
            window.clear()
        window.append(sentence)
        yield joined(window)


def joined(sentences: Sequence[Sentence]) -> Sentence:
    """Several sentences as one, with the id of the last; each keeps its root.

    A layer that one of them lacks is left out, except mentions, which a sentence may have none of.
    """
    last = sentences[-1]
    *starts, _ = accumulate(map(len, sentences), initial=0)
    parts = [_moved(*each) for each in zip(sentences, starts, strict=True)]
    layers: dict[str, Any] = {
        layer: tuple(entry for part in parts for entry in part.layer(layer))
        for layer in JOINED
        if layer == "mentions" or all(part.layer(layer) for part in parts)
    }
    return Sentence(
        last.id,
        last.language,
        tuple(word for part in parts for word in part.words),
        document=last.document,
        genre=last.genre,
        starts=tuple(starts),
        **layers,
    )


def _moved(sentence: Sentence, start: int) -> Sentence:
    """The sentence with its words counted from `start`."""
    return replace(
        sentence,
        heads=tuple(head if head == ROOT else head + start for head in sentence.heads),
        mentions=tuple(
            replace(mention, span=(mention.span[0] + start, mention.span[1] + start))
            for mention in sentence.mentions
        ),
    )
