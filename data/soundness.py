"""What a plug-in's reader gave, held against what a corpus is."""

from __future__ import annotations

from collections.abc import Callable
from reprlib import repr as shortened

from probes.common.errors import UserError
from probes.common.origin import Origin, described, place_in
from probes.data.sentence import LAYERS, ROOT, SPLITS, Corpus, Sentence
from probes.data.sources import Source

BY_WORD = tuple(layer for layer in LAYERS if layer != "frames")
"""Layers with one entry for each word."""


def read_checked(read: Callable[[Source], Corpus], origin: Origin, source: Source) -> Corpus:
    """What the reader of a plug-in, which is of `origin`, gives.

    Raises:
        UserError: it failed, or what it gave is no corpus.
    """
    where = f"Corpus {source.name!r}"
    try:
        corpus = read(source)
    except UserError:
        raise
    except Exception as error:
        place = place_in(error, origin) or str(origin)
        raise UserError(f"{where}: its reader raised {described(error)}. Mend {place}.") from error
    if what := _fault(corpus):
        raise UserError(f"{where}: its reader gave {what}. Mend {origin}.")
    return corpus


def _fault(corpus: object) -> str:
    if not isinstance(corpus, Corpus):
        return f"{shortened(corpus)}, which is no Corpus"
    if set(corpus.splits) != set(SPLITS):
        return f"the splits {sorted(corpus.splits)}; they are {', '.join(SPLITS)}"
    seen: set[str] = set()
    for split in SPLITS:
        for number, sentence in enumerate(corpus.splits[split], 1):
            place = f"as sentence {number} of {split}"
            if not isinstance(sentence, Sentence):
                return f"{shortened(sentence)} {place}, which is no Sentence"
            if what := _sentence_fault(sentence):
                return f"{what} {place} ({sentence.id!r})"
            if sentence.id in seen:
                return f"the id {sentence.id!r} a second time, {place}"
            seen.add(sentence.id)
    return ""


def _sentence_fault(sentence: Sentence) -> str:
    if not (isinstance(sentence.words, tuple) and sentence.words):
        return f"the words {shortened(sentence.words)}, which are no tuple of one or more,"
    if not all(isinstance(word, str) and word for word in sentence.words):
        return "a word that is empty or no string"
    n_words = len(sentence.words)
    for layer in BY_WORD:
        entries = sentence.layer(layer)
        if not isinstance(entries, tuple) or len(entries) not in (0, n_words):
            return f"a layer {layer} that is no tuple of one entry for each of {n_words} words"
    for head in sentence.heads:
        if head != ROOT and not 0 <= head < n_words:
            return f"the head {head!r}, which is neither a word's number nor {ROOT},"
    return ""
