"""The words of the test split: their sentences, documents, types and places."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from probes.common.arrays import Ints
from probes.statistics.partition import Partition

if TYPE_CHECKING:
    from probes.measurements.context import Context


@dataclass(frozen=True)
class Words:
    """What is known of words besides their vectors.

    Attributes:
        sentence: the sentence of each word. Shape (n,).
        position: its place in the sentence, from 0. Shape (n,).
        type: its word form, numbered by first occurrence; case matters. Shape (n,).
        partition: documents, or sentences where the corpus names none.
        least: how often, and in how many sentences, a frequent type occurs.
    """

    sentence: Ints
    position: Ints
    type: Ints
    partition: Partition
    least: int

    def __len__(self) -> int:
        return len(self.sentence)

    @property
    def document(self) -> Ints:
        """The cluster of each word. Shape (n,)."""
        return self.partition.of_sentence[self.sentence]

    @property
    def n_sentences(self) -> int:
        """The number of sentences."""
        return len(self.partition.of_sentence)

    @cached_property
    def frequent(self) -> list[Ints]:
        """The occurrences of each word type that is in at least `least` sentences."""
        order = np.argsort(self.type, kind="stable")
        starts = np.flatnonzero(np.diff(self.type[order], prepend=-1))
        occurrences = np.split(order, starts[1:])
        return [x for x in occurrences if len(np.unique(self.sentence[x])) >= self.least]


def test_words(context: Context, least: int) -> Words:
    """The words of the test split, in the order of their vectors."""
    sentences = context.corpus.splits["test"]
    number: dict[str, int] = {}
    types = [number.setdefault(word, len(number)) for s in sentences for word in s.words]
    positions = [place for s in sentences for place in range(len(s))]
    return Words(
        sentence=context.sentence_numbers("test"),
        position=np.array(positions, dtype=np.int64),
        type=np.array(types, dtype=np.int64),
        partition=context.partition("test"),
        least=least,
    )
