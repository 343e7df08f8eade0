"""The words of test, and the labelled items that are clustered."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from probes.common.arrays import Ints
from probes.common.errors import counted
from probes.data.chunk_schemes import chunks_of
from probes.data.sentence import Sentence
from probes.statistics.partition import Partition
from probes.statistics.sums import VectorRows

if TYPE_CHECKING:
    from probes.extraction.reading.vectors import Sharded
    from probes.measurements.context import ModelContext


@dataclass(frozen=True)
class Words:
    """Words without their vectors.

    Attributes:
        sentence: sentence of each word. Shape (n,).
        type: word form of each word, numbered by first occurrence; case matters. Shape (n,).
        partition: documents, or sentences if the corpus has no documents.
        least: number of sentences a frequent type must occur in.
    """

    sentence: Ints
    type: Ints
    partition: Partition
    least: int

    def __len__(self) -> int:
        return len(self.sentence)

    @property
    def document(self) -> Ints:
        """Cluster of each word. Shape (n,)."""
        return self.partition.of_sentence[self.sentence]

    @property
    def n_sentences(self) -> int:
        """Number of sentences."""
        return len(self.partition.of_sentence)

    @cached_property
    def frequent(self) -> list[Ints]:
        """The occurrences of each word type that is in at least `least` sentences."""
        order = np.argsort(self.type, kind="stable")
        starts = np.flatnonzero(np.diff(self.type[order], prepend=-1))
        occurrences = np.split(order, starts[1:])
        return [x for x in occurrences if len(np.unique(self.sentence[x])) >= self.least]


def words_of_test(context: ModelContext, least: int) -> Words:
    """The words of the test split, in the order of their vectors."""
    sentences = context.corpus.splits["test"]
    number: dict[str, int] = {}
    types = [number.setdefault(word, len(number)) for s in sentences for word in s.words]
    return Words(
        sentence=context.sentence_numbers("test"),
        type=np.array(types, dtype=np.int64),
        partition=context.partition("test"),
        least=least,
    )


PER_CLASS = 10
"""Minimum number of items per class for clusters of words or chunks."""

RARE_LEMMA, RARE_SENSE = 20, 5
"""Minimum number of occurrences of a lemma and of each sense."""

MOST = 5_000
"""Maximum number of items to cluster together; larger groups are sampled at random."""


@dataclass(frozen=True)
class LabelledGroup:
    """Items that are clustered together.

    Attributes:
        rows: rows of each item's words in a layer. Shape (items, words).
        labels: label of each item, numbered from 0 without gaps. Shape (items,).
        sentence: number of each item's sentence in the split. Shape (items,).
    """

    rows: Ints
    labels: Ints
    sentence: Ints

    @property
    def n_classes(self) -> int:
        """Number of different labels."""
        return int(self.labels.max(initial=-1)) + 1

    def vectors(self, layer: Sharded) -> VectorRows:
        """Concatenated vectors of each item's words, float32. Shape (items, words · H)."""
        parts = [layer[column].astype(np.float32) for column in self.rows.T]
        return np.concatenate(parts, axis=1)


@dataclass(frozen=True)
class LabelSet:
    """One kind of label.

    Attributes:
        groups: groups to cluster separately; empty if there is nothing to cluster.
        available: number of items before sampling.
        left_out: number of words without this annotation, or of predicates of rare lemmas and
            senses.
        by_lemma: True if each group is a lemma, and labels are senses.
        missing: reason why nothing is clustered; empty otherwise.
    """

    groups: tuple[LabelledGroup, ...]
    available: int
    left_out: int
    by_lemma: bool = False
    missing: str = ""

    @property
    def counts(self) -> dict[str, int]:
        """Numbers of items, classes and so on, by name."""
        return {
            "items": sum(len(group.labels) for group in self.groups),
            "available": self.available,
            "classes": sum(group.n_classes for group in self.groups),
            "left_out": self.left_out,
            **({"lemmas": len(self.groups)} if self.by_lemma else {}),
        }

    @property
    def note(self) -> str:
        """The counts as text (``2,871 items, 15 classes``), or the reason for having none."""
        if self.missing:
            return f"none: {self.missing}"
        counts = self.counts
        total = f" of {self.available:,}" if self.available > counts["items"] else ""
        lemmas = f" of {counted(len(self.groups), 'lemma')}" if self.by_lemma else ""
        left_out = f"; left out: {self.left_out:,}" if self.left_out else ""
        return f"{counts['items']:,}{total} items, {counts['classes']:,} classes{lemmas}{left_out}"


