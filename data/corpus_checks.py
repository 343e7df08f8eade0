"""Checks of the corpus that a plug-in's reader returns."""

from __future__ import annotations

from collections.abc import Callable
from reprlib import repr as shortened

from probes.common.errors import UserError
from probes.common.origin import Origin, described, failing_line
from probes.data.sentence import LAYERS, ROOT, SPLITS, Corpus, Sentence
from probes.data.sources import Source

_NOT_BY_WORD = "frames", "mentions", "ratings", "constituents"

BY_WORD = tuple(layer for layer in LAYERS if layer not in _NOT_BY_WORD)
"""Layers with one entry per word."""


def read_checked(read: Callable[[Source], Corpus], origin: Origin, source: Source) -> Corpus:
    """Call the reader of the plug-in `origin` and check the corpus that it returns.

    Raises:
        UserError: the reader failed, or returned an invalid corpus.
    """
    where = f"Corpus {source.name!r}"
    try:
        corpus = read(source)
    except UserError:
        raise
    except Exception as error:
        place = failing_line(error, origin) or str(origin)
        raise UserError(f"{where}: its reader raised {described(error)}. Fix {place}.") from error
    if what := _fault(corpus):
        raise UserError(f"{where}: its reader returned {what}. Fix {origin}.")
    return corpus


def _fault(corpus: object) -> str:
    if not isinstance(corpus, Corpus):
        return f"{shortened(corpus)}, which is not a Corpus"
    if set(corpus.splits) != set(SPLITS):
        return f"the splits {sorted(corpus.splits)}; they must be {', '.join(SPLITS)}"
    seen: set[str] = set()
    for split in SPLITS:
        for number, sentence in enumerate(corpus.splits[split], 1):
            place = f"as sentence {number} of {split}"
            if not isinstance(sentence, Sentence):
                return f"{shortened(sentence)} {place}, which is not a Sentence"
            if what := _sentence_fault(sentence):
                return f"{what} {place} ({sentence.id!r})"
            if sentence.id in seen:
                return f"the id {sentence.id!r} again {place}; ids must be unique"
            seen.add(sentence.id)
    return ""


def _sentence_fault(sentence: Sentence) -> str:
    if not (isinstance(sentence.words, tuple) and sentence.words):
        return f"the words {shortened(sentence.words)}, which are not a non-empty tuple,"
    if not all(isinstance(word, str) and word for word in sentence.words):
        return "a word that is empty or not a string"
    n_words = len(sentence.words)
    for layer in BY_WORD:
        entries = sentence.layer(layer)
        if not isinstance(entries, tuple) or len(entries) not in (0, n_words):
            return f"a layer {layer} that is not a tuple with one entry for each of {n_words} words"
    if not isinstance(sentence.genre, str):
        return f"the genre {shortened(sentence.genre)}, which is not a string,"
    for head in sentence.heads:
        if head != ROOT and not 0 <= head < n_words:
            return f"the head {head!r}, which is neither the index of a word nor {ROOT},"
    return ""
