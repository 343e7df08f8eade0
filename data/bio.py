"""BIO tags: what cannot be."""

from __future__ import annotations

from collections.abc import Sequence


def misplaced(tags: Sequence[str]) -> list[int]:
    """Places of ``I-X`` tags that continue no chunk of type X.

    In the BIO scheme of CoNLL-2000 (IOB2) there are none; in the older IOB1 the first word of
    most chunks is such a tag.
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
    """Refuse tags that are not BIO, or that cannot stand where they stand.

    Raises:
        WordError: the first of them.
    """
    for i, tag in enumerate(tags):
        if not is_bio(tag):
            raise WordError(i, f"{tag!r} is no BIO tag (O, B-X, I-X)")
    if wrong := misplaced(tags):
        i = wrong[0]
        after = f"after {tags[i - 1]!r}" if i else "at the start of a sentence"
        raise WordError(i, f"the BIO tag {tags[i]!r} cannot stand {after}")


class WordError(ValueError):
    """What is wrong with one word of a sentence; readers add the file and the line.

    Attributes:
        word: its index, counted from 0.
    """

    def __init__(self, word: int, message: str) -> None:
        super().__init__(message)
        self.word = word
