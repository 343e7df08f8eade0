"""A corpus that a script or notebook has made, instead of a file."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from probes.common.errors import UserError
from probes.data.sentence import SPLITS, Corpus, Sentence
from probes.data.sources import Source
from probes.data.splits import SplitBy, cut_missing_splits

NAME = "in memory"


def in_memory(
    given: Corpus | Sequence[Sentence],
    limit: int | None = None,
    drop_overlap: bool = False,
    split_by: SplitBy | None = None,
) -> Source:
    """The corpus as a source; sentences without splits are divided, by document if they name any.

    Args:
        given: a corpus, or sentences.
        limit, drop_overlap, split_by: see `CorpusRequest`.

    Raises:
        UserError: there are no sentences, something else is among them, a split is missing, or
            there are too few to divide.
    """
    corpus = given if isinstance(given, Corpus) else _divided(given, split_by)
    if missing := [split for split in SPLITS if not corpus.splits.get(split)]:
        raise UserError(
            f"corpus={corpus.name!r}: no sentences in {missing[0]}; fill its splits "
            f"{', '.join(SPLITS)}, or give a list of sentences, which is divided."
        )
    return Source(
        name=corpus.name,
        version=corpus.version,
        licence=corpus.licence,
        files={},
        identity={"sentences": corpus.fingerprint, "units": _units(corpus)},
        read=lambda _: replace(corpus, limited=False),
        layers=corpus.layers,
        own=True,
        limit=limit,
        drop_overlap=drop_overlap,
    )


def _units(corpus: Corpus) -> str:
    """SHA-256 of what the fingerprint leaves out: what sentences belong to, lemmas and so on."""
    units = [
        (
            *(split, s.document, s.genre),
            *filter(None, (s.lemmas, s.written, s.mentions, s.constituents)),
        )
        for split in SPLITS
        for s in corpus.splits[split]
    ]
    return hashlib.sha256(repr(units).encode()).hexdigest()


def _divided(sentences: Sequence[Sentence], split_by: SplitBy | None) -> Corpus:
    odd = next((x for x in sentences if not isinstance(x, Sentence)), None)
    if odd is not None or not sentences:
        found = "nothing in it" if odd is None else f"a {type(odd).__name__} in it"
        raise UserError(f"corpus=[…]: {found}; give probes.Sentence objects, a name, or a path.")
    by_document = all(sentence.document for sentence in sentences)
    unit = split_by or ("document" if by_document else "sentence")
    splits, notes = cut_missing_splits({"": list(sentences)}, unit, f"corpus={NAME!r}")
    return Corpus(NAME, "", "", splits, notes)


def is_in_memory(given: object) -> bool:
    """Whether what was given as a corpus is one, or sentences, and no names or paths."""
    if isinstance(given, Corpus):
        return True
    if not isinstance(given, (list, tuple)) or not given:
        return False
    return not all(isinstance(each, (str, Path)) for each in given)
