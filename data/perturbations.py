"""Changed sentences: which words remain, in which order, and which are others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import sha256
from typing import NamedTuple

import numpy as np

from probes.data.sentence import ROOT, Corpus, Sentence, Span

Order = tuple[int, ...]
"""The words that remain, each as its index in the sentence, in their new order."""


class Changed(NamedTuple):
    """A changed sentence.

    Attributes:
        words: its words.
        order: which word of the intact sentence each is, or stands for.
    """

    words: tuple[str, ...]
    order: Order


Perturbation = Callable[[Sentence], Changed | None]
"""Changes a sentence; None if it remains as it is."""

_ARGUMENTS = frozenset(("nsubj", "obj", "iobj", "nsubjpass", "dobj", "dative"))
"""Relations of subjects and objects: UD's, and others of spaCy's English pipelines."""


def shuffled(sentence: Sentence) -> Changed | None:
    """The words in random order, always the same for a sentence of this id."""
    seed = list(sha256(sentence.id.encode()).digest())
    return _changed(sentence, np.random.default_rng(seed).permutation(len(sentence)).tolist())


def cut(sentence: Sentence) -> Changed | None:
    """The first half of the words, of an odd number one more."""
    return _changed(sentence, range((len(sentence) + 1) // 2))


def without_arguments(sentence: Sentence) -> Changed | None:
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


class OtherNames:
    """Replaces each name by another of its kind in train (Balasubramanian et al. 2020).

    A name is a stretch of proper nouns. Of one kind are names of as many words in mentions of the
    same type, where entities are annotated, and with the same morphology of their last words. In a
    document a name is always replaced by the same one; a name that is alone of its kind remains.
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
    """What another name must have in common: length, type of the shortest mention, morphology."""
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
"""Their names."""


def perturbations_of(corpus: Corpus) -> Mapping[str, Perturbation]:
    """The perturbations of a corpus's sentences, by name."""
    return {**_OF_ORDER, NAMES_REPLACED: OtherNames(corpus)}


def moved(span: Span, order: Order) -> Span | None:
    """Where a span lies; None unless its words remain side by side and in their order."""
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
