"""What predictions are scored against."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probes.common.arrays import Ints
from probes.statistics.conlleval import Spans, chunk_spans

Predictions = NDArray[Any]
"""Class indices or numbers (…, n); for multi-label uint8 (…, n, bytes), class c being bit c as
`numpy.packbits` counts."""


@dataclass(frozen=True)
class Gold:
    """What predictions are scored against.

    Attributes:
        labels: class indices, or numbers, or rows of `sets`. Shape (n,).
        sentence: number of each example's sentence, not decreasing. Shape (n,).
        classes: names of the classes.
        punctuation: examples that root accuracy passes over. Shape (n,).
        unseen: names of the labels that stand as -1, one per such example, in order; for
            multi-label, of the last columns of `sets`, sorted.
        sets: for multi-label which labels each set holds, `classes` first. Shape (sets, labels).
    """

    labels: NDArray[Any]
    sentence: Ints
    classes: tuple[str, ...]
    punctuation: NDArray[np.bool_]
    unseen: tuple[str, ...] = ()
    sets: NDArray[np.bool_] | None = None

    def part(self, keep: NDArray[np.bool_]) -> Gold:
        """The examples where `keep` holds."""
        unseen = self.unseen
        if unseen and self.sets is None:
            unseen = tuple(np.array(unseen, dtype=object)[keep[self.labels < 0]])
        return replace(
            self,
            labels=self.labels[keep],
            sentence=self.sentence[keep],
            punctuation=self.punctuation[keep],
            unseen=unseen,
        )

    @cached_property
    def bounds(self) -> Ints:
        """Sentence s is examples `bounds[s]` to `bounds[s + 1]`."""
        changes = np.flatnonzero(np.diff(self.sentence)) + 1
        return np.concatenate([[0], changes, [len(self.sentence)]])

    @property
    def n_sentences(self) -> int:
        """Sentences that have an example."""
        return len(self.bounds) - 1

    @cached_property
    def place(self) -> Ints:
        """Each example's sentence, counted from 0 without gaps. Shape (n,)."""
        return np.repeat(np.arange(self.n_sentences), np.diff(self.bounds))

    @cached_property
    def codes(self) -> Ints:
        """Labels with the unseen ones numbered after the classes. Shape (n,)."""
        codes = self.labels.astype(np.int64)
        names = sorted(set(self.unseen))
        codes[codes < 0] = [len(self.classes) + names.index(name) for name in self.unseen]
        return codes

    @cached_property
    def tags(self) -> tuple[str, ...]:
        """What `codes` count where labels are BIO tags; the last is that of no chunk."""
        return (*self.classes, *sorted(set(self.unseen)), "O")

    @cached_property
    def first(self) -> NDArray[np.bool_]:
        """Which examples begin a sentence. Shape (n,)."""
        return np.asarray(np.diff(self.sentence, prepend=np.nan) != 0)

    @cached_property
    def chunks(self) -> Spans:
        """The chunks that labels make where they are BIO tags."""
        return chunk_spans(self.tags, self.codes, self.first)

    def indicators(self, given: Predictions) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Gold sets, and predicted ones (n, bytes), unseen labels last. Each (n, labels)."""
        assert self.sets is not None
        found = np.zeros((len(given), self.sets.shape[1]), dtype=bool)
        n_classes = len(self.classes)
        found[:, :n_classes] = np.unpackbits(given, axis=-1, count=n_classes)
        return self.sets[self.labels], found

    def right(self, given: Predictions) -> NDArray[np.bool_]:
        """Which examples predictions get right, of a set every label. Shape (n,)."""
        if self.sets is None:
            return np.asarray(given == self.labels)
        wanted, found = self.indicators(given)
        return np.asarray((wanted == found).all(1))

    @cached_property
    def counts(self) -> Ints:
        """How often each label occurs, the unseen ones last. Shape (labels,)."""
        if self.sets is not None:
            return np.asarray(self.sets[self.labels].sum(0))
        return np.bincount(self.codes, minlength=len(self.classes) + len(set(self.unseen)))

    @cached_property
    def by_length(self) -> list[tuple[Ints, Ints]]:
        """For each length: its sentences (m,), and the examples of each (m, length)."""
        lengths = np.diff(self.bounds)
        groups = []
        for length in np.unique(lengths):
            (which,) = np.nonzero(lengths == length)
            groups.append((which, self.bounds[which][:, None] + np.arange(length)))
        return groups
