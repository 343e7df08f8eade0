"""Sentences with their annotation, and corpora."""

from __future__ import annotations

import hashlib
import sys
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from typing import Any, NoReturn

from probes.data.items import Item

Span = tuple[int, int]
"""Words `[start, end)` of a sentence, counted from 0."""

Label = str | float | tuple[str, ...] | None
"""A label in a column of the user's own data, or several; None if it is missing."""

LARGEST_LABEL = 1e18
"""Largest numeric label. The square of a label 20 times as large would overflow in float32."""

ROOT = -1
"""Head of the root of a tree."""

SPLITS = ("train", "dev", "test")

LAYERS = (
    *("upos", "xpos", "feats", "heads", "deprels", "chunks", "frames", "lemmas"),
    *("mentions", "ratings", "constituents"),
)
"""The annotation layers that a sentence may have."""


def interned(strings: Iterable[str]) -> tuple[str, ...]:
    """Intern strings to save memory, since most words of a corpus are repeated."""
    return tuple(map(sys.intern, strings))


_BLANK = "".join(filter(str.isspace, map(chr, range(0x3001)))) + "\u200b\u2060\ufeff"
"""White space, and zero-width characters that neither join nor shape letters."""


def bare(word: str) -> str:
    """Strip spaces from the edges of a word, since a tokenizer could turn them into pieces."""
    return word.strip(_BLANK)


class FrozenDict(dict[str, Any]):
    """An immutable dict; equal features of words can thus be the same object."""

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("sentences are immutable, since other tasks read them too; change a copy")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenDict, (dict(self),)


@dataclass(frozen=True, slots=True)
class Mention:
    """A mention of an entity, in CorefUD's annotation.

    Attributes:
        entity: id of the entity; mentions of one entity in a document corefer. Empty if only types
            are annotated.
        type: type of the entity, e.g. ``person``; empty if it is not annotated.
        span: the mention's words; empty for a mention without words, such as a dropped pronoun.
        part: ``1/2`` for the first of two parts of a discontinuous mention; empty for a whole one.
        attributes: all annotated attributes, by name.
    """

    entity: str
    type: str
    span: Span
    part: str = ""
    attributes: Mapping[str, str] = field(default_factory=dict)

    @property
    def unfit(self) -> str:
        """Reason why the span is not a whole mention; empty if it is."""
        if self.part:
            return "part of a discontinuous mention"
        return "mention without words" if self.span[0] == self.span[1] else ""


@dataclass(frozen=True, slots=True)
class Frame:
    """A predicate and its arguments in PropBank's annotation.

    Attributes:
        roleset: PropBank roleset, e.g. ``break.01``.
        predicate: span of the predicate.
        arguments: (label, span) pairs, e.g. ``("ARG1", (0, 2))``, in order of start.
    """

    # Fields keep their names and order: the `repr` is part of `Corpus.fingerprint`.
    roleset: str
    predicate: Span
    arguments: tuple[tuple[str, Span], ...]


@dataclass(frozen=True, slots=True)
class Rating:
    """Annotators' ratings of a word, or of a predicate and an argument (White et al. 2020).

    Attributes:
        subspace: the set of rated properties, such as ``factuality``.
        words: index of the word; for a pair, of the predicate and of the argument's head.
        values: rating of each property; above 0 if the property holds.
    """

    subspace: str
    words: tuple[int, ...]
    values: Mapping[str, float]

    @property
    def holding(self) -> tuple[str, ...]:
        """The properties that hold."""
        return tuple(name for name, value in self.values.items() if value > 0)


@dataclass(frozen=True, slots=True)
class Constituent:
    """A phrase of a constituency tree.

    Attributes:
        label: category without function tags, e.g. ``NP``.
        span: the constituent's words.
        parent: index of the parent constituent; `ROOT` for the whole tree.
    """

    label: str
    span: Span
    parent: int


