"""Rows of labelled tables → sentences: what a label column holds, and what is wrong with it."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from probes.common.errors import UserError
from probes.data.bio import is_bio, misplaced
from probes.data.sentence import LARGEST, Label, Sentence, shared
from probes.data.sources import Column
from probes.data.treebank import UNKNOWN_LANGUAGE

IGNORED = -100
"""The number that training code passes over; as a label it is none."""

_DECIMAL = re.compile(r"[-+]?(\d+\.\d*|\.\d+|\d+(?=[eE]))([eE][-+]?\d+)?")
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
_LIST_AS_TEXT = re.compile(r"\[\s*['\"].*\]", re.S)


@dataclass(frozen=True)
class Rows:
    """The columns of one table that are needed.

    Attributes:
        place: what an error calls the table.
        splits: split of each row.
        values: `tokens` and the label columns, by name; classes by their names.
        documents: document of each row; empty if the table does not say.
        lines: line number of each row; empty where rows are not lines.
        spaced: whether cells are texts, tokens and their labels with spaces between them.
    """

    place: str
    splits: Sequence[str]
    values: Mapping[str, Sequence[Any]]
    documents: Sequence[str]
    lines: Sequence[int]
    spaced: bool

    def error(self, row: int, message: str) -> UserError:
        """An error that says where it is."""
        where = f"line {self.lines[row]}" if self.lines else f"row {row + 1}"
        return UserError(f"{self.place}, {where}: {message}")

    def tokens(self, row: int) -> list[str]:
        """The words of a row.

        Raises:
            UserError: there is no list of texts, or one is empty.
        """
        value = self.values["tokens"][row]
        if self.spaced:
            if _LIST_AS_TEXT.fullmatch(value):
                raise self.error(
                    row, f"a list written as text: {_short(value)}; save as JSON Lines or Parquet."
                )
            return _words(value)
        if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
            raise self.error(row, f"tokens is no list of words: {_short(value)}.")
        for i, word in enumerate(value):
            if not word.strip():
                raise self.error(row, f"token {i + 1} is empty; take it out, with its label.")
        return value


def _words(cell: str) -> list[str]:
    # Not str.split(): a no-break space stands within a word.
    return [word for word in re.split(r"[ \t\r\n]+", cell) if word]


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"


def understand(rows: Sequence[Rows], name: str) -> Column:
    """What a label column holds, told by all its rows.

    Raises:
        UserError: the rows do not agree, or there is no label.
    """
    words = _per_word(rows, name)
    shape: Literal["word", "sentence"] = "word" if words else "sentence"
    labels: list[tuple[Rows, int, Any]] = []
    for part in rows:
        for row in range(len(part.splits)):
            found = _raw_labels(part, row, name, words)
            labels.extend((part, row, label) for label in found if label is not None)
    if not labels:
        raise UserError(f"--task-from {name}: {rows[0].place} holds no label.")
    if _numbers([label for _, _, label in labels]):
        for part, row, label in labels:
            if not _is_number(label):
                raise part.error(row, f"{name} is {_short(label)}, but a number in other rows.")
            if not abs(float(label)) <= LARGEST:
                limit = f"out of range; scale it to below {LARGEST:g}."
                raise part.error(row, f"{name} is {_short(label)}, which is {limit}")
        return Column(name, shape, "regression")
    tags = {str(label) for _, _, label in labels}
    chunks = words and all(map(is_bio, tags)) and any(tag != "O" for tag in tags)
    return Column(name, shape, "classification", chunks)


def _is_number(label: object) -> bool:
    if isinstance(label, str):
        return bool(_NUMBER.fullmatch(label.strip()))
    return isinstance(label, (int, float)) and not isinstance(label, bool)


def _numbers(labels: Sequence[object]) -> bool:
    """Whether labels are numbers: most have a decimal point. Whole numbers alone are classes."""
    decimal = sum(
        isinstance(x, float) or (isinstance(x, str) and bool(_DECIMAL.fullmatch(x.strip())))
        for x in labels
    )
    every = all(map(_is_number, labels))
    return decimal > 0 and (every or 2 * decimal > len(labels))


def _per_word(rows: Sequence[Rows], name: str) -> bool:
    """Whether the column holds a label for each word.

    Raises:
        UserError: labels of words seem to stand with commas between them.
    """
    if not rows[0].spaced:
        return any(isinstance(v, list) for part in rows for v in part.values[name])
    # A cell of CSV is one text; what most of the longer rows do decides, the others are errors.
    by_space: Counter[bool] = Counter()
    by_comma: Counter[bool] = Counter()
    for part in rows:
        for row, value in enumerate(part.values[name]):
            if (n := len(part.tokens(row))) > 1:
                by_space[len(_words(value)) == n] += 1
                by_comma[len(re.split(r"[,;|]\s*", value)) == n] += 1
    if by_comma[True] > by_comma[False]:
        raise UserError(
            f"{rows[0].place}: the labels of words in {name} must stand with spaces between them."
        )
    return by_space[True] > by_space[False]


def _raw_labels(part: Rows, row: int, name: str, words: bool) -> list[Any]:
    """The labels of one row, one for each word or one alone; None for one that is not given.

    Raises:
        UserError: there is not one for each word, or one is no label.
    """
    value, tokens = part.values[name][row], part.tokens(row)
    if words and part.spaced:
        value = _words(value)
    if words and value is None:
        value = [None] * len(tokens)
    if not words:
        value = [value]
    if not isinstance(value, list):
        raise part.error(row, f"{name} is no list of labels, as in other rows: {_short(value)}.")
    if words and len(value) != len(tokens):
        raise part.error(row, f"{len(tokens)} tokens, but {len(value)} labels in {name}.")
    for label in value:
        if isinstance(label, (list, dict)):
            raise part.error(row, f"{name} holds no label: {_short(label)}.")
    return [None if _is_missing(label, part.spaced) else label for label in value]


def _is_missing(label: object, text: bool) -> bool:
    """Whether a label is none; `text`: whether numbers, too, are given as texts."""
    if isinstance(label, float) and math.isnan(label):
        return True
    if text and isinstance(label, str):
        return label.strip().lower() in ("", "nan", str(IGNORED))
    return label is None or label == "" or (label == IGNORED and not isinstance(label, str))


def read_rows(
    rows: Sequence[Rows], columns: Mapping[str, Column]
) -> tuple[dict[str, list[Sentence]], dict[str, int]]:
    """The sentences of every split, and what was counted on the way.

    Raises:
        UserError: see `understand`.
    """
    parts: dict[str, list[Sentence]] = defaultdict(list)
    notes: Counter[str] = Counter()
    for part in rows:
        for row, split in enumerate(part.splits):
            tokens = part.tokens(row)
            if not tokens:
                notes["rows without tokens, left out"] += 1
                continue
            values = {}
            for name, column in columns.items():
                labels = _labels(_raw_labels(part, row, name, column.shape == "word"), column)
                if column.chunks:
                    tags = [str(label or "O") for label in labels]
                    what = f"{name}: I- tags that continue nothing, read as beginnings"
                    notes[what] += len(misplaced(tags))
                values[column.layer] = labels
            parts[split].append(
                Sentence(
                    id=f"{split}-{len(parts[split]) + 1}",
                    language=UNKNOWN_LANGUAGE,
                    words=shared(tokens),
                    columns=values,
                    document=part.documents[row] if part.documents else "",
                )
            )
    return dict(parts), {what: n for what, n in notes.items() if n}


def _labels(raw: Sequence[Any], column: Column) -> tuple[Label, ...]:
    convert = float if column.kind == "regression" else str
    return tuple(None if label is None else convert(label) for label in raw)
