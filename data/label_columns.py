"""Labelled tables: inferring what a label column contains, and turning rows into sentences."""

from __future__ import annotations

import csv
import io
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from probes.common.errors import UserError, counted
from probes.common.files import read_text
from probes.data.chunk_schemes import scheme_of
from probes.data.sentence import LARGEST_LABEL, Label, Sentence, bare, interned
from probes.data.sources import LabelColumn
from probes.data.treebank import UNKNOWN_LANGUAGE

IGNORED = -100
"""The label that training code ignores; treated as missing."""

UNEVEN = 1.5
"""Classes are uneven if the largest has more than so many times its even share."""

_MOST_CLASSES = 20
"""Whole floats of more values are taken as amounts."""

_DECIMAL = re.compile(r"[-+]?(\d+\.\d*|\.\d+|\d+(?=[eE]))([eE][-+]?\d+)?")
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
_LIST_AS_TEXT = re.compile(
    r"([a-z_.]+\(\s*)?\[([^\[\]]*|\s*[\[(].*[\])]\s*)\](,.*)?\)?"
    r"|\([^()]*,[^()]*\)|\{[^{}]*,[^{}]*\}",
    re.S,
)
"""``[1 0]``, ``[[1], [0]]``, ``array([1, 0])``, ``(1, 0)``, ``{1, 0}``; not ``[CLS] a b [SEP]``."""


_QUOTED, _MARK = re.compile(r'(?:^|(?<=[,\n]))"((?:[^"]|"")*)"'), "\ue000"
"""A quoted cell of CSV, and what marks it."""

_NO_DOCUMENT = frozenset(("nan", "nat", "none", "null", "<na>"))
"""How nothing is written, in lower case."""


@dataclass(frozen=True)
class TableRows:
    """The columns of a table that are needed.

    Attributes:
        place: name of the table in error messages.
        splits: split of each row.
        values: `tokens` or the texts, and the label columns, by name; class numbers replaced by
            class names.
        documents: document of each row, empty where none is named.
        lines: line number of each row; empty if rows are not lines.
        space_separated: whether a cell is a string with tokens, or labels, separated by spaces.
        text: name of the column of texts; empty if rows have tokens.
    """

    place: str
    splits: Sequence[str]
    values: Mapping[str, Sequence[Any]]
    documents: list[str]
    lines: Sequence[int]
    space_separated: bool
    text: str = ""

    def where(self, row: int) -> str:
        """The place of a row in the table."""
        return f"line {self.lines[row]}" if self.lines else f"row {row + 1}"

    def error(self, row: int, message: str) -> UserError:
        """An error that names the table and the row."""
        return UserError(f"{self.place}, {self.where(row)}: {message}")

    @cached_property
    def words(self) -> list[list[str]]:
        """The words of each row, or its text.

        Raises:
            UserError: the tokens are not a list of strings, or one is blank; or there is no text.
        """
        name = self.text or "tokens"
        read = self._text if self.text else self._tokens
        found = [read(row, value) for row, value in enumerate(self.values[name])]
        for row, words in enumerate(found):
            text = "".join(words)
            try:
                text.encode()
            except UnicodeEncodeError as error:
                odd = f"{text[error.start]!a}, half of a surrogate pair"
                message = f"{name} has {odd}, which is no character; remove it."
                raise self.error(row, message) from error
        return found

    def _tokens(self, row: int, value: Any) -> list[str]:
        if self.space_separated:
            value = _words(value)
        if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
            raise self.error(row, f"tokens is not a list of strings: {_short(value)}.")
        for i, word in enumerate(value):
            if not bare(word):
                raise self.error(row, f"token {i + 1} is empty; remove it and its label.")
        return value

    def _text(self, row: int, value: Any) -> list[str]:
        if value is None or (isinstance(value, str) and not bare(value)):
            raise self.error(row, f"{self.text} is empty; remove the row.")
        if not isinstance(value, str):
            raise self.error(row, f"{self.text} is not a text: {_short(value)}; correct the row.")
        return [value]

    def require_distinct(self, ids: Sequence[Any]) -> None:
        """Check that no two rows have the same id; missing ones are no ids.

        Raises:
            UserError: two have.
        """
        first: dict[str, int] = {}
        for row, name in enumerate(map(document_of, ids)):
            if name and first.setdefault(name, row) != row:
                other, remedy = self.where(first[name]), "remove one, or rename the column"
                raise self.error(row, f"the id {_short(name)} is that of {other} too; {remedy}.")

    def require_no_list_as_text(self, name: str) -> None:
        """Check that a column does not hold lists that were written as text.

        Raises:
            UserError: most of its texts are.
        """
        texts = [(row, v) for row, v in enumerate(self.values[name]) if isinstance(v, str) and v]
        lists = [(row, text) for row, text in texts if _LIST_AS_TEXT.fullmatch(text.strip())]
        if 2 * len(lists) > len(texts):
            row, text = lists[0]
            remedy = "save as JSON Lines or Parquet" if self.space_separated else "write a list"
            raise self.error(row, f"{name} is a list written as text: {_short(text)}; {remedy}.")

    def labels(self, row: int, name: str, per_word: bool) -> list[Any]:
        """The labels of a row, one per word or a single one; None for a missing label.

        Raises:
            UserError: their number differs from that of the words, or one is a list or an object.
        """
        value, n = self.values[name][row], len(self.words[row])
        if self.text and str(value).strip().lower() == "nan":
            remedy = "correct it, or leave it empty if the text has no label"
            raise self.error(row, f"{name} is NaN; {remedy}.")
        if not per_word:
            value = [value]
        elif self.space_separated:
            value = _words(value)
        elif value is None:
            value = [None] * n
        if not isinstance(value, list):
            what = f"{name} is not a list of labels as in other rows: {_short(value)}."
            raise self.error(row, what)
        if per_word and len(value) != n:
            raise self.error(row, f"{n} tokens, but {len(value)} labels in {name}.")
        for label in value:
            if isinstance(label, list) and len(label) == 1:
                one = f"{name} is a list, {_short(label)}; write {label[0]!r} alone."
                raise self.error(row, one)
            if isinstance(label, (list, dict)):
                what = f"{name} contains {_short(label)}, which cannot be a label."
                raise self.error(row, what)
        return [None if _is_missing(label, self.space_separated) else label for label in value]


