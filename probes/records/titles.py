"""The names of models and corpora in tables, and the marks of tasks."""

from __future__ import annotations

from probes.records.record import Record

TREES = "trees not UD"
"""The mark of what depends on trees of another scheme."""


def model_title(record: Record) -> str:
    """A model's name, and the type that it ran in if not in float32: ``gpt2 (bfloat16)``."""
    return record.model.name + f" ({record.dtype})" * (record.dtype != "float32")


def task_marks(record: Record) -> list[str]:
    """What a reader has to know of a task's numbers: the view, silver labels, other trees."""
    assert record.task is not None
    other_trees = record.corpus.other_trees and "heads" in record.task.needs
    marks = {record.view: record.view != "plain", "silver": record.silver}
    return [mark for mark, holds in (marks | {TREES: other_trees}).items() if holds]


def short_digest(digest: str, length: int = 8) -> str:
    """The beginning of a SHA-256; with its kind before it, none reads as a number, as 12345e67."""
    return f"sha256:{digest[:length]}"


def limit_of(record: Record) -> int | None:
    """How many sentences of each split were used; None for all."""
    return record.corpus.limit if record.corpus.limited else None


def limit_mark(record: Record) -> str:
    """The suffix of a corpus's name if only a part of it was used."""
    limit = limit_of(record)
    return "" if limit is None else f", limit {limit}"


def subject_title(record: Record) -> str:
    """What a table of one model and corpus is about: ``gpt2 (bfloat16) · ewt, limit 400``."""
    return f"{model_title(record)} · {record.corpus.name}{limit_mark(record)}"


def corpus_title(record: Record) -> str:
    """Name and version of a corpus, and its limit if it has one: ``ewt r2.16, limit 400``."""
    corpus = record.corpus
    return f"{corpus.name} {corpus.version}".strip() + limit_mark(record)
