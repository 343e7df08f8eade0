"""Perturbed sentences: words are reordered, removed or replaced."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import sha256
from typing import NamedTuple

import numpy as np

from probes.data.sentence import ROOT, Corpus, Sentence, Span

Order = tuple[int, ...]
"""Indices of the remaining words, in the new order."""


class Changed(NamedTuple):
    """A changed sentence.

    Attributes:
        words: the new words.
        order: for each new word, the index of the original word that it is, or replaces.
    """

    words: tuple[str, ...]
    order: Order


Perturbation = Callable[[Sentence], Changed | None]
"""Function that changes a sentence; returns None if nothing changes."""

_ARGUMENTS = frozenset(("nsubj", "obj", "iobj", "nsubjpass", "dobj", "dative"))
"""Relations of subjects and objects, in UD and in spaCy's English pipelines."""


def shuffled(sentence: Sentence) -> Changed | None:
    """Shuffle the words; the order is seeded by the sentence's id."""
    seed = list(sha256(sentence.id.encode()).digest())
    return _changed(sentence, np.random.default_rng(seed).permutation(len(sentence)).tolist())


def cut(sentence: Sentence) -> Changed | None:
    """Keep the first half of the words, rounded up."""
    return _changed(sentence, range((len(sentence) + 1) // 2))


def without_arguments(sentence: Sentence) -> Changed | None:
    """Remove subjects and objects with all their dependents; roots always remain."""
    heads = sentence.heads
    pairs = enumerate(zip(heads, sentence.deprels, strict=False))
    gone = {i for i, (head, rel) in pairs if head != ROOT and rel.partition(":")[0] in _ARGUMENTS}

    def remains(word: int) -> bool:
        while word != ROOT and word not in gone:
            word = heads[word]
        return word == ROOT

    return _changed(sentence, filter(remains, range(len(sentence)))) if gone else None


class OtherNames:
    """Replaces each name by another of the same kind in train (Balasubramanian et al. 2020).

    A name is a stretch of proper nouns. Names of a kind agree in number of words, morphology of the
    last word and, if annotated, entity type. Within a document, a name always gets the same
    replacement. A name without another of the same kind remains.
    """

    def __init__(self, corpus: Corpus) -> None:
        found: dict[tuple[object, ...], set[tuple[str, ...]]] = defaultdict(set)
        for sentence in corpus.splits["train"]:
            for span in _names(sentence):
                found[_kind(span, sentence)].add(sentence.words[slice(*span)])
        self._names = {kind: sorted(names) for kind, names in found.items()}

    def __call__(self, sentence: Sentence) -> Changed | None:
        """The sentence with other names."""
        words = list(sentence.words)
        for span in _names(sentence):
            name = sentence.words[slice(*span)]
            others = [x for x in self._names.get(_kind(span, sentence), ()) if x != name]
            if others:
                drawn = sha256("\0".join((sentence.document or sentence.id, *name)).encode())
                words[slice(*span)] = others[int.from_bytes(drawn.digest()) % len(others)]
        changed = Changed(tuple(words), tuple(range(len(words))))
        return changed if changed.words != sentence.words else None


def _names(sentence: Sentence) -> Iterator[Span]:
    """The longest stretches of proper nouns."""
    start = None
    for place, tag in enumerate((*sentence.upos, "")):
        if tag == "PROPN":
            start = place if start is None else start
        elif start is not None:
            yield start, place
            start = None


def _kind(span: Span, sentence: Sentence) -> tuple[object, ...]:
    """Kind of a name: length, type of the shortest mention, morphology."""
    start, end = span
    around = [m for m in sentence.mentions if m.span[0] <= start and end <= m.span[1]]
    shortest = min(around, key=lambda m: m.span[1] - m.span[0], default=None)
    feats = tuple(sorted(sentence.feats[end - 1].items())) if sentence.feats else ()
    return end - start, shortest.type if shortest else "", feats


NAMES_REPLACED = "names replaced"

_OF_ORDER: Mapping[str, Perturbation] = {
    "shuffled": shuffled,
    "cut": cut,
    "arguments dropped": without_arguments,
}

PERTURBATIONS = (*_OF_ORDER, NAMES_REPLACED)
"""Names of the perturbations."""


def perturbations_of(corpus: Corpus) -> Mapping[str, Perturbation]:
    """The perturbations of a corpus's sentences, by name."""
    return {**_OF_ORDER, NAMES_REPLACED: OtherNames(corpus)}


def moved(span: Span, order: Order) -> Span | None:
    """New position of a span; None unless the words stay adjacent and in order."""
    start, end = span
    if start not in order:
        return None
    place = order.index(start)
    found = place, place + end - start
    return found if order[slice(*found)] == tuple(range(start, end)) else None


def _changed(sentence: Sentence, kept: Iterable[int]) -> Changed | None:
    order = tuple(kept)
    if order == tuple(range(len(sentence))):
        return None
    return Changed(tuple(sentence.words[i] for i in order), order)
