"""Words of a split by their relation to the head, and by linguistic feature."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probes.common.arrays import Ints
from probes.data.sentence import ROOT, Sentence, Span
from probes.families.attention.heads import EVERY, NOT_PUNCTUATION
from probes.statistics.of_families.ratios import RatioParts
from probes.statistics.sums import group_sums

Words = NDArray[np.bool_]
"""A choice of the words of a split. Shape (words,)."""

Link = tuple[Span, Span]
"""Words of a sentence that attend, and words that they may attend to."""

FEWEST_WORDS = 20
"""Words a relation needs in dev and in test to be scored; it must also occur in train."""

FURTHEST = 10
"""The largest offset of the baseline, which puts every head the same number of words away."""


@dataclass(frozen=True)
class Annotation:
    """Words of a split with their heads and relations, in corpus order.

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

    def of(self, relation: str) -> Words:
        """Words with this relation; all False if there are none."""
        return self.relations.get(relation, np.zeros(len(self.head), dtype=bool))

    def at(self, offset: int) -> Words:
        """Words whose head is this many words further on."""
        words: Words = self.head == self.position + offset
        return words

    def lengths(self, words: Words) -> Ints:
        """Number of words in the sentences of some words."""
        return np.bincount(self.sentence)[self.sentence[words]]

    def counted(self, words: Words, hits: NDArray[np.bool_]) -> RatioParts:
        """Hits among some words, by sentence.

        Args:
            hits: for all words of the split, in any number of cells. Shape (words, …).
        """
        sentence, n = self.sentence[words], self.n_sentences
        of_cells = hits[words].reshape(len(sentence), -1).astype(np.float32)
        return RatioParts(
            group_sums(of_cells, sentence, n), np.bincount(sentence, minlength=n).astype(np.float64)
        )


def annotation_of(sentences: Sequence[Sentence], excluded: NDArray[np.bool_]) -> Annotation:
    """Annotation of the words of a split.

    Args:
        excluded: True for sentences whose words count nowhere. Shape (sentences,).
    """
    sizes = [len(sentence) for sentence in sentences]
    sentence = np.repeat(np.arange(len(sentences)), sizes)
    position = np.concatenate([np.arange(n) for n in sizes])
    counts = ~excluded[sentence]
    head = np.array([x for s in sentences for x in s.heads or [ROOT] * len(s)])
    head[~counts] = ROOT
    linked = head != ROOT
    deprels = np.array([x for s in sentences for x in s.deprels or [""] * len(s)])
    main = np.array([name.partition(":")[0] for name in deprels])
    relations = {EVERY: linked, NOT_PUNCTUATION: linked & (main != "punct")}
    for name in sorted({*main[linked], *deprels[linked]} - {""}):
        relations[str(name)] = linked & ((main == name) | (deprels == name))
    features = {}
    for name, (layer, has) in FEATURES.items():
        if any(s.layer(layer) for s in sentences):
            values = [x for s in sentences for x in s.layer(layer) or [None] * len(s)]
            features[name] = np.array([x is not None and has(x) for x in values]) & counts
    relations = {name: words for name, words in relations.items() if words.any()}
    return Annotation(sentence, position, head, relations, features, len(sentences))


def frequent_relations(gold: Mapping[str, Annotation]) -> tuple[list[str], dict[str, int]]:
    """Relations to score, most frequent first, and test words of those that are too rare."""
    counts = {name: int(words.sum()) for name, words in gold["test"].relations.items()}
    names = sorted(counts, key=lambda name: (-counts[name], name))
    scored = [
        name
        for name in names
        if min(counts[name], gold["dev"].of(name).sum()) >= FEWEST_WORDS
        and gold["train"].of(name).any()
    ]
    return scored, {name: counts[name] for name in names if name not in scored}


def best_offset(train: Annotation, words: Words) -> int:
    """The most frequent distance from these words to their heads; +1 is the next word."""
    distances = Counter((train.head - train.position)[words].tolist())
    offsets = filter(None, range(-FURTHEST, FURTHEST + 1))
    # Ties go to the nearest word, then to the right; without this, to the farthest on the left.
    return max(offsets, key=lambda offset: (distances[offset], -abs(offset), offset))


FEATURES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "punctuation": ("upos", lambda tag: tag == "PUNCT"),
    "nouns": ("upos", lambda tag: tag in ("NOUN", "PROPN")),
    "verbs": ("upos", lambda tag: tag == "VERB"),
    "pronouns": ("upos", lambda tag: tag == "PRON"),
    "subjects": ("deprels", lambda name: name.partition(":")[0] in ("nsubj", "csubj")),
    "objects": ("deprels", lambda name: name.partition(":")[0] == "obj"),
    "negation": ("feats", lambda feats: "Neg" in (feats.get("Polarity"), feats.get("PronType"))),
}
"""Features, each with the annotation it needs. `punctuation` is from Clark et al. (2019)."""