def _words(cell: str) -> list[str]:
    # Not str.split(): a no-break space is part of a word.
    return [word for word in re.split(r"[ \t\r\n]+", cell) if word]


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"


def infer_column(rows: Sequence[TableRows], name: str) -> LabelColumn:
    """Infer from all rows what a label column contains.

    Raises:
        UserError: the rows are inconsistent, or there is no label.
    """
    for part in rows:
        if not part.text:
            part.require_no_list_as_text("tokens")
        part.require_no_list_as_text(name)
    texts = bool(rows[0].text)
    words = not texts and _per_word(rows, name)
    shape: Literal["word", "sentence", "text"]
    shape = "text" if texts else "word" if words else "sentence"
    labels = [
        (part, row, label)
        for part in rows
        for row in range(len(part.splits))
        for label in part.labels(row, name, words)
        if label is not None
    ]
    if not labels:
        flag = "--label" if texts else "--task-from"
        raise UserError(f"{flag} {name}: {rows[0].place} has no label.")
    if _numbers([label for _, _, label in labels]):
        for part, row, label in labels:
            if not _is_number(label):
                raise part.error(row, f"{name} is {_short(label)}, but other rows have numbers.")
            if not abs(float(label)) <= LARGEST_LABEL:
                limit = f"out of range; rescale it to at most {LARGEST_LABEL:g}."
                raise part.error(row, f"{name} is {_short(label)}, which is {limit}")
        return LabelColumn(name, shape, "regression")
    scheme = scheme_of({str(label) for _, _, label in labels}) if words else None
    counts = Counter(str(label) for _, _, label in labels)
    uneven = texts and max(counts.values()) > UNEVEN * len(labels) / len(counts)
    return LabelColumn(name, shape, "classification", scheme, uneven)


def classes_of_floats(rows: Sequence[TableRows], name: str) -> list[TableRows]:
    """The rows with classes for whole floats; empty if the column has other labels.

    Where a label is missing, pandas turns the classes 0 and 1 into 0.0 and 1.0.
    """
    every = [value for part in rows for value in part.values[name]]
    there = [value for value in every if not _is_missing(value, True)]
    if len(there) == len(every) or not all(map(_is_whole_float, there)):
        return []
    if not 0 < len(set(map(float, there))) <= _MOST_CLASSES:
        return []

    def named(value: Any) -> Any:
        return str(int(float(value))) if _is_whole_float(value) else value

    return [
        replace(part, values={**part.values, name: list(map(named, part.values[name]))})
        for part in rows
    ]


def _is_whole_float(label: object) -> bool:
    text = str(label).strip()
    as_float = isinstance(label, (str, float)) and bool(_DECIMAL.fullmatch(text))
    return as_float and float(text).is_integer()


def _is_number(label: object) -> bool:
    if isinstance(label, str):
        return bool(_NUMBER.fullmatch(label.strip()))
    return isinstance(label, (int, float)) and not isinstance(label, bool)


def _numbers(labels: Sequence[object]) -> bool:
    """Whether labels are numbers: most have a decimal point. Integers alone are classes."""
    decimal = sum(
        isinstance(x, float) or (isinstance(x, str) and bool(_DECIMAL.fullmatch(x.strip())))
        for x in labels
    )
    every = all(map(_is_number, labels))
    return decimal > 0 and (every or 2 * decimal > len(labels))


