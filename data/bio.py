"""BIO tags: their validation, and the chunks that they mark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def stray_inside_tags(tags: Sequence[str]) -> list[int]:
    """Indices of ``I-X`` tags that continue no chunk of type X.

    The BIO scheme of CoNLL-2000 (IOB2) has none; in the older IOB1 most chunks begin with one.
    """
    before = ("O", *tags)
    return [
        i
        for i, tag in enumerate(tags)
        if tag.startswith("I-") and before[i] not in (tag, f"B-{tag[2:]}")
    ]


def is_bio(tag: str) -> bool:
    """Whether `tag` is ``O``, ``B-X`` or ``I-X``."""
    return tag == "O" or (tag[:2] in ("B-", "I-") and len(tag) > 2)


def require_bio(tags: Sequence[str]) -> None:
    """Check that tags form a valid BIO sequence.

    Raises:
        WordError: a tag is not BIO, or an I- tag continues no chunk; names the first such tag.
    """
    for i, tag in enumerate(tags):
        if not is_bio(tag):
            raise WordError(i, f"{tag!r} is not a BIO tag (O, B-X, I-X)")
    if wrong := stray_inside_tags(tags):
        i = wrong[0]
        after = f"after {tags[i - 1]!r}" if i else "at the start of a sentence"
        raise WordError(i, f"the BIO tag {tags[i]!r} is not allowed {after}")


def chunks_of(tags: Sequence[str]) -> Iterator[tuple[str, int, int]]:
    """The type, first word and end of each chunk that valid BIO tags mark."""
    for start, tag in enumerate(tags):
        if tag.startswith("B-"):
            after = range(start + 1, len(tags))
            end = next((i for i in after if not tags[i].startswith("I-")), len(tags))
            yield tag[2:], start, end


class WordError(ValueError):
    """An error in one word of a sentence; readers add the file and the line.

    Attributes:
        word: index of the word, from 0.
    """

    def __init__(self, word: int, message: str) -> None:
        super().__init__(message)
        self.word = word
