"""A corpus that a script or notebook has made, instead of a file."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

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
    # The fingerprint leaves these out.
    units = [
        (
            *(split, s.document, s.genre),
            *filter(None, (s.lemmas, s.written, s.mentions, s.constituents)),
        )
        for split in SPLITS
        for s in corpus.splits[split]
    ]
    digest = hashlib.sha256(repr(units).encode()).hexdigest()
    return Source(
        name=corpus.name,
        version=corpus.version,
        licence=corpus.licence,
        files={},
        identity={"sentences": corpus.fingerprint, "units": digest},
        read=lambda _: replace(corpus, limited=False),
        layers=corpus.layers,
        own=True,
        limit=limit,
        drop_overlap=drop_overlap,
    )


def _divided(sentences: Sequence[Sentence], split_by: SplitBy | None) -> Corpus:
    odd = next((x for x in sentences if not isinstance(x, Sentence)), None)
    if odd is not None or not sentences:
        found = "nothing in it" if odd is None else f"a {type(odd).__name__} in it"
        raise UserError(
            f"corpus=[…]: {found}; give probes.Sentence objects, "
            "texts with their labels, a data frame, a name, or a path."
        )
    by_document = all(sentence.document for sentence in sentences)
    unit = split_by or ("document" if by_document else "sentence")
    splits, notes = cut_missing_splits({"": list(sentences)}, unit, f"corpus={NAME!r}")
    return Corpus(NAME, "", "", splits, notes)


def columns_in(given: object) -> dict[str, list[Any]] | None:
    """The columns of a data frame, or of a list of texts with their labels; None if it is neither.

    Raises:
        UserError: an element of the list is no text with its label, or two columns of the frame
            have the same name.
    """
    if isinstance(given, pd.DataFrame):
        names = list(map(str, given.columns))
        if len(set(names)) < len(names):
            raise UserError(
                f"corpus=DataFrame: two columns have the same name: {', '.join(names)}."
            )
        there = given.astype(object).where(given.notna(), None)
        return {
            name: [x.tolist() if isinstance(x, (np.ndarray, np.generic)) else x for x in column]
            for name, (_, column) in zip(names, there.items(), strict=True)
        }
    if not isinstance(given, (list, tuple)) or not isinstance(given[0], (list, tuple)):
        return None
    for i, pair in enumerate(given):
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            raise UserError(f"corpus[{i}] is {pair!r:.60}, not a text with its label, as others.")
    texts, labels = zip(*given, strict=True)
    plain = [x.item() if isinstance(x, np.generic) else x for x in labels]
    return {"text": list(texts), "label": plain}


def is_in_memory(given: object) -> bool:
    """Whether what was given as a corpus is one, or sentences or a table: no names or paths."""
    if isinstance(given, (Corpus, pd.DataFrame)):
        return True
    if not isinstance(given, (list, tuple)) or not given:
        return False
    return not all(isinstance(each, (str, Path)) for each in given)
