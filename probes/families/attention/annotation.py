"""Annotation of words: relations to their heads, and linguistic features."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from probes.common.arrays import Ints
from probes.data.sentence import ROOT, Sentence
from probes.families.attention.heads import EVERY, NOT_PUNCTUATION

Words = NDArray[np.bool_]
"""Some words of a split. Shape (words,)."""

FEWEST_WORDS = 20
"""Words a relation needs in dev and in test to be scored; it must also occur in train."""

FURTHEST = 10
"""The largest offset of the baseline, which puts every head the same number of words away."""


@dataclass(frozen=True)
class Annotation:
    """The words of a split, in corpus order.

    Attributes:
        sentence: number of each word's sentence in the split. Shape (words,).
        position: place of each word in its sentence. Shape (words,).
        head: place of each word's head in the sentence; -1 for roots and for words of excluded
            sentences. Shape (words,).
        relations: words that have a head, by relation. A subtype counts under its own name and
            under that of its relation.
        features: words by linguistic feature (Kovaleva et al. 2019, section 4.4).
        n_sentences: number of sentences in the split.
    """

    sentence: Ints
    position: Ints
    head: Ints
    relations: dict[str, Words]
    features: dict[str, Words]
    n_sentences: int

    @property
    def length(self) -> Ints:
        """Number of words in each word's sentence. Shape (words,)."""
        return np.bincount(self.sentence)[self.sentence]

    @property
    def first(self) -> Ints:
        """The place in the split of the first word of each word's sentence. Shape (words,)."""
        return np.arange(len(self.position)) - self.position

    @property
    def without_punctuation(self) -> Words:
        """Words with a head that are not punctuation."""
        return self.of(NOT_PUNCTUATION)

    def of(self, relation: str) -> Words:
        """Words with this relation; all False if there are none."""
        return self.relations.get(relation, np.zeros(len(self.head), dtype=bool))


def gold_of(sentences: Sequence[Sentence], left_out: NDArray[np.bool_]) -> Annotation:
    """The annotation of a split.

    Args:
        left_out: True for sentences to exclude. Shape (sentences,).
    """
    lengths = np.array([len(sentence) for sentence in sentences])
    number = np.repeat(np.arange(len(sentences)), lengths)
    position = np.concatenate([np.arange(n) for n in lengths])
    counts = ~left_out[number]
    head = np.full(len(number), ROOT)
    relations: dict[str, Words] = {}
    if any(sentence.heads for sentence in sentences):
        head = np.array([h for s in sentences for h in s.heads or [ROOT] * len(s)])
        head[~counts] = ROOT
        deprels = np.array([r for s in sentences for r in s.deprels or [""] * len(s)])
        linked = head != ROOT
        main = np.array([name.partition(":")[0] for name in deprels])
        is_punct = np.array([is_punctuation(name) for name in deprels])
        relations = {EVERY: linked, NOT_PUNCTUATION: linked & ~is_punct}
        for name in sorted({*main[linked], *deprels[linked]} - {""}):
            relations[str(name)] = linked & ((main == name) | (deprels == name))
    features = {
        name: np.array([has(s, i) for s in sentences for i in range(len(s))], dtype=bool) & counts
        for name, (layers, has) in FEATURES.items()
        if all(any(s.layer(layer) for s in sentences) for layer in layers)
    }
    return Annotation(number, position, head, relations, features, len(sentences))


def is_punctuation(deprel: str) -> bool:
    """Whether a word with this relation to its head is punctuation, by UD's `punct`."""
    return deprel.partition(":")[0] == "punct"


def frequent(gold: Mapping[str, Annotation]) -> tuple[list[str], dict[str, int]]:
    """Relations to score, most frequent first, and those that are too rare.

    Args:
        gold: by split.
    """
    counts = {name: int(words.sum()) for name, words in gold["test"].relations.items()}
    every = sorted(counts, key=lambda name: (-counts[name], name))
    scored = [
        name
        for name in every
        if min(counts[name], gold["dev"].of(name).sum()) >= FEWEST_WORDS
        and gold["train"].of(name).any()
    ]
    return scored, {name: counts[name] for name in every if name not in scored}


def best_offset(train: Annotation, words: Words) -> int:
    """The most frequent distance from these words to their heads; +1 is the next word."""
    distances = Counter((train.head - train.position)[words].tolist())
    near = [x for x in range(-FURTHEST, FURTHEST + 1) if x]
    return max(near, key=lambda offset: (distances[offset], -abs(offset), offset))


def _tag(*tags: str) -> Callable[[Sentence, int], bool]:
    return lambda sentence, i: bool(sentence.upos) and sentence.upos[i] in tags


def _relation(*names: str) -> Callable[[Sentence, int], bool]:
    def has(sentence: Sentence, i: int) -> bool:
        return bool(sentence.deprels) and sentence.deprels[i].partition(":")[0] in names

    return has


def _negates(sentence: Sentence, i: int) -> bool:
    feats: Mapping[str, str] = sentence.feats[i] if sentence.feats else {}
    return feats.get("Polarity") == "Neg" or feats.get("PronType") == "Neg"


FEATURES: dict[str, tuple[tuple[str, ...], Callable[[Sentence, int], bool]]] = {
    "punctuation": (("upos",), _tag("PUNCT")),
    "nouns": (("upos",), _tag("NOUN", "PROPN")),
    "verbs": (("upos",), _tag("VERB")),
    "pronouns": (("upos",), _tag("PRON")),
    "subjects": (("deprels",), _relation("nsubj", "csubj")),
    "objects": (("deprels",), _relation("obj")),
    "negation": (("feats",), _negates),
}
"""Features and the annotation they need. `punctuation` is from Clark et al. (2019)."""
