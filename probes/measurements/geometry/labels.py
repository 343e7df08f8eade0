"""What is clustered, and the labels that clusters are compared with."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from probes.common.arrays import Ints
from probes.data.sentence import Sentence
from probes.measurements.geometry.payload import Labels
from probes.measurements.geometry.sums import Rows

if TYPE_CHECKING:
    from probes.measurements.corpus_context import CorpusContext

Read = Callable[[Ints], Rows]
"""Gives some rows of a layer."""

PER_CLASS = 10
"""Items per class that are enough for clusters of the words or chunks of a corpus."""

RARE_LEMMA, RARE_SENSE = 20, 5
"""How often a lemma, and a sense of it, have to occur."""


@dataclass(frozen=True)
class Group:
    """Items that are clustered together.

    Attributes:
        rows: of the words that an item consists of, as rows of a layer. Shape (items, words).
        labels: of each item, as numbers. Shape (items,).
        sentence: of each item, as its number in the test split. Shape (items,).
    """

    rows: Ints
    labels: Ints
    sentence: Ints

    def vectors(self, read: Read) -> Rows:
        """The vectors of an item's words, one after the other. Shape (items, words · H)."""
        return np.concatenate([read(column) for column in self.rows.T], axis=1)

    @property
    def n_classes(self) -> int:
        """The number of different labels."""
        return int(self.labels.max(initial=-1)) + 1


@dataclass(frozen=True)
class LabelSet:
    """One kind of label.

    Attributes:
        groups: each clustered by itself; none if there is nothing to cluster.
        about: how many there are of what.
        missing: why nothing is clustered; empty if something is.
    """

    groups: tuple[Group, ...]
    about: Labels
    missing: str = ""


def label_sets(context: CorpusContext) -> dict[str, LabelSet]:
    """What is clustered, by kind of label, as far as the corpus is annotated."""
    found = {}
    for name, of_sentence in (("upos", _words), ("chunks", _chunks)):
        if name in context.corpus.layers:
            found[name] = _of_test(context, name, of_sentence)
    if "frames" in context.corpus.layers:
        found["senses"] = _senses(context)
    return found


Items = Iterator[tuple[str, tuple[int, ...]]]
"""Labels, and the words of the sentence that have them."""


def _words(sentence: Sentence) -> Items:
    for place, tag in enumerate(sentence.upos):
        yield tag, (place,)


def _chunks(sentence: Sentence) -> Items:
    """Types of chunks, with the first and the last word."""
    tags = (*sentence.chunks, "O")
    for start, tag in enumerate(tags):
        if tag.startswith("B-"):
            end = next(i for i in range(start + 1, len(tags)) if not tags[i].startswith("I-"))
            yield tag[2:], (start, end - 1)


def _of_test(context: CorpusContext, name: str, items: Callable[[Sentence], Items]) -> LabelSet:
    rows, sentences = context.rows("test"), context.corpus.splits["test"]
    first = np.cumsum([0, *map(len, sentences)])
    found = [
        (label, rows[first[number] + np.array(words)], number)
        for number, sentence in enumerate(sentences)
        for label, words in items(sentence)
    ]
    left_out = sum(len(sentence) for sentence in sentences if not sentence.layer(name))
    if not found:
        about = Labels(items=0, classes=0, left_out=left_out)
        return LabelSet((), about, "the test split has none")
    labels, places, numbers = zip(*found, strict=True)
    group = Group(np.stack(places), _numbered(labels), np.array(numbers))
    about = Labels(items=len(labels), classes=group.n_classes, left_out=left_out)
    if group.n_classes < 2:
        return LabelSet((), about, "all labels are the same")
    if len(labels) < PER_CLASS * group.n_classes:
        return LabelSet((), about, f"fewer than {PER_CLASS} items per class")
    return LabelSet((group,), about)


def _senses(context: CorpusContext) -> LabelSet:
    """Occurrences of predicates in all splits, lemma by lemma, by their sense.

    Nothing is trained, so that no split has to be kept apart, and few lemmas of a test split have
    several senses. The first word of a predicate stands for it.
    """
    by_lemma: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for split, sentences in context.corpus.splits.items():
        rows = context.rows(split)
        first = np.cumsum([0, *map(len, sentences)])
        for number, sentence in enumerate(sentences):
            for frame in sentence.frames:
                lemma = frame.roleset.rpartition(".")[0]
                by_lemma[lemma].append(
                    (frame.roleset, int(rows[first[number] + frame.predicate[0]]))
                )
    n_all = sum(map(len, by_lemma.values()))
    groups = []
    for occurrences in by_lemma.values():
        counts = Counter(sense for sense, _ in occurrences)
        kept = [x for x in occurrences if counts[x[0]] >= RARE_SENSE]
        senses, places = [sense for sense, _ in kept], [row for _, row in kept]
        if len(kept) >= RARE_LEMMA and len(set(senses)) > 1:
            group = Group(np.array(places)[:, None], _numbered(senses), np.zeros(len(kept), int))
            groups.append(group)
    n_kept = sum(len(group.labels) for group in groups)
    about = Labels(
        items=n_kept,
        classes=sum(group.n_classes for group in groups),
        left_out=n_all - n_kept,
        lemmas=len(groups),
    )
    why = f"no lemma occurs {RARE_LEMMA} times in senses that occur {RARE_SENSE} times"
    return LabelSet(tuple(groups), about, "" if groups else why)


def _numbered(labels: Sequence[str]) -> Ints:
    """Labels as numbers, by first occurrence."""
    number: dict[str, int] = {}
    return np.array([number.setdefault(label, len(number)) for label in labels])
