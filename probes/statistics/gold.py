"""Gold labels of a split, and the chunks that BIO tags mark."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probes.common.arrays import Ints
from probes.statistics.partition import Partition

Chunks = set[tuple[int, int, str]]
"""Start, end and type of each chunk."""


def chunk_spans(names: Sequence[str], tags: Ints, first: NDArray[np.bool_]) -> Chunks:
    """The chunks of a sequence of BIO tags, by the definition of conlleval.

    conlleval is the scorer of the CoNLL-2000 shared task (Tjong Kim Sang & Buchholz 2000). A chunk
    starts at B-x, and at I-x after O, after another type, or at the beginning of a sentence. A
    predicted chunk is right if its start, end and type are.

    Args:
        names: the tags by name.
        tags: indices into `names`. Shape (n,).
        first: True for tags that begin a sentence. Shape (n,).
    """
    types = ["", *sorted({name[2:] for name in names if name != "O"})]
    kinds = np.array([types.index("" if name == "O" else name[2:]) for name in names])[tags]
    begins = np.array([name.startswith("B-") for name in names])[tags]
    inside = kinds != 0
    changed = np.ones(len(tags), dtype=bool)
    changed[1:] = kinds[1:] != kinds[:-1]
    starts = inside & (begins | changed | first)
    stops = np.flatnonzero(np.append(starts | ~inside | first, True))
    positions = np.flatnonzero(starts)
    ends = stops[np.searchsorted(stops, positions, side="right")]
    chunk_types = np.array(types, dtype=object)[kinds[positions]]
    return set(zip(positions.tolist(), ends.tolist(), chunk_types.tolist(), strict=True))


Predictions = NDArray[Any]
"""Class indices or numbers (…, n); floats for two classes are margins, which decide for the second
class above 0. For multi-label tasks uint8 (…, n, bytes): class c is bit c in the order of
`numpy.packbits`."""


@dataclass(frozen=True)
class Gold:
    """The gold labels of a split, with the properties of examples that metrics use.

    Attributes:
        labels: class indices (-1 if train lacks the label), or numbers, or rows of `sets`.
            Shape (n,).
        sentence: number of each example's sentence, not decreasing. Shape (n,).
        classes: names of the classes.
        punctuation: examples that root accuracy ignores. Shape (n,).
        unseen: names of the labels that are -1, one per such example, in order; for
            multi-label, names of the last columns of `sets`, sorted.
        sets: for multi-label, the labels in each set, `classes` first. Shape (sets, labels).
        partition: clusters of the whole split. None: each sentence with an example is a cluster.
    """

    labels: NDArray[Any]
    sentence: Ints
    classes: tuple[str, ...]
    punctuation: NDArray[np.bool_]
    unseen: tuple[str, ...] = ()
    sets: NDArray[np.bool_] | None = None
    partition: Partition | None = None

    def part(self, keep: NDArray[np.bool_]) -> Gold:
        """The examples for which `keep` is true."""
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
        """Sentence s has the examples `bounds[s]` to `bounds[s + 1]`. Shape (sentences + 1,)."""
        changes = np.flatnonzero(np.diff(self.sentence)) + 1
        return np.concatenate([[0], changes, [len(self.sentence)]])

    @property
    def n_sentences(self) -> int:
        """Number of sentences that have an example."""
        return len(self.bounds) - 1

    @cached_property
    def clusters(self) -> Ints:
        """The cluster of each sentence that has an example. Shape (sentences,)."""
        if self.partition is None:
            return np.arange(self.n_sentences)
        return self.partition.of_sentence[self.sentence[self.bounds[:-1]]]

    @property
    def digest(self) -> str:
        """SHA-256 of labels, sentences and clusters."""
        digest = hashlib.sha256()
        for array in (self.labels, self.sentence, self.clusters):
            digest.update(f"{array.dtype} {array.shape}".encode())
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()

    @property
    def n_clusters(self) -> int:
        """Number of clusters of the whole split."""
        return self.n_sentences if self.partition is None else self.partition.n

    @cached_property
    def sentence_index(self) -> Ints:
        """Number of each example's sentence, from 0 without gaps. Shape (n,)."""
        return np.repeat(np.arange(self.n_sentences), np.diff(self.bounds))

    @cached_property
    def codes(self) -> Ints:
        """Labels, with unseen ones numbered after the classes. Shape (n,)."""
        codes = self.labels.astype(np.int64)
        names = sorted(set(self.unseen))
        codes[codes < 0] = [len(self.classes) + names.index(name) for name in self.unseen]
        return codes

    @cached_property
    def tags(self) -> tuple[str, ...]:
        """Names of `codes` if labels are BIO tags, followed by O."""
        return (*self.classes, *sorted(set(self.unseen)), "O")

    @cached_property
    def first(self) -> NDArray[np.bool_]:
        """True for examples that begin a sentence. Shape (n,)."""
        return np.asarray(np.diff(self.sentence, prepend=np.nan) != 0)

    @cached_property
    def chunks(self) -> Chunks:
        """The gold chunks where labels are BIO tags."""
        return chunk_spans(self.tags, self.codes, self.first)

    def chunks_in(self, predicted: Predictions) -> Chunks:
        """The chunks in predicted BIO tags (n,); a negative prediction counts as O."""
        outside = len(self.tags) - 1
        return chunk_spans(self.tags, np.where(predicted < 0, outside, predicted), self.first)

    def indicators(self, predicted: Predictions) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Gold and predicted labels as booleans, from predictions (n, bytes).

        Returns:
            two arrays of shape (n, labels), unseen labels last.
        """
        assert self.sets is not None
        is_predicted = np.zeros((len(predicted), self.sets.shape[1]), dtype=bool)
        n_classes = len(self.classes)
        is_predicted[:, :n_classes] = np.unpackbits(predicted, axis=-1, count=n_classes)
        return self.sets[self.labels], is_predicted

    def decided(self, predicted: Predictions) -> Predictions:
        """Class indices, from these or from margins of two classes."""
        is_margin = len(self.classes) == 2 and predicted.dtype.kind == "f"
        return np.asarray(predicted > 0, dtype=np.int64) if is_margin else predicted

    @property
    def class_sizes(self) -> tuple[int, int]:
        """Number of examples of the first class and of the second."""
        return int((self.labels == 0).sum()), int((self.labels == 1).sum())

    def right(self, predicted: Predictions) -> NDArray[np.bool_]:
        """True for right predictions; a label set must be right as a whole. Shape (n,)."""
        if self.sets is None:
            return np.asarray(self.decided(predicted) == self.labels)
        is_gold, is_predicted = self.indicators(predicted)
        return np.asarray((is_gold == is_predicted).all(1))

    @cached_property
    def counts(self) -> Ints:
        """Number of examples of each label, unseen labels last. Shape (labels,)."""
        if self.sets is not None:
            return np.asarray(self.sets[self.labels].sum(0))
        return np.bincount(self.codes, minlength=len(self.classes) + len(set(self.unseen)))

    @cached_property
    def by_length(self) -> list[tuple[Ints, Ints]]:
        """For each length, the sentences of that length (m,) and their examples (m, length)."""
        lengths = np.diff(self.bounds)
        groups = []
        for length in np.unique(lengths):
            (group,) = np.nonzero(lengths == length)
            groups.append((group, self.bounds[group][:, None] + np.arange(length)))
        return groups
