"""Views: the text that a task shows the encoder, and the words whose vectors are kept.

Most tasks use the *plain* view. A task that hides a word uses the *masked* view, in which
the mask token replaces the word, or, with an encoder that has none, the *cut* view, in which the
text ends before the word and the vector of the last remaining word is kept. A task that brings
words of its own uses the *own* view: these words, as they are. The *written* view is for language
models: texts as they are written, in stretches whose tokens are scored.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from probes.data.sentence import Corpus, Sentence
from probes.tasks.task import Example

ViewName = Literal["plain", "masked", "cut", "own", "written"]


@dataclass(frozen=True, slots=True)
class Text:
    """Words for an encoder.

    Attributes:
        words: at least one.
        kept_span: the words `[start, end)` whose vectors are kept.
        mask: the word that the mask token replaces.
        written: whether the words are stretches of a text as it was written, with the spaces in it,
            which is split into subwords as one.
        chat, special: see `probes.data.sentence.Sentence`.
    """

    words: tuple[str, ...]
    kept_span: tuple[int, int]
    mask: int | None = None
    written: bool = False
    chat: bool = False
    special: bool = False

    @property
    def rendered(self) -> bool:
        """Whether all special tokens that the model reads are in the text."""
        return self.chat or self.special

    @property
    def size(self) -> int:
        """Number of words, of a written text about as many as it has: one for 6 characters."""
        return 1 + sum(map(len, self.words)) // 6 if self.written else len(self.words)


@dataclass(frozen=True)
class View:
    """Texts to encode together, each once.

    Attributes:
        name: see above.
        texts: distinct texts, in order of first occurrence.
    """

    name: ViewName
    texts: tuple[Text, ...]

    @cached_property
    def index(self) -> dict[Text, int]:
        """The index of each text in `texts`."""
        return {text: i for i, text in enumerate(self.texts)}

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the content."""
        digest = hashlib.sha256(self.name.encode())
        for text in self.texts:
            content = (text.words, text.kept_span, text.mask)
            # Written texts are named only where there are any, since they came after the first
            # stores.
            kinds = [x for x in ("chat", "special") if getattr(text, x)]
            identity = (*content, "whole", *kinds) if text.written else content
            digest.update(repr(identity).encode())
        return digest.hexdigest()


def plain_text(sentence: Sentence) -> Text:
    """The whole sentence, every word kept."""
    s = sentence
    return Text(s.words, (0, len(s)), written=s.whole, chat=s.chat, special=s.special)


def hiding_text(words: tuple[str, ...], hide: int, name: ViewName) -> Text:
    """The words with word `hide` masked, or cut off before it; one word is kept."""
    if name == "masked":
        return Text(words, (hide, hide + 1), mask=hide)
    return Text(words[:hide], (hide - 1, hide))


def text_of(sentence: Sentence, example: Example, hiding: ViewName) -> Text:
    """The text in which `example` is read; `hiding` is the view of examples that hide a word."""
    if example.hide is not None:
        return hiding_text(example.words or sentence.words, example.hide, hiding)
    if example.words is not None:
        spans = [span for span in (example.span, example.span2) if span]
        start, end = min(s for s, _ in spans), max(e for _, e in spans)
        return Text(example.words, (start, end))
    return plain_text(sentence)


def view_name(example: Example, hiding: ViewName) -> ViewName:
    """The view in which `example` is read; `hiding` is the view of examples that hide a word."""
    if example.hide is not None:
        return hiding
    return "plain" if example.words is None else "own"


def merged_texts(texts: Sequence[Text]) -> list[Text]:
    """The texts, where texts of the same words become one that keeps what any of them keeps."""
    kept_spans: dict[tuple[str, ...], tuple[int, int]] = {}
    for text in texts:
        start, end = kept_spans.get(text.words, text.kept_span)
        kept_spans[text.words] = min(start, text.kept_span[0]), max(end, text.kept_span[1])
    return [replace(text, kept_span=kept_spans[text.words]) for text in texts]


def is_cut_away(example: Example) -> bool:
    """Whether the cut view removes the hidden word's cue, or leaves no text at all."""
    return example.hide == 0 or (
        example.hide is not None and example.cue is not None and example.cue > example.hide
    )


def plain_view(corpus: Corpus) -> View:
    """The view of whole sentences, every word kept."""
    return view_over((plain_text(sentence) for sentence in corpus), "plain")


def view_over(texts: Iterable[Text], name: ViewName) -> View:
    """The view of some texts, each of them once."""
    return View(name, tuple(dict.fromkeys(texts)))
