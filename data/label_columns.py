"""Labelled tables: inferring what a label column contains, and turning rows into sentences."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Literal

from probes.common.errors import UserError, counted
from probes.common.terminal import progress
from probes.data.chunk_schemes import Scheme, scheme_of
from probes.data.sentence import LARGEST_LABEL, Label, Sentence, bare, interned
from probes.data.sources import LabelColumn
from probes.data.treebank import UNKNOWN_LANGUAGE

IGNORED = -100
"""The label that training code ignores; treated as missing."""

UNEVEN = 1.5
"""Classes are uneven if the largest has more than so many times its even share."""

MOST_CLASSES = 20
"""Largest number of classes that whole floats may stand for; with more they are amounts."""

_DECIMAL = re.compile(r"[-+]?(\d+\.\d*|\.\d+|\d+(?=[eE]))([eE][-+]?\d+)?")
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
_COMMA = re.compile(r"[-+]?[\d.,]*,\d[\d.,]*([eE][-+]?\d+)?")
_LIST_AS_TEXT = re.compile(
    r"([a-z_.]+\(\s*)?\[([^\[\]]*|\s*[\[(].*[\])]\s*)\](,.*)?\)?"
    r"|\([^()]*,[^()]*\)|\{[^{}]*,[^{}]*\}",
    re.S,
)
"""``[1 0]``, ``[[1], [0]]``, ``array([1, 0])``, ``(1, 0)``, ``{1, 0}``; not ``[CLS] a b [SEP]``."""


STRIPPED = "labels with spaces at their edges, which were removed"

_NO_DOCUMENT = frozenset(("nan", "nat", "none", "null", "<na>"))
"""Cells that name no document, in lower case."""


@dataclass(frozen=True, slots=True)
class LabelledRow:
    """A row of a table.

    Attributes:
        table, where: name of the table and place in it, such as ``line 3``, in error messages.
        split: name of its split.
        document: name of its document; empty if none is named.
        words: its tokens, or its text as the only one.
        labels: values of the label columns by name, with names for class numbers.
    """

    table: str
    where: str
    split: str
    document: str
    words: list[str]
    labels: Mapping[str, Any]

    def error(self, message: str) -> UserError:
        """An error that names the table and the row."""
        return UserError(f"{self.table}, {self.where}: {message}")


@dataclass(frozen=True)
class LabelledRows:
    """The rows of the user's tables, all of one kind.

    Attributes:
        space_separated: whether a cell is a string with tokens, or labels, separated by spaces.
        text: name of the column of texts; empty if rows have tokens.
        chat, special: see `probes.data.sentence.Sentence`.
    """

    rows: list[LabelledRow]
    space_separated: bool
    text: str
    chat: bool = False
    special: bool = False

    def labels(self, row: LabelledRow, name: str, per_word: bool) -> list[Any]:
        """The labels of a row without spaces at their edges; None for a missing label."""
        values = (bare(x) if isinstance(x, str) else x for x in self.values(row, name, per_word))
        as_text, nan = self.space_separated, "nan" if self.text else None
        return [None if _is_missing(x, as_text) or f"{x}".lower() == nan else x for x in values]

    def values(self, row: LabelledRow, name: str, per_word: bool) -> list[Any]:
        """The labels of a row as they are written, one per word or a single one.

        Raises:
            UserError: their number differs from that of the words, or one is a list or an object.
        """
        value, n = row.labels[name], len(row.words)
        if not per_word:
            # doccano writes the only class of a text, or none, as a list.
            is_single = self.text and isinstance(value, list) and len(value) < 2
            value = (value or [None]) if is_single else [value]
        elif self.space_separated:
            value = split_cell(value)
        elif value is None:
            value = [None] * n
        if not isinstance(value, list):
            raise row.error(f"{name} is not a list of labels as in other rows: {_short(value)}.")
        if per_word and len(value) != n:
            raise row.error(f"{n} tokens, but {len(value)} labels in {name}.")
        for label in value:
            first_label = label[0] if isinstance(label, list) and label else None
            if isinstance(label, dict) or isinstance(first_label, (dict, list)):
                raise row.error(
                    f"{name} contains {_short(label)}, which cannot be a label; keep one, or turn "
                    "spans of characters into tokens and tags (docs/corpora.md, Annotation tools)."
                )
            if isinstance(label, list):
                remedy = f"write {first_label!r} alone" if len(label) == 1 else "keep one label"
                raise row.error(f"{name} is a list, {_short(label)}; {remedy}.")
            is_date = type(label).__module__.partition(".")[0] in ("datetime", "pandas")
            if not (label is None or is_date or isinstance(label, (str, int, float, Decimal))):
                kind = type(label).__name__
                raise row.error(f"{name} is {_short(label)}, a {kind}; give text or a number.")
        return value

    def require_no_list_as_text(self, name: str, cells: Iterable[Any]) -> None:
        """Check that the cells of a column are not lists that were written as text.

        Raises:
            UserError: most of its texts are.
        """
        pairs = zip(self.rows, cells, strict=True)
        texts = [(row, cell) for row, cell in pairs if isinstance(cell, str) and cell]
        lists = [(row, text) for row, text in texts if _LIST_AS_TEXT.fullmatch(text.strip())]
        joined = [(row, text) for row, text in texts if _is_joined(text, row.words)]
        # Two words may well have two features, as in Case=Nom|Number=Sing.
        if not lists and (name == "tokens" or len({text.count("|") for _, text in joined}) > 1):
            lists = joined
        if 2 * len(lists) > len(texts):
            row, text = lists[0]
            remedy = "save as JSON Lines or Parquet" if self.space_separated else "write a list"
            raise row.error(f"{name} is a list written as text: {_short(text)}; {remedy}.")


def _is_joined(text: str, words: Sequence[str]) -> bool:
    """Whether words, or labels of these words, are joined by bars, as R's fwrite joins lists."""
    bars = text.count("|")
    n = words[0].count("|") if len(words) == 1 else len(words) - 1
    return bars > 0 and bars == n and not re.search(r"\s|^\||\|$", text)