@dataclass(frozen=True, slots=True)
class Sentence:
    """Words and the annotation layers that the corpus has; missing layers are empty.

    Attributes:
        id: unique within the corpus.
        language: BCP 47 tag, e.g. ``en``.
        words: syntactic words; multiword-token lines and empty nodes are not words.
        upos: universal part-of-speech tag of each word.
        xpos: language-specific tag of each word.
        feats: morphological features of each word, ``{"Number": "Sing"}``.
        heads: index of each word's head, from 0; `ROOT` for the root.
        deprels: dependency relation of each word to its head.
        chunks: BIO tag of each word's base chunk, ``B-NP``.
        frames: predicates with their arguments.
        columns: label columns of the user's own data, by name: a label per word, or a single
            label for the sentence.
        document, genre: the document that contains the sentence, and its genre, if known. They are
            not annotation, so they are neither compared nor part of the fingerprint.
        whole: whether the only word is a whole written text, from which one vector is pooled.
        chat: whether this text is `probes.data.chats.chat_as_text`.
        special: whether special tokens in the text are read as special.
        lemmas: dictionary form of each word.
        mentions: mentions of entities, in the order in which they begin.
        starts: for a window of a document (see `windows`), the first words of the sentences in it.
        written: text of each word, with the space before it; empty for a word that shares the text
            of the one before, as in French ``du``, and for all words if the spacing is unknown.
        ratings: annotators' ratings of words and of pairs of words.
        constituents: constituents of the tree in order, each before its parts.
    """

    # Fields keep their names and order: the `repr` is part of `Corpus.fingerprint`.
    id: str
    language: str
    words: tuple[str, ...]
    upos: tuple[str, ...] = ()
    xpos: tuple[str, ...] = ()
    feats: tuple[Mapping[str, str], ...] = ()
    heads: tuple[int, ...] = ()
    deprels: tuple[str, ...] = ()
    chunks: tuple[str, ...] = ()
    frames: tuple[Frame, ...] = ()
    columns: Mapping[str, tuple[Label, ...]] = field(default_factory=dict)
    document: str = field(default="", compare=False, repr=False)
    genre: str = field(default="", compare=False, repr=False)
    whole: bool = field(default=False, repr=False)
    chat: bool = field(default=False, repr=False)
    special: bool = field(default=False, repr=False)
    lemmas: tuple[str, ...] = field(default=(), compare=False, repr=False)
    written: tuple[str, ...] = field(default=(), compare=False, repr=False)
    mentions: tuple[Mention, ...] = field(default=(), compare=False, repr=False)
    starts: tuple[int, ...] = field(default=(0,), compare=False, repr=False)
    ratings: tuple[Rating, ...] = field(default=(), compare=False, repr=False)
    constituents: tuple[Constituent, ...] = field(default=(), compare=False, repr=False)

    def __post_init__(self) -> None:
        # Bypasses subclasses that record which attributes are read.
        feats, columns = (object.__getattribute__(self, name) for name in ("feats", "columns"))
        if not all(type(features) is FrozenDict for features in feats):
            object.__setattr__(self, "feats", tuple(map(FrozenDict, feats)))
        if type(columns) is not FrozenDict:
            object.__setattr__(self, "columns", FrozenDict(columns))

    def __len__(self) -> int:
        return len(self.words)

    def layer(self, name: str) -> tuple[Any, ...]:
        """The annotation layer or column called `name`; empty if the sentence lacks it."""
        layer: tuple[Any, ...]
        layer = getattr(self, name) if name in LAYERS else self.columns.get(name, ())
        return layer


@dataclass(frozen=True)
class Corpus:
    """A named, versioned and licensed corpus: three splits of sentences, or items.

    Attributes:
        name: name for `--corpus`.
        version: release of the source, e.g. ``r2.16``.
        licence: name of the licence.
        splits: sentences by split, "train", "dev" and "test".
        notes: counts to print and store with results, e.g. of sentences that lack a layer.
        limited: whether `--limit` removed sentences or items.
        items: items for a language model; a corpus of items has no sentences.
    """

    name: str
    version: str
    licence: str
    splits: Mapping[str, tuple[Sentence, ...]]
    notes: Mapping[str, int] = field(default_factory=dict)
    limited: bool = False
    items: tuple[Item, ...] = ()

    def __iter__(self) -> Iterator[Sentence]:
        for split in SPLITS:
            yield from self.splits[split]

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of words and annotations, split by split, in order; or of items.

        Lemmas, mentions and constituents are left out, since the first records came before them and
        the same files contain them. So are ratings, whose files are optional; see
        `probes.data.sources.Source.digest_for`.
        """
        digest = hashlib.sha256()
        for item in self.items:
            digest.update(repr(item).encode())
        for split in SPLITS:
            for sentence in self.splits[split]:
                digest.update(repr((split, sentence)).encode())
        return digest.hexdigest()

    @cached_property
    def layers(self) -> frozenset[str]:
        """Annotation layers and columns of the sentences, or the kind of items."""
        if self.items:
            return frozenset((self.items[0].kind,))
        return frozenset(
            name
            for name in (*LAYERS, *dict.fromkeys(c for s in self for c in s.columns))
            if any(sentence.layer(name) for sentence in self)
        )

    @cached_property
    def genres(self) -> dict[str, tuple[int, ...]]:
        """Number of sentences in train, dev and test, by genre; empty if no genre is known."""
        counts = [Counter(sentence.genre for sentence in self.splits[split]) for split in SPLITS]
        names = sorted(set().union(*counts) - {""})
        return {name: tuple(count[name] for count in counts) for name in names}


JOINED = ("upos", "xpos", "feats", "heads", "deprels", "chunks", "lemmas", "mentions")
"""The annotation layers that windows have."""


def windows(sentences: Iterable[Sentence], size: int) -> Iterator[Sentence]:
    """Yield for each sentence, in order, a window that ends with it.

    A window has at most `size` sentences, all of one document. A sentence without a document is a
    window by itself.
    """
    window: deque[Sentence] = deque(maxlen=size)
    for sentence in sentences:
        if window and not (window[-1].document == sentence.document != ""):
            window.clear()
        window.append(sentence)
        yield one_sentence(window)


def one_sentence(sentences: Sequence[Sentence]) -> Sentence:
    """Join sentences into one, with the id of the last; each keeps its root.

    Layers that a sentence lacks are dropped, except mentions, since a sentence may have none.
    """
    last = sentences[-1]
    *starts, _ = accumulate(map(len, sentences), initial=0)
    parts = list(map(_moved, sentences, starts))
    layers: dict[str, Any] = {
        layer: tuple(entry for part in parts for entry in part.layer(layer))
        for layer in JOINED
        if layer == "mentions" or all(part.layer(layer) for part in parts)
    }
    return Sentence(
        last.id,
        last.language,
        tuple(word for part in parts for word in part.words),
        document=last.document,
        genre=last.genre,
        starts=tuple(starts),
        **layers,
    )


def _moved(sentence: Sentence, start: int) -> Sentence:
    """The sentence with words counted from `start`."""
    return replace(
        sentence,
        heads=tuple(head if head == ROOT else head + start for head in sentence.heads),
        mentions=tuple(
            replace(mention, span=(mention.span[0] + start, mention.span[1] + start))
            for mention in sentence.mentions
        ),
    )
