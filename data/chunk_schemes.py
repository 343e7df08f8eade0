"""Chunk tags: BIO, and conversion of other schemes to BIO."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

_LETTERS = {"BIO": "BI", "BIOES": "BIES", "BILOU": "BILU", "BMES": "BMES", "BMEW": "BMEW"}
"""Letters of each scheme: first word of a chunk, inside, last word, single word."""

_ENDS = frozenset("ELSUW")
_ALONE = frozenset("SUW")

_NOTATIONS = {
    "": re.compile(r"(?P<letter>[A-Z])-(?P<type>.+)", re.S),
    "with _": re.compile(r"(?P<letter>[A-Z])_(?P<type>.+)", re.S),
    "types first": re.compile(r"(?P<type>.+)[-_](?P<letter>[A-Z])", re.S),
    "without types": re.compile(r"(?P<letter>[A-Z])(?P<type>)"),
}
"""``B-PER``, ``B_PER``, ``PER-B``, ``B``."""

UNTYPED = "chunk"
"""Type of chunks whose tags name none."""


@dataclass(frozen=True)
class Scheme:
    """Scheme and notation of chunk tags.

    Attributes:
        name: name of the scheme, e.g. ``BILOU``. ``IOB`` has the letters of BIO, but some chunk
            begins with I, as most do in IOB1.
        notation: notation of tags, if it is not ``B-PER``.
    """

    name: str
    notation: str = ""

    def __str__(self) -> str:
        notation = f" ({self.notation})" if self.notation else ""
        return f"{self.name} tags{notation}" + ("" if self.is_bio else ", read as BIO")

    @property
    def is_bio(self) -> bool:
        """Whether tags are BIO tags already."""
        return self == Scheme("BIO")

    def parsed(self, tag: str) -> tuple[str, str]:
        """Letter and type of a tag."""
        match = _NOTATIONS[self.notation].fullmatch(tag)
        assert match is not None
        return match["letter"], match["type"] or UNTYPED

    def as_bio(self, tags: Sequence[str | None]) -> tuple[list[str | None], int]:
        """Convert to BIO tags. A word continues a chunk only if the type is the same.

        Missing tags stay missing, and end a chunk.

        Returns:
            BIO tags, and the number of tags that continue or end a chunk where there is none.
        """
        bio_tags: list[str | None] = []
        strays, open_type = 0, None
        for tag in tags:
            if tag is None or tag == "O":
                open_type = None
                bio_tags.append(tag)
                continue
            letter, chunk_type = self.parsed(tag)
            is_first = letter == "B" or letter in _ALONE
            strays += not is_first and chunk_type != open_type
            begins = is_first or chunk_type != open_type
            open_type = None if letter in _ENDS else chunk_type
            bio_tags.append(f"{'B' if begins else 'I'}-{chunk_type}")
        return bio_tags, strays


def scheme_of(labels: Collection[str]) -> Scheme | None:
    """The scheme of a column with these labels; None if they are not chunk tags."""
    tags = set(labels) - {"O"}
    for notation, pattern in _NOTATIONS.items():
        if not tags or not all(map(pattern.fullmatch, tags)):
            continue
        tag_parts = [Scheme("", notation).parsed(tag) for tag in tags]
        letters = {letter for letter, _ in tag_parts}
        # Several schemes may have all letters; the usual one is first.
        names = [name for name, allowed in _LETTERS.items() if letters <= set(allowed)]
        if names and _is_evident(Scheme(names[0], notation), tag_parts, "O" in labels):
            return Scheme(names[0], notation)
    return None


def _is_evident(scheme: Scheme, tags: Collection[tuple[str, str]], outside: bool) -> bool:
    """Whether labels are really tags of `scheme`, unlike *S-bar*.

    They are if some words are outside, or if a type has tags besides the first. In an unusual
    notation, some chunk must also begin with B.
    """
    if scheme.is_bio:
        return True
    begun_types = {chunk_type for letter, chunk_type in tags if letter == "B"}
    later_types = {t for letter, t in tags if letter != "B" and letter not in _ALONE}
    if scheme.notation == "without types":
        return bool(begun_types) and (outside or {letter for letter, _ in tags} == set("BMES"))
    return bool(begun_types & later_types) or (outside and bool(begun_types or not scheme.notation))


def is_bio(tag: str) -> bool:
    """Whether `tag` is ``O``, ``B-X`` or ``I-X``."""
    return tag == "O" or (tag[:2] in ("B-", "I-") and len(tag) > 2)


def require_bio(tags: Sequence[str]) -> None:
    """Check that tags form a valid BIO sequence.

    The BIO scheme of CoNLL-2000 (IOB2) has no ``I-X`` that continues no chunk of type X. In the
    older IOB1, most chunks begin with one.

    Raises:
        WordError: a tag is not BIO, or an I- tag continues no chunk; names the first such tag.
    """
    for i, tag in enumerate(tags):
        if not is_bio(tag):
            raise WordError(i, f"{tag!r} is not a BIO tag (O, B-X, I-X)")
        before = tags[i - 1] if i else "O"
        if tag.startswith("I-") and before not in (tag, f"B-{tag[2:]}"):
            after = f"after {before!r}" if i else "at the start of a sentence"
            raise WordError(i, f"the BIO tag {tag!r} is not allowed {after}")


def chunks_of(tags: Sequence[str]) -> Iterator[tuple[str, int, int]]:
    """Yield type, first word and end of each chunk that valid BIO tags mark."""
    for start, tag in enumerate(tags):
        if tag.startswith("B-"):
            after = range(start + 1, len(tags))
            end = next((i for i in after if not tags[i].startswith("I-")), len(tags))
            yield tag[2:], start, end


class WordError(ValueError):
    """An error in one word of a sentence; readers add file and line.

    Attributes:
        word: index of the word, from 0.
    """

    def __init__(self, word: int, message: str) -> None:
        super().__init__(message)
        self.word = word