def label_sets(context: ModelContext) -> dict[str, LabelSet]:
    """Items to cluster, by kind of label that the corpus has."""
    sets = {}
    for name, find in (("upos", _tags), ("chunks", _chunk_ends)):
        if name in context.corpus.layers:
            sets[name] = _test_items(context, name, find)
    if "frames" in context.corpus.layers:
        sets["senses"] = _senses(context)
    return sets


class ClusteredItem(NamedTuple):
    """An item to cluster: label, rows of the words, and number of the sentence."""

    label: str
    rows: tuple[int, ...]
    sentence: int


Find = Callable[[Sentence], Iterator[tuple[str, tuple[int, ...]]]]
"""A function that yields the labels of a sentence with their words."""


def _tags(sentence: Sentence) -> Iterator[tuple[str, tuple[int, ...]]]:
    for position, tag in enumerate(sentence.upos):
        yield tag, (position,)


def _chunk_ends(sentence: Sentence) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The first and the last word of each chunk."""
    for label, start, end in chunks_of(sentence.chunks):
        yield label, (start, end - 1)


def _predicates(sentence: Sentence) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The first word of each predicate."""
    for frame in sentence.frames:
        yield frame.roleset, (frame.predicate[0],)


def _clustered_items(context: ModelContext, split: str, find: Find) -> Iterator[ClusteredItem]:
    rows, first = context.rows(split), 0
    for number, sentence in enumerate(context.corpus.splits[split]):
        for label, words in find(sentence):
            yield ClusteredItem(label, tuple(int(rows[first + word]) for word in words), number)
        first += len(sentence)


def _test_items(context: ModelContext, layer: str, find: Find) -> LabelSet:
    """All items of the test split as one group."""
    items = list(_clustered_items(context, "test", find))
    group = _group(items, context.options.seed)
    left_out = sum(len(s) for s in context.corpus.splits["test"] if not s.layer(layer))
    missing = ""
    if group.n_classes < 2:
        missing = "test has fewer than two classes"
    elif len(group.labels) < PER_CLASS * group.n_classes:
        missing = f"fewer than {PER_CLASS} items per class in test"
    return LabelSet(() if missing else (group,), len(items), left_out, missing=missing)


def _senses(context: ModelContext) -> LabelSet:
    """Occurrences of predicates in all splits, lemma by lemma.

    All splits are used: nothing is trained, and few lemmas of a test split have several senses.
    """
    by_lemma: dict[str, list[ClusteredItem]] = defaultdict(list)
    for split in context.corpus.splits:
        for item in _clustered_items(context, split, _predicates):
            by_lemma[item.label.rpartition(".")[0]].append(item)
    lemmas = []
    for occurrences in by_lemma.values():
        counts = Counter(item.label for item in occurrences)
        frequent = [item for item in occurrences if counts[item.label] >= RARE_SENSE]
        if len(frequent) >= RARE_LEMMA and len({item.label for item in frequent}) > 1:
            lemmas.append(frequent)
    groups = tuple(_group(items, context.options.seed) for items in lemmas)
    available = sum(map(len, lemmas))
    reason = f"no lemma occurs {RARE_LEMMA} times in senses that occur {RARE_SENSE} times"
    return LabelSet(
        groups,
        available,
        left_out=sum(map(len, by_lemma.values())) - available,
        by_lemma=True,
        missing="" if groups else reason,
    )


def _group(items: Sequence[ClusteredItem], seed: int) -> LabelledGroup:
    """Up to `MOST` items in random order, the same for every layer and model."""
    number: dict[str, int] = {}
    order = np.random.default_rng(seed).permutation(len(items))[:MOST]
    some = [items[i] for i in order]
    return LabelledGroup(
        np.array([item.rows for item in some], dtype=np.int64),
        np.array([number.setdefault(x.label, len(number)) for x in some], dtype=np.int64),
        np.array([item.sentence for item in some], dtype=np.int64),
    )