def _per_word(rows: Sequence[TableRows], name: str) -> bool:
    """Whether the column has a label per word."""
    if any(isinstance(v, list) for part in rows for v in part.values[name]):
        return True
    # A cell of CSV is one string; the majority of rows with several words decides.
    several: Counter[bool] = Counter()
    for part in rows:
        for row, value in enumerate(part.values[name]) if part.space_separated else ():
            if (n := len(part.words[row])) > 1:
                several[len(_words(value)) == n] += 1
    return several[True] > several[False]


def _is_missing(label: object, text: bool) -> bool:
    """Whether a label is missing; with `text`, numbers are given as strings."""
    if isinstance(label, float) and math.isnan(label):
        return True
    if text and isinstance(label, str):
        return label.strip().lower() in ("", "nan", str(IGNORED))
    return label is None or label == "" or (label == IGNORED and not isinstance(label, str))


def drop_missing_of_r(table: dict[str, list[Any]], path: Path) -> int:
    """Empty the cells of a CSV file's table that R left as NA; returns how many there were.

    R quotes texts, but not this NA: one that stands alone among numbers or quoted texts is no text.
    In a column of unquoted texts, NA is one of them (Namibia).
    """
    if not any("NA" in column for column in table.values()):
        return 0
    # The table does not tell which cells were quoted.
    marked = _QUOTED.sub(rf'"{_MARK}\1"', read_text(path))
    _, *rows = (row for row in csv.reader(io.StringIO(marked, newline="")) if row)
    dropped = 0
    for (name, column), cells in zip(table.items(), zip(*rows, strict=True), strict=True):
        others = [cell for cell in cells if cell not in ("", "NA")]
        plain = all(cell.startswith(_MARK) or _is_number(cell) for cell in others)
        if others and plain and "NA" in cells:
            dropped += cells.count("NA")
            table[name] = [
                "" if cell == "NA" else value for cell, value in zip(cells, column, strict=True)
            ]
    return dropped


def document_of(value: object) -> str:
    """The name of a row's document; empty for null, NaN and blank values, which name none."""
    name = "" if value is None else str(value).strip()
    return "" if name.lower() in _NO_DOCUMENT else name


def read_rows(
    rows: Sequence[TableRows], columns: Mapping[str, LabelColumn]
) -> tuple[dict[str, list[Sentence]], dict[str, int]]:
    """The sentences of every split, and counts of what was left out or changed.

    Raises:
        UserError: see `infer_column`.
    """
    parts: dict[str, list[Sentence]] = defaultdict(list)
    notes: Counter[str] = Counter()
    for part in rows:
        if any(part.documents):
            notes["rows that name no document"] += part.documents.count("")
        for row, split in enumerate(part.splits):
            words = part.words[row]
            if not words:
                notes["rows without tokens, left out"] += 1
                continue
            values = {}
            for name, column in columns.items():
                convert = float if column.kind == "regression" else str
                raw = part.labels(row, name, column.shape == "word")
                labels = tuple(None if label is None else convert(label) for label in raw)
                if scheme := column.scheme:
                    tags, strays = scheme.as_bio([None if x is None else str(x) for x in labels])
                    notes[f"{name}: tags that continue no chunk, read as beginnings"] += strays
                    labels = labels if scheme.is_bio else tuple(tags)
                values[column.layer] = labels
            parts[split].append(
                Sentence(
                    id=f"{split}-{len(parts[split]) + 1}",
                    language=UNKNOWN_LANGUAGE,
                    words=tuple(words) if part.text else interned(words),
                    columns=values,
                    document=part.documents[row],
                    whole=bool(part.text),
                )
            )
    return dict(parts), {what: n for what, n in notes.items() if n}


def require_shared_labels(
    splits: Mapping[str, Sequence[Sentence]], columns: Iterable[LabelColumn], what: str
) -> None:
    """Check that no class of texts occurs in one split alone, to be learnt or tested but not both.

    Args:
        what: name of the corpus in error messages.

    Raises:
        UserError: one does.
    """
    for column in (x for x in columns if x.kind == "classification"):
        found: dict[Label, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        for split, sentences in splits.items():
            for sentence in sentences:
                (label,) = sentence.layer(column.layer)
                found[label][split].append(sentence.id)
        alone = [x for x, places in found.items() if x is not None and len(places) == 1]
        if alone:
            ((split, ids),) = found[alone[0]].items()
            raise UserError(
                f"{what}: labels of {column.name} that occur in one split alone: {len(alone)} of "
                f"{len(found.keys() - {None})}, such as {_short(alone[0])} in {split} "
                f"({counted(len(ids), 'text')}, first row {ids[0].rpartition('-')[2]}); merge or "
                "remove rare labels, or shuffle rows that are sorted."
            )
