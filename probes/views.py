"""What text an encoder is shown, and whose vectors are wanted.

Most tasks use the *plain* view. A task that hides a word gets the *masked* view, in which
the mask token stands for it, or, from an encoder that has none, the *cut* view, in which the
text ends before it and the vector of the last word left is taken.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from data.sentence import Corpus, Sentence
from tasks.task import Example

ViewName = Literal["plain", "masked", "cut"]


@dataclass(frozen=True, slots=True)
class Text:
    """Words for an encoder.

    Attributes:
        words: at least one.
        keep: the words `[start, end)` whose vectors are kept.
        mask: the word to replace by the mask token.
    """

    words: tuple[str, ...]
    keep: tuple[int, int]
    mask: int | None = None


@dataclass(frozen=True)
class View:
    """Texts to encode together, each once.

    Attributes:
        name: "plain", "masked" or "cut".
        texts: without duplicates, in order of first occurrence.
    """

    name: ViewName
    texts: tuple[Text, ...]

    @cached_property
    def index(self) -> dict[Text, int]:
        """The place of each text in `texts`."""
        return {text: i for i, text in enumerate(self.texts)}

    @cached_property
    def digest(self) -> str:
        """SHA-256 over the content."""
        digest = hashlib.sha256(self.name.encode())
        for text in self.texts:
            digest.update(repr((text.words, text.keep, text.mask)).encode())
        return digest.hexdigest()


def plain_text(sentence: Sentence) -> Text:
    """The whole sentence, every word kept."""
    return Text(sentence.words, (0, len(sentence)))


def hiding_text(sentence: Sentence, hide: int, name: ViewName) -> Text:
    """The sentence with word `hide` masked, or cut before it; one word kept."""
    if name == "masked":
        return Text(sentence.words, (hide, hide + 1), mask=hide)
    return Text(sentence.words[:hide], (hide - 1, hide))


def text_of(sentence: Sentence, example: Example, name: ViewName) -> Text:
    """The text in which `example` is read under the view called `name`."""
    if example.hide is None:
        return plain_text(sentence)
    return hiding_text(sentence, example.hide, name)


def cut_away(example: Example) -> bool:
    """Whether the cut view takes away the hidden word's cue, or leaves no text at all."""
    return example.hide == 0 or (
        example.hide is not None and example.cue is not None and example.cue > example.hide
    )


def plain_view(corpus: Corpus) -> View:
    """Every word of every sentence."""
    return View("plain", _distinct(plain_text(sentence) for sentence in corpus))


def hiding_view(texts: Iterable[Text], name: ViewName) -> View:
    """The texts of a task that hides words."""
    return View(name, _distinct(texts))


def _distinct(texts: Iterable[Text]) -> tuple[Text, ...]:
    return tuple(dict.fromkeys(texts))
