"""Rows of labelled tables → sentences: what a label column holds, and what is wrong with it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from common.errors import UserError
from data.bio import is_bio, misplaced
from data.sentence import Sentence
from data.sources import Column
from data.treebank import UNKNOWN_LANGUAGE


@dataclass(frozen=True)
class Rows:
    """The columns of one table that are needed.

    Attributes:
        place: what an error calls the table.
        splits: split of each row.
        values: `tokens` and the label columns, by name; classes by their names.
        documents: document of each row; empty if the table does not say.
        lines: line number of each row; empty where rows are not lines.
        spaced: whether tokens and their labels are one text, with spaces between them.
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
        if self.spaced and isinstance(value, str):
            return value.split()
        if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
            raise self.error(row, f"tokens is no list of words: {_short(value)}.")
        for i, word in enumerate(value):
            if not word.strip():
                raise self.error(row, f"token {i + 1} is empty; take it out, with its label.")
        return value


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"


def understand(rows: Sequence[Rows], column: str) -> Column:
    """What a label column holds, told by all its rows.

    Raises:
        UserError: the rows do not agree, or there is no label.
    """
    words = _per_word(rows, column)
    labels: list[Any] = []
    for part in rows:
        for row in range(len(part.splits)):
            labels.extend(_labels(part, row, column, words))
    if not labels:
        raise UserError(f"--task-from {column}: {rows[0].place} holds no label.")
    shape: Literal["word", "sentence"] = "word" if words else "sentence"
    if all(isinstance(label, float) for label in labels):
        return Column(shape, "regression")
    tags = {str(label) for label in labels}
    chunks = words and all(map(is_bio, tags)) and any(tag != "O" for tag in tags)
    return Column(shape, "classification", chunks)


def _per_word(rows: Sequence[Rows], column: str) -> bool:
    """Whether the column holds a label for each word."""
    if not rows[0].spaced:
        return any(isinstance(v, list) for part in rows for v in part.values[column])
    # A cell of CSV is one text; what most of the longer rows do decides, the others are errors.
    votes: Counter[bool] = Counter()
    for part in rows:
        for row, value in enumerate(part.values[column]):
            if (n := len(part.tokens(row))) > 1:
                votes[len(str(value).split()) == n] += 1
    return votes[True] > votes[False]


def _labels(part: Rows, row: int, column: str, words: bool) -> tuple[str | float, ...]:
    """The labels of one row: one for each word, or one alone.

    Raises:
        UserError: there is none, or not one for each word.
    """
    value, tokens = part.values[column][row], part.tokens(row)
    if part.spaced and words:
        value = str(value).split()
    if not words:
        value = [value]
    if not isinstance(value, list):
        raise part.error(row, f"{column} is no list of labels, as in other rows: {_short(value)}.")
    if words and len(value) != len(tokens):
        raise part.error(row, f"{len(tokens)} tokens, but {len(value)} labels in {column}.")
    for label in value:
        if label is None or label == "" or label != label or isinstance(label, (list, dict)):
            raise part.error(row, f"{column} holds no label: {_short(label)}.")
    return tuple(label if isinstance(label, float) else str(label) for label in value)


def read_rows(
    rows: Sequence[Rows], columns: Mapping[str, Column]
) -> tuple[dict[str, list[Sentence]], dict[str, int]]:
    """The sentences of every split, and what was counted on the way.

    Raises:
        UserError: a column holds texts and numbers.
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
                labels = _labels(part, row, name, column.shape == "word")
                if column.kind == "classification":
                    labels = tuple(map(str, labels))
                if column.chunks:
                    notes[f"{name}: I- tags that continue nothing, read as beginnings"] += len(
                        misplaced([str(label) for label in labels])
                    )
                values[name] = labels
            parts[split].append(
                Sentence(
                    id=f"{split}-{len(parts[split]) + 1}",
                    language=UNKNOWN_LANGUAGE,
                    words=tuple(tokens),
                    columns=values,
                    document=part.documents[row] if part.documents else "",
                )
            )
    return dict(parts), {what: n for what, n in notes.items() if n}
