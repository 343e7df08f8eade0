"""Items in the user's own tables: minimal pairs, or facts as cloze sentences.

Pairs have the columns ``sentence_good`` and ``sentence_bad``. Optional are ``UID`` (the paradigm),
``linguistics_term`` (the phenomenon) and ``group`` (the cluster for resampling). Facts (Petroni et
al. 2019) have ``subject``, ``template`` and ``object``, and optionally ``relation``. In the
template, ``[X]`` stands for the subject and ``[Y]`` for the object.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from probes.common.errors import UserError
from probes.common.files import sha256
from probes.data.items import Item, Kind, minimal_pair
from probes.data.minimal_pairs import corpus_of
from probes.data.sentence import Corpus
from probes.data.sources import Source

Columns = Mapping[str, Sequence[Any]]

Row = Mapping[str, Any]
"""Cells of a row, by column."""

_FACT = "subject", "template", "object"
_SUBJECT, _OBJECT = "[X]", "[Y]"


def kind_of(columns: Columns) -> Kind | None:
    """Kind of the items in a table with these columns; None if they are no items."""
    if "sentence_good" in columns and "sentence_bad" in columns:
        return "pairs"
    return "contexts" if all(name in columns for name in _FACT) else None


def find_items(
    name: str, paths: Sequence[Path], tables: Sequence[tuple[Columns, list[int]]], kind: Kind
) -> Source:
    """Make a corpus of items from the user's files.

    Args:
        name: name of the corpus in tables.
        paths: files of items of one kind.
        tables: the columns of each file, and the line number of each row.
    """
    files = {f"{kind} {i}": (path,) for i, path in enumerate(paths)}
    return Source(
        name=name,
        version="",
        licence="",
        files=files,
        identity={role: sha256(path) for role, (path,) in files.items()},
        read=partial(_read, tables=tables, make=_pair if kind == "pairs" else _fact),
        layers=frozenset((kind,)),
        own=True,
    )


def _read(
    source: Source,
    tables: Sequence[tuple[Columns, list[int]]],
    make: Callable[[str, Row, str], Item],
) -> Corpus:
    paths = [path for (path,) in source.files.values()]
    stems = Counter(path.stem for path in paths)
    items = [
        item
        for number, (path, table) in enumerate(zip(paths, tables, strict=True), start=1)
        for item in _items(path, f"{number}-" * (stems[path.stem] > 1), *table, make)
    ]
    return corpus_of(source, items)


def _items(
    path: Path,
    number: str,
    columns: Columns,
    lines: Sequence[int],
    make: Callable[[str, Row, str], Item],
) -> Iterator[Item]:
    """Yield an item for each row.

    Args:
        number: prefix that makes ids unique among files of the same name.

    Raises:
        UserError: a cell is empty, not text, or not a template.
    """
    for i in range(len(next(iter(columns.values())))):
        row = {name: column[i] for name, column in columns.items()}
        try:
            yield make(f"{number}{path.stem}-{i + 1}", row, path.stem)
        except ValueError as error:
            where = f"line {lines[i]}" if lines else f"row {i + 1}"
            raise UserError(f"{path}, {where}: {error}; correct the row.") from error


def _pair(name: str, row: Row, of_file: str) -> Item:
    return minimal_pair(
        name,
        _text(row, "UID", of_file),
        _text(row, "sentence_good"),
        _text(row, "sentence_bad"),
        _text(row, "linguistics_term", ""),
        _text(row, "group", ""),
    )


def _fact(name: str, row: Row, of_file: str) -> Item:
    subject, template, answer = (_text(row, column) for column in _FACT)
    for mark in (_SUBJECT, _OBJECT):
        if template.count(mark) != 1:
            raise ValueError(f"the template {template!r} must have exactly one {mark}")
    # The subject may contain the mark of the object.
    before, after = (part.replace(_SUBJECT, subject) for part in template.split(_OBJECT))
    space = " " * before.endswith(" ")
    return Item(
        id=name,
        kind="contexts",
        paradigm=_text(row, "relation", template),
        texts={"object": (before.rstrip(" "), space + answer, after)},
        target=1,
        answers=("object",),
        cluster=subject,
    )


def _text(row: Row, name: str, otherwise: str | None = None) -> str:
    """The text in a column, without spaces around it.

    Raises:
        ValueError: it is empty or not text, and there is no `otherwise`.
    """
    value = row.get(name)
    text = value.strip() if isinstance(value, str) else ""
    if text:
        return text
    if otherwise is not None and value in (None, ""):
        return otherwise
    raise ValueError(f"{name} is empty or not text")
