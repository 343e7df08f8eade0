"""A corpus that a script or notebook has made, instead of a file."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence, Sized
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from probes.common.errors import UserError
from probes.data.sentence import SPLITS, Corpus, Sentence
from probes.data.sources import Source
from probes.data.splits import UNNAMED, SplitBy, cut_missing_splits

NAME = "in memory"


def in_memory(
    sentences: Corpus | Sequence[Sentence],
    limit: int | None = None,
    drop_overlap: bool = False,
    split_by: SplitBy | None = None,
) -> Source:
    """The corpus as a source; sentences without splits are divided, by document if they name any.

    Args:
        sentences: a corpus, or sentences.
        limit, drop_overlap, split_by: see `CorpusRequest`.

    Raises:
        UserError: there are no sentences, something else is among them, a split is missing, or
            there are too few to divide.
    """
    corpus = sentences if isinstance(sentences, Corpus) else _make_corpus(sentences, split_by)
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
        from_user=True,
        limit=limit,
        drop_overlap=drop_overlap,
    )


def _make_corpus(sentences: Sequence[Sentence], split_by: SplitBy | None) -> Corpus:
    odd = next((x for x in sentences if not isinstance(x, Sentence)), None)
    if odd is not None or not sentences:
        contents = "nothing in it" if odd is None else f"a {type(odd).__name__} in it"
        raise UserError(
            f"corpus=[…]: {contents}; give probes.Sentence objects, "
            "texts with their labels, a data frame, a name, or a path."
        )
    by_document = all(sentence.document for sentence in sentences)
    unit = split_by or ("document" if by_document else "sentence")
    splits, notes = cut_missing_splits({"": list(sentences)}, unit, f"corpus={NAME!r}")
    return Corpus(NAME, "", "", splits, notes)


def tables_in(tables: object) -> dict[str, dict[str, list[Any]]] | None:
    """The columns of tables, by split; all under `UNNAMED` for a single one. None for no table.

    Raises:
        UserError: a table has columns of several lengths or of one name, or an element of a list is
            no text with its label.
    """
    if isinstance(tables, Mapping) and tables and all(map(_is_table, tables.values())):
        return {str(split): _columns_of_table(part) for split, part in tables.items()}
    if _is_table(tables):
        return {UNNAMED: _columns_of_table(tables)}
    if not isinstance(tables, (list, tuple)) or not isinstance(tables[0], (list, tuple)):
        return None
    for i, pair in enumerate(tables):
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            raise UserError(f"corpus[{i}] is {pair!r:.60}, not a text with its label, as others.")
    texts, labels = zip(*tables, strict=True)
    return {UNNAMED: {"text": list(texts), "label": list(map(plain, labels))}}


def _columns_of_table(table: Any) -> dict[str, list[Any]]:
    """The columns of a data frame, a dataset, or a dict of lists."""
    where = f"corpus={type(table).__name__}"
    if not isinstance(table, Sized):
        raise UserError(f"{where}: is a stream; load it without streaming=True.")
    if not isinstance(table, (pd.DataFrame, Mapping)):
        from probes.data.labelled import columns_of

        return columns_of(table)
    names = list(map(str, table))
    if len(set(names)) < len(names):
        raise UserError(f"{where}: two columns have the same name: {', '.join(names)}.")
    for name, column in table.items():
        single = getattr(column, "shape", None) == ()
        if isinstance(column, str) or not isinstance(column, Sized) or single:
            raise UserError(f"{where}: {name} is a {type(column).__name__}, not a list of values.")
    columns = {str(name): list(map(plain, column)) for name, column in table.items()}
    if len(set(map(len, columns.values()))) > 1:
        lengths = ", ".join(f"{len(column):,} {name}" for name, column in columns.items())
        raise UserError(f"{where}: columns of different lengths: {lengths}.")
    return columns


def plain(value: Any) -> Any:
    """A cell without types of numpy; None for NaN, NaT and NA, but NaN in lists stays a float."""
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        cells = (x if isinstance(x, (str, float)) else plain(x) for x in value)
        return tuple(cells) if isinstance(value, tuple) else list(cells)
    if pd.api.types.is_scalar(value) and pd.isna(value):
        return None
    return value


def _is_table(table: object) -> bool:
    """Whether it is a data frame, a dataset of `datasets`, or a dict."""
    dataset = type(table).__module__.startswith("datasets.") and hasattr(table, "column_names")
    return dataset or isinstance(table, (pd.DataFrame, Mapping))


def is_in_memory(corpus: object) -> bool:
    """Whether what was given as a corpus is one, or sentences or a table: no names or paths.

    Raises:
        UserError: it is an array, or a table of another library.
    """
    if isinstance(corpus, Corpus) or _is_table(corpus):
        return True
    if hasattr(corpus, "shape"):
        raise UserError(
            f"corpus={type(corpus).__name__}: no table that is read; give a pandas.DataFrame (by "
            "table.to_pandas()), a dict of lists, or a list of (text, label)."
        )
    if not isinstance(corpus, (list, tuple)) or not corpus:
        return False
    return not all(isinstance(name, (str, Path)) for name in corpus)
