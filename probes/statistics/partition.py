"""What is resampled: whole documents where a corpus names them, and sentences elsewhere."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from probes.common.arrays import Ints

Cluster = Literal["documents", "sentences"]

FEWEST = 20
"""With fewer clusters, resampling is too unreliable for intervals and tests."""


@dataclass(frozen=True)
class Partition:
    """The sentences of a split in clusters, which are drawn whole (cluster bootstrap).

    Sentences of one document share their topic and author, so that intervals over sentences are
    too short (Davison & Hinkley 1997, section 3.8).

    Attributes:
        clusters: what they are.
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
        """SHA-256 of what is in which cluster."""
        content = np.ascontiguousarray(self.of_sentence, dtype="<i8")
        return hashlib.sha256(content.data).hexdigest()


def by_sentence(n_sentences: int) -> Partition:
    """Every sentence by itself."""
    return Partition("sentences", np.arange(n_sentences))


def partition(documents: Sequence[str]) -> Partition:
    """By document, if every sentence has one and there are at least `FEWEST`.

    Args:
        documents: the document of each sentence of a split; empty where it has none.
    """
    number = {name: place for place, name in enumerate(dict.fromkeys(documents))}
    if "" in number or len(number) < FEWEST:
        return by_sentence(len(documents))
    return Partition("documents", np.array([number[name] for name in documents], dtype=np.int64))