def words_of(value: Any, text: str, space_separated: bool) -> list[str]:
    """The tokens in a cell, or its text as the only word.

    Args:
        text: name of the column of texts; empty for tokens.

    Raises:
        ValueError: the cell holds no tokens, or no text; a token is blank; or half of a surrogate
            pair is among the characters.
    """
    name = text or "tokens"
    if text:
        if value is None or (isinstance(value, str) and not bare(value)):
            raise ValueError(f"{name} is empty; remove the row.")
        if not isinstance(value, str):
            raise ValueError(f"{name} is not a text: {_short(value)}; correct the row.")
        words = [value]
    else:
        words = split_cell(value) if space_separated else value
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise ValueError(f"tokens is not a list of strings: {_short(value)}.")
        if not all(blank := list(map(bare, words))):
            number = blank.index("") + 1
            raise ValueError(f"token {number} is empty; remove it and its label.")
    if odd := re.search("[\ud800-\udfff]", "".join(words)):
        raise ValueError(
            f"{name} has {odd[0]!a}, half of a surrogate pair, which is no character; remove it."
        )
    return words


def split_cell(cell: str) -> list[str]:
    """The parts of a cell of CSV between spaces; a no-break space is part of a word."""
    return [word for word in re.split(r"[ \t\r\n]+", cell) if word]


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"


