"""Clusters for resampling: documents if a corpus names them, sentences otherwise."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from probes.common.arrays import Ints

Cluster = Literal["documents", "sentences"]

FEWEST = 20
"""With fewer clusters, resampling is too unreliable for intervals and tests."""


@dataclass(frozen=True)
class Partition:
    """Clusters of the sentences of a split, which are drawn whole (cluster bootstrap).

    Sentences of a document share topic and author. Intervals that ignore this are too short
    (Davison & Hinkley 1997, section 3.8).

    Attributes:
        clusters: "documents" or "sentences".
        of_sentence: the cluster of each sentence, numbered from 0 without gaps. Shape (sentences,).
    """

    clusters: Cluster
    of_sentence: Ints

    @property
    def n(self) -> int:
        """The number of clusters."""
        return int(self.of_sentence.max(initial=-1)) + 1

    @property
    def digest(self) -> str:
        """SHA-256 of the clusters."""
        content = np.ascontiguousarray(self.of_sentence, dtype="<i8")
        return hashlib.sha256(content.data).hexdigest()


def by_sentence(n_sentences: int) -> Partition:
    """A partition in which every sentence is a cluster."""
    return Partition("sentences", np.arange(n_sentences))


def has_few(documents: Iterable[str]) -> bool:
    """Whether sentences of a test split name documents, but too few to be resampled."""
    return 0 < len({*documents} - {""}) < FEWEST


def partition(documents: Sequence[str], split: str = "test") -> Partition:
    """Partition by document if every sentence has one and there are at least `FEWEST`.

    A test split with fewer is partitioned by document too, which leaves too few clusters for
    intervals and tests: over sentences, equal layers would be separated far too often. Sentences
    without a document count with the first. Other splits are then partitioned by sentence, since
    samples of few training documents would lack most of the text.

    Args:
        documents: the document of each sentence of a split; empty if it has none.
    """
    numbers = {name: i for i, name in enumerate(dict.fromkeys(filter(None, documents)))}
    enough = len(numbers) >= FEWEST and all(documents)
    if not (enough or (split == "test" and has_few(documents))):
        return by_sentence(len(documents))
    of_sentence = [numbers.get(name, 0) for name in documents]
    return Partition("documents", np.array(of_sentence, dtype=np.int64))
