"""Columns in which records have to be equal to stand together, by purpose.

Two scores can be compared if the same question was put to the same text and was answered by the
same probe; then what differs between them is the model. Every purpose below is a list of columns
of the frame (`probes.frames.header_columns`). Boards, charts and claims group records by
them. Whether two records are of the same measurement is a narrower question: keys answer it, see
`probes.frames.frame.IDENTITY`.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from functools import cache, lru_cache
from glob import escape
from pathlib import Path
from typing import TypeVar

from probes.common.grouping import grouped
from probes.common.terminal import progress
from probes.extraction.models.model_names import is_twin_name
from probes.frames.header_columns import values
from probes.frames.record_status import why_outdated
from probes.frames.record_validation import read_validated
from probes.records.header import ModelRecord
from probes.records.record import Record, short_digest
from probes.records.record_files import file_state, read_records

K = TypeVar("K")
R = TypeVar("R", bound=Record)

SAME_LEADERBOARD = ("limit", "dropped", "text", "probe_digest", "project")
"""Models are ranked on one text by one probe. A model may have several entries that differ in
pooling or precision; the entry's name says which."""

SAME_COLUMN = ("task_version", "task_metric", "task_fpr", "view", "plug_ins")
"""Further columns within one task of a leaderboard."""

SAME_PAIR = (
    *("text", "task_version", "task_metric", "task_fpr", "probe_digest", "plug_ins", "project"),
    "view",
)
"""Two models of one run, on one task with one family of probes. They were fitted or checked by
this version. Whoever has the predictions checks that both were scored on the same examples."""

SAME_CHART = ("corpus", "text", "probe_digest", "pooling", "project")
"""A page or figure has one scale for all models, so their vectors are made alike, too."""

SAME_CURVE = ("task", "task_version", "view", "task_metric", "task_fpr", "silver", "plug_ins")
"""Further columns within one chart."""

SAME_LAYER_TABLE = ("corpus_digest", "pooling", "dtype", "project")
"""One model's layer × task table, with the random twins in it."""

SAME_FLOOR = (
    *SAME_LAYER_TABLE,
    *("task", "task_version", "view", "task_metric", "task_fpr", "plug_ins", "probe_digest"),
)
"""A result and those of its random twins."""

SAME_MEASUREMENT = (
    "measurement",
    "corpus",
    "corpus_version",
    "limit",
    "text",
    "base",
    "pooling",
    "measurement_version",
    "plug_ins",
    "options",
)
"""Models whose records of a measurement of the corpus share tables and charts."""

SAME_TEXT = ("text", "corpus_digest", "pooling", "dtype")
"""A model and its random twin read the same text in the same way."""

SAME_MODEL = ("model", "model_digest")

SAME_VECTORS = (*SAME_MODEL, "corpus_digest", "pooling", "dtype")
"""Claims relate results of one model on several tasks, and measurements of the corpus."""

NAMES = {
    "corpus_digest": "corpus files",
    "dropped": "sentences dropped",
    "text": "corpus text",
    "dtype": "precision",
    "plug_ins": "plug-in source",
    "probe_digest": "probe specification",
    "project": "projection",
    "task_metric": "metric",
    "task_fpr": "false-positive rate of thresholds",
}
"""Columns that reasons call by another name."""


def column_name(column: str) -> str:
    """The name of a column in a reason."""
    return NAMES.get(column, column.replace("_", " "))


def groups_by(records: Mapping[K, R], columns: Sequence[str]) -> list[dict[K, R]]:
    """Groups of records that are equal in some columns, in the order of their first ones."""
    groups = grouped(records.items(), lambda item: values(item[1], columns))
    return [dict(group) for group in groups.values()]


def select_like(records: Mapping[K, R], like: Record, columns: Sequence[str]) -> dict[K, R]:
    """The records that are equal to another one in some columns."""
    same = values(like, columns)
    return {key: record for key, record in records.items() if values(record, columns) == same}


def columns_apart(one: Record, other: Record, columns: Sequence[str]) -> list[str]:
    """The columns in which two records differ."""
    pairs = zip(columns, values(one, columns), values(other, columns), strict=True)
    return [column for column, value, other_value in pairs if value != other_value]


def why_apart(one: Record, other: Record, columns: Sequence[str]) -> str:
    """The columns in which a record differs from another, as text: ``view cut, not plain``."""
    different = columns_apart(one, other, columns)
    texts = [[printed_value(x) for x in values(record, different)] for record in (one, other)]
    return "; ".join(
        f"{column_name(column)} {text}, not {other_text}"
        for column, text, other_text in zip(different, *texts, strict=True)
    )


def printed_value(value: Hashable) -> str:
    """A value in a reason; digests are shortened."""
    if value in (None, ""):
        return "none"
    text = str(value)
    return short_digest(text) if re.fullmatch("[0-9a-f]{64}", text) else text


def twins_of(record: Record, among: Mapping[K, R]) -> dict[K, R]:
    """The records of random twins of a record's model, on the same text.

    A twin has the model's configuration, whatever it is called. One that is called after the model
    counts as well if its configuration is not known, and if there are no others: revisions share
    the twin of the first of them.
    """
    same, config = values(record, SAME_TEXT), record.model.configuration
    twins = {
        k: candidate
        for k, candidate in among.items()
        if _is_twin(candidate.model, record.model) and values(candidate, SAME_TEXT) == same
    }
    exact = {k: x for k, x in twins.items() if not config or x.model.configuration in ("", config)}
    return exact or twins


def twins_beside(record: Record, path: Path, *, same_unit: bool = False) -> dict[Path, Record]:
    """The records of random twins in the folders of other models beside that of a record.

    Args:
        path: of the record.
        same_unit: only of the task and probe family of the scores at `path`.
    """
    folder = path.resolve().parent
    unit = escape(path.name.rpartition("scores-")[0]) if same_unit else ""
    names = f"random*/{escape(folder.name)}/{unit}*-????????.json"
    files = sorted(folder.parents[1].glob(names)) if len(folder.parents) > 1 else []
    records = read_records(files, lambda path: _read_twin(path, file_state(path)))
    for path, twin in twins_of(record, records).items():
        if reason := why_outdated(twin):
            _say_once(f"left out records of a random twin in {path.parent}: {reason}")
            del records[path]
    return twins_of(record, records)


@lru_cache(maxsize=1024)
def _read_twin(path: Path, state: tuple[int, int]) -> Record:
    """A record beside those of many results, which is read once."""
    return read_validated(path)


@cache
def _say_once(message: str) -> None:
    """Every result looks for its twins."""
    progress.say(message)


def _is_twin(model: ModelRecord, of: ModelRecord) -> bool:
    if is_twin_name(model.name, of.name):
        return True
    pretrained, random = of.random_seed is None, model.random_seed is not None
    return pretrained and random and model.configuration == of.configuration != ""
