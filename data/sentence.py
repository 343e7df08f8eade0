"""The units of text: a word, its annotation, the sentence, the corpus."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NoReturn

Span = tuple[int, int]
"""Words `[start, end)` of a sentence, counted from 0."""

Label = str | float | None
"""Of a column of the user's own data; None where the data give none."""

LARGEST = 1e18
"""Of labels that are numbers: the square of one 20 times as large overflows in float32."""

ROOT = -1
"""The head of a word that hangs on no other."""

SPLITS = ("train", "dev", "test")

LAYERS = ("upos", "xpos", "feats", "heads", "deprels", "chunks", "frames")
"""The annotation layers a sentence may carry."""


def shared(strings: Iterable[str]) -> tuple[str, ...]:
    """The same strings, equal ones one object: of a corpus's words few are different."""
    return tuple(map(sys.intern, strings))


class Fixed(dict[str, Any]):
    """A dict that stays as it is: equal features of words are one object."""

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("a sentence cannot be changed, since other tasks read it; change a copy")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return Fixed, (dict(self),)


@dataclass(frozen=True, slots=True)
class Frame:
    """One predicate and its arguments, in PropBank's terms.

    Attributes:
        roleset: PropBank roleset, e.g. ``break.01``.
        predicate: the words of the ``V`` bracket.
        arguments: (label, span) pairs, e.g. ``("ARG1", (0, 2))``, in order of start.
    """

    roleset: str
    predicate: Span
    arguments: tuple[tuple[str, Span], ...]


@dataclass(frozen=True, slots=True)
class Sentence:
    """Words and whichever annotation layers the corpus has; a missing layer is empty.

    Attributes:
        id: unique in its corpus.
        language: BCP 47 tag, ``en``.
        words: syntactic words; multiword-token lines and empty nodes are not words.
        upos: universal part-of-speech tag of each word.
        xpos: language-specific tag of each word.
        feats: morphological features of each word, ``{"Number": "Sing"}``.
        heads: index of each word's head, counted from 0; `ROOT` for the root.
        deprels: dependency relation of each word to its head.
        chunks: BIO tag of each word's base chunk, ``B-NP``.
        frames: predicates with their arguments.
        columns: label columns of the user's own data, by name: a label for each word, or one
            label for the sentence, alone in its tuple.
        document: the document that it stands in, where the corpus says; not annotation, and
            so neither compared nor part of a fingerprint.
    """

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

    def __post_init__(self) -> None:
        # Past a subclass that notes what is read.
        feats, columns = (object.__getattribute__(self, name) for name in ("feats", "columns"))
        if not all(type(each) is Fixed for each in feats):
            object.__setattr__(self, "feats", tuple(map(Fixed, feats)))
        if type(columns) is not Fixed:
            object.__setattr__(self, "columns", Fixed(columns))

    def __len__(self) -> int:
        return len(self.words)

    def layer(self, name: str) -> tuple[Any, ...]:
        """The annotation layer, or the column, called `name`; empty if there is none."""
        layer: tuple[Any, ...]
        layer = getattr(self, name) if name in LAYERS else self.columns.get(name, ())
        return layer


@dataclass(frozen=True)
class Corpus:
    """Named, versioned, licensed splits of sentences.

    Attributes:
        name: what `--corpus` calls it.
        version: release of the source, e.g. ``r2.16``.
        licence: SPDX identifier, or a sentence.
        splits: sentences by split, "train", "dev" and "test".
        notes: counts worth printing beside results, e.g. sentences that lack a layer.
        limited: whether `--limit` left sentences out.
    """

    name: str
    version: str
    licence: str
    splits: Mapping[str, tuple[Sentence, ...]]
    notes: Mapping[str, int] = field(default_factory=dict)
    limited: bool = False

    def __iter__(self) -> Iterator[Sentence]:
        for split in SPLITS:
            yield from self.splits[split]

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over every word and every annotation, split by split, in order."""
        digest = hashlib.sha256()
        for split in SPLITS:
            for sentence in self.splits[split]:
                digest.update(repr((split, sentence)).encode())
        return digest.hexdigest()

    @cached_property
    def layers(self) -> frozenset[str]:
        """The annotation layers and columns that at least one sentence carries."""
        return frozenset(
            name
            for name in (*LAYERS, *dict.fromkeys(c for s in self for c in s.columns))
            if any(sentence.layer(name) for sentence in self)
        )
