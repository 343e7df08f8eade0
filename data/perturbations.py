"""Malformed sentences: which words of a sentence remain, in which order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256

import numpy as np

from probes.data.sentence import ROOT, Sentence, Span

Order = tuple[int, ...]
"""The words that remain, each as its index in the sentence, in their new order."""

Perturbation = Callable[[Sentence], Order | None]
"""Makes a sentence malformed; None if nothing changes."""

_ARGUMENTS = frozenset(("nsubj", "obj", "iobj", "nsubjpass", "dobj", "dative"))
"""Relations of subjects and objects: UD's, and others of spaCy's English pipelines."""


def shuffled(sentence: Sentence) -> Order | None:
    """The words in random order, always the same for a sentence of this id."""
    seed = list(sha256(sentence.id.encode()).digest())
    return _changed(sentence, np.random.default_rng(seed).permutation(len(sentence)).tolist())


def cut(sentence: Sentence) -> Order | None:
    """The first half of the words, of an odd number one more."""
    return _changed(sentence, range((len(sentence) + 1) // 2))


def without_arguments(sentence: Sentence) -> Order | None:
    """The words that are in no subject or object: those, with all that depends on them, are gone.

    Roots always remain.
    """
    heads = sentence.heads
    pairs = enumerate(zip(heads, sentence.deprels, strict=False))
    gone = {i for i, (head, rel) in pairs if head != ROOT and rel.partition(":")[0] in _ARGUMENTS}

    def remains(word: int) -> bool:
        while word != ROOT and word not in gone:
            word = heads[word]
        return word == ROOT

    return _changed(sentence, filter(remains, range(len(sentence)))) if gone else None


PERTURBATIONS: Mapping[str, Perturbation] = {
    "shuffled": shuffled,
    "cut": cut,
    "arguments dropped": without_arguments,
}
"""By name."""


def moved(span: Span, order: Order) -> Span | None:
    """Where a span lies; None unless its words remain side by side and in their order."""
    start, end = span
    if start not in order:
        return None
    place = order.index(start)
    found = place, place + end - start
    return found if order[slice(*found)] == tuple(range(start, end)) else None


def _changed(sentence: Sentence, words: Iterable[int]) -> Order | None:
    order = tuple(words)
    return None if order == tuple(range(len(sentence))) else order
