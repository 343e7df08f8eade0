"""Gold trees, control trees, and sentences without a tree."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from probes.common.arrays import Ints
from probes.data.sentence import ROOT, Sentence

Heads = Sequence[int]
"""The head of each word, counted from 0; `ROOT` for the root."""

NO_TREE = "without a tree (heads are missing, there is not one root, or there is a cycle)"
NO_TAGS = "without parts of speech"
ONE_WORD = "of one word"
LONG = "longer than the model's window"

N_CONTROL_TREES = 5
"""Number of draws of control trees; how well one draw is learnt says little about others."""

BINS = {"1": (1, 1), "2": (2, 2), "3–5": (3, 5), "6+": (6, 10**6)}
"""Groups of edges: name, and least and greatest distance of the two words."""


class WordTree(NamedTuple):
    """Paths in a tree.

    Attributes:
        distances: edges on the path between two words. Shape (n, n).
        depths: edges from each word to the root. Shape (n,).
    """

    distances: NDArray[np.int16]
    depths: NDArray[np.int16]


@dataclass(frozen=True)
class Trees:
    """The sentences of a split that have a tree to find.

    Attributes:
        sentences: numbers of the sentences in the split. Shape (s,).
        first: number of each sentence's first word in the split. Shape (s,).
        heads: heads of each sentence.
        punctuation: True for punctuation (UPOS ``PUNCT``), by sentence.
        controls: heads of the control trees of each draw, by sentence.
        left_out: number of excluded sentences, by reason.
    """

    sentences: Ints
    first: Ints
    heads: tuple[Heads, ...]
    punctuation: tuple[NDArray[np.bool_], ...]
    controls: tuple[tuple[Heads, ...], ...]
    left_out: dict[str, int]

    @cached_property
    def lengths(self) -> Ints:
        """Number of words of each sentence. Shape (s,)."""
        return np.array([len(heads) for heads in self.heads], dtype=np.int64)

    @cached_property
    def paths(self) -> tuple[WordTree, ...]:
        """Paths in the gold trees."""
        return tuple(map(paths, self.heads))

    @cached_property
    def control_paths(self) -> tuple[tuple[WordTree, ...], ...]:
        """Paths in the control trees of each draw."""
        return tuple(tuple(map(paths, heads)) for heads in self.controls)

    @cached_property
    def roots(self) -> Ints:
        """The root of each sentence. Shape (s,)."""
        return np.array([list(heads).index(ROOT) for heads in self.heads], dtype=np.int64)

    @cached_property
    def punctuation_roots(self) -> int:
        """Number of sentences whose root is punctuation."""
        return sum(bool(x[root]) for x, root in zip(self.punctuation, self.roots, strict=True))

    @cached_property
    def edges(self) -> Ints:
        """Number of edges of each sentence, without punctuation. Shape (s,)."""
        counts = []
        for heads, punctuation in zip(self.heads, self.punctuation, strict=True):
            governors = np.asarray(heads)
            counts.append(((governors != ROOT) & ~punctuation & ~punctuation[governors]).sum())
        return np.array(counts)

    def scored_words(self, sentences: Ints) -> NDArray[np.bool_]:
        """True for words that are not punctuation, in sentences of one length. Shape (m, n)."""
        return ~np.stack([self.punctuation[i] for i in sentences])


def trees_of(sentences: Sequence[Sentence], long: NDArray[np.bool_]) -> Trees:
    """Trees of a split; sentences without one are counted by reason.

    Args:
        long: True for sentences longer than the model's window. Shape (sentences,).
    """
    numbers, left_out = [], Counter[str]()
    for number, (sentence, too_long) in enumerate(zip(sentences, long, strict=True)):
        if len(sentence) == 1:
            left_out[ONE_WORD] += 1
        elif not is_tree(sentence.heads, len(sentence)):
            left_out[NO_TREE] += 1
        elif len(sentence.upos) != len(sentence):
            left_out[NO_TAGS] += 1
        elif too_long:
            left_out[LONG] += 1
        else:
            numbers.append(number)
    starts = np.cumsum([0, *map(len, sentences)])
    return Trees(
        np.array(numbers, dtype=np.int64),
        starts[numbers],
        tuple(sentences[i].heads for i in numbers),
        tuple(np.array([tag == "PUNCT" for tag in sentences[i].upos]) for i in numbers),
        tuple(
            tuple(control_heads(sentences[i].words, x) for i in numbers)
            for x in range(N_CONTROL_TREES)
        ),
        dict(left_out),
    )


def is_tree(heads: Heads, n_words: int) -> bool:
    """Whether every word but one, the root, has a head, and no word is its own ancestor."""
    if len(heads) != n_words or list(heads).count(ROOT) != 1:
        return False
    if not all(head == ROOT or 0 <= head < n_words for head in heads):
        return False
    # With one root and n − 1 heads, a path that does not lead to the root is a cycle.
    reached = np.array(heads)
    for _ in range(n_words.bit_length()):
        reached = np.where(reached == ROOT, ROOT, reached[reached])
    return bool((reached == ROOT).all())


def paths(heads: Heads) -> WordTree:
    """Distances and depths, computed from the ancestors that words share."""
    n = len(heads)
    above = np.zeros((n, n), dtype=np.float32)  # the word itself, and all of its ancestors
    for word in range(n):
        at = word
        while at != ROOT:
            above[word, at] = 1
            at = heads[at]
    shared = above @ above.T
    sizes = np.diag(shared)
    distances = sizes[:, None] + sizes - 2 * shared
    return WordTree(distances.astype(np.int16), (sizes - 1).astype(np.int16))


def control_heads(words: Sequence[str], draw: int) -> Heads:
    """A control tree that depends only on word forms (after Hewitt & Liang 2019).

    The first word is the root. In each draw, a lower-cased word form depends either on the first
    word wherever it occurs, or on the word before.
    """
    heads = [ROOT]
    for before, word in enumerate(words[1:]):
        form = f"{draw} {word.lower()}".encode("utf-8", "surrogatepass")
        heads.append(0 if hashlib.sha256(form).digest()[0] < 128 else before)
    return heads