def infer_column(
    table: LabelledRows, name: str, warn: Callable[[str], None] = progress.warn
) -> LabelColumn:
    """Infer from all rows what a label column contains.

    Args:
        warn: called with remarks on the labels.

    Raises:
        UserError: the rows are inconsistent, or there is no label.
    """
    texts, rows = bool(table.text), table.rows
    if table.space_separated and not texts:
        table.require_no_list_as_text("tokens", (" ".join(row.words) for row in rows))
    table.require_no_list_as_text(name, (row.labels[name] for row in rows))
    words = not texts and _is_per_word(table, name)
    shape: Literal["word", "sentence", "text"]
    shape = "text" if texts else "word" if words else "sentence"
    row_labels = [(row, table.labels(row, name, words)) for row in rows]
    labels = [(row, label) for row, cell in row_labels for label in cell if label is not None]
    if not labels:
        flag = "--label" if texts else "--task-from"
        raise UserError(f"{flag} {name}: {rows[0].table} has no label.")
    commas = [(row, x) for row, x in labels if isinstance(x, str) and _COMMA.fullmatch(x)]
    # Some classes may have commas; where most labels have one, they are numbers.
    n_other = sum(not _is_number(x) for _, x in labels) - len(commas)
    if commas and (not n_other or 2 * len(commas) > len(labels)):
        row, label = commas[0]
        raise row.error(
            f"{name} is {label!r}, with a comma; write a number with a decimal point (pandas reads "
            "commas by decimal=','), and classes with another sign, such as 1+2."
        )
    if _are_numbers([label for _, label in labels]):
        for row, label in labels:
            if not _is_number(label):
                raise row.error(f"{name} is {_short(label)}, but other rows have numbers.")
            if not abs(float(str(label))) <= LARGEST_LABEL:
                limit = f"out of range; rescale it to at most {LARGEST_LABEL:g}."
                raise row.error(f"{name} is {_short(label)}, which is {limit}")
        return LabelColumn(name, shape, "regression")
    counts = Counter(str(label) for _, label in labels)
    if (n := counts["NA"]) and not words:  # R writes NA for a missing value
        warn(
            f"{name}: {counted(n, 'label')} NA, read as a class; write missing labels as empty "
            "cells"
        )
    scheme = scheme_of(counts) if words else None
    # BIO and IOB1 have the same tags, but in IOB1 a chunk may begin with I.
    if scheme and scheme.is_bio and any(scheme.as_bio(cell)[1] for _, cell in row_labels):
        scheme = Scheme("IOB")
    uneven = texts and max(counts.values()) > UNEVEN * len(labels) / len(counts)
    raw_labels = (x for row in rows for x in table.values(row, name, words))
    stripped = sum(isinstance(x, str) and x != bare(x) for x in raw_labels)
    return LabelColumn(name, shape, "classification", scheme, uneven, stripped=stripped)


def classes_of_floats(table: LabelledRows, name: str) -> LabelledRows | None:
    """The rows with classes for whole floats; None if the column has other labels.

    Where a label is missing, pandas turns the classes 0 and 1 into 0.0 and 1.0.
    """
    cells = [row.labels[name] for row in table.rows]
    labels = [x for cell in cells for x in (cell if isinstance(cell, list) else [cell])]
    present = [x for x in labels if not _is_missing(x, True)]
    # Other splits or files may have no gap, so their classes are integers.
    if len(present) == len(labels) or not all(map(_is_whole, present)) or not _are_numbers(present):
        return None
    if len(set(map(float, present))) > MOST_CLASSES:
        return None

    def class_names(x: Any) -> Any:
        if isinstance(x, list):
            return list(map(class_names, x))
        return str(int(float(x))) if _is_whole(x) else x

    pairs = zip(table.rows, map(class_names, cells), strict=True)
    return replace(table, rows=[replace(x, labels={**x.labels, name: y}) for x, y in pairs])


def _is_whole(label: object) -> bool:
    return _is_number(label) and float(str(label)).is_integer()


def _is_number(label: object) -> bool:
    if isinstance(label, (str, Decimal)):
        return bool(_NUMBER.fullmatch(str(label).strip()))
    return isinstance(label, (int, float)) and not isinstance(label, bool)


def _are_numbers(labels: Sequence[object]) -> bool:
    """Whether labels are numbers: most have a decimal point. Integers alone are classes."""
    decimal = sum(
        isinstance(x, float)
        or (isinstance(x, (str, Decimal)) and bool(_DECIMAL.fullmatch(str(x).strip())))
        for x in labels
    )
    all_numbers = all(map(_is_number, labels))
    return decimal > 0 and (all_numbers or 2 * decimal > len(labels))


def _is_per_word(table: LabelledRows, name: str) -> bool:
    """Whether the column has a label per word."""
    if not table.space_separated:
        return any(isinstance(row.labels[name], list) for row in table.rows)
    # A cell of CSV is one string; the majority of rows with several words decides.
    long_rows = [row for row in table.rows if len(row.words) > 1]
    equal = sum(len(split_cell(row.labels[name])) == len(row.words) for row in long_rows)
    return 2 * equal > len(long_rows)


def _is_missing(label: object, text: bool) -> bool:
    """Whether a label is missing; with `text`, numbers are given as strings."""
    if isinstance(label, float) and math.isnan(label):
        return True
    if text and isinstance(label, str):
        return label.strip().lower() in ("", "nan", str(IGNORED))
    return label is None or label == "" or (isinstance(label, (int, float)) and label == IGNORED)


def document_of(value: object) -> str:
    """The name of a row's document; empty for null, NaN and blank values, which name none."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # the same document as in a table without gaps
    name = "" if value is None else bare(str(value))
    return "" if name.lower() in _NO_DOCUMENT else name


def read_rows(
    table: LabelledRows, columns: Mapping[str, LabelColumn]
) -> tuple[dict[str, list[Sentence]], dict[str, int]]:
    """The sentences of every split, and counts of what was left out or changed."""
    parts: dict[str, list[Sentence]] = defaultdict(list)
    notes: Counter[str] = Counter()
    with_documents = {row.table for row in table.rows if row.document}
    for row in table.rows:
        # A row without a document is odd only if other rows of its table name one.
        notes["rows that name no document"] += not row.document and row.table in with_documents
        if not row.words:
            notes["rows without tokens, left out"] += 1
            continue
        values: dict[str, tuple[Label, ...]] = {}
        for name, column in columns.items():
            convert = float if column.kind == "regression" else str
            raw = table.labels(row, name, column.shape == "word")
            labels = [None if label is None else convert(label) for label in raw]
            if scheme := column.scheme:
                tags, strays = scheme.as_bio([None if x is None else str(x) for x in labels])
                notes[f"{name}: tags that continue no chunk, read as beginnings"] += strays
                labels = [*tags]
            notes[f"{name}: {STRIPPED}"] = column.stripped
            values[column.layer] = tuple(labels)
        parts[row.split].append(
            Sentence(
                id=f"{row.split}-{len(parts[row.split]) + 1}",
                language=UNKNOWN_LANGUAGE,
                words=tuple(row.words) if table.text else interned(map(str, row.words)),
                columns=values,
                document=row.document,
                whole=bool(table.text),
                chat=table.chat,
                special=table.special,
            )
        )
    return dict(parts), {note: n for note, n in notes.items() if n}


def require_shared_labels(
    splits: Mapping[str, Sequence[Sentence]], columns: Iterable[LabelColumn], flag: str
) -> None:
    """Check that no class of texts occurs in one split alone, to be learnt or tested but not both.

    Args:
        flag: how error messages refer to the corpus, e.g. ``--corpus ewt``.

    Raises:
        UserError: one does.
    """
    for column in (x for x in columns if x.kind == "classification"):
        by_label: dict[Label, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        for split, sentences in splits.items():
            for sentence in sentences:
                (label,) = sentence.layer(column.layer)
                by_label[label][split].append(sentence.id)
        lone = [x for x, places in by_label.items() if x is not None and len(places) == 1]
        if lone:
            ((split, ids),) = by_label[lone[0]].items()
            raise UserError(
                f"{flag}: labels of {column.name} that occur in only one split: {len(lone)} of "
                f"{len(by_label.keys() - {None})}, such as {_short(lone[0])} in {split} "
                f"({counted(len(ids), 'text')}, first row {ids[0].rpartition('-')[2]}); merge or "
                "remove rare labels, or shuffle rows that are sorted."
            )
