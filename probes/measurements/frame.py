"""The long frame: the rows of any number of records, with what their headers say.

Every column is declared here with its type, but for further axes, which measurements name.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import repeat
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from probes.common.errors import UserError
from probes.common.terminal import progress
from probes.examples.scoring import control_metric
from probes.measurements.definitions import definitions
from probes.measurements.joined_results import as_result, require_possible, subject
from probes.measurements.plugin_keys import in_words
from probes.records.files import Arrays, read_arrays, unreadable
from probes.records.record import Record, fullness, limit_of, short_digest, task_marks
from probes.records.result import SCORES, Result
from probes.records.row import HEADER, Place, Row

TEXT = pd.Series(["text"]).dtype
WHOLE, NUMBER, TRUTH = "Int64", "float64", "boolean"
"""Types of columns. Whole numbers and truth values may be missing."""


class Column(NamedTuple):
    """A column of headers: its type, and its value for a record."""

    kind: Any
    of: Callable[[Any], Any]


OF_ALL = {
    "measurement": Column(TEXT, lambda x: x.measurement),
    "model": Column(TEXT, lambda x: x.model.name),
    "revision": Column(TEXT, lambda x: x.model.revision),
    "random": Column(TRUTH, lambda x: x.model.random_seed is not None),
    "random_seed": Column(WHOLE, lambda x: x.model.random_seed),
    "causal": Column(TRUTH, lambda x: x.model.causal),
    "parameters": Column(WHOLE, lambda x: x.model.parameters),
    "layers": Column(WHOLE, lambda x: x.model.n_layers),
    "hidden_size": Column(WHOLE, lambda x: x.model.hidden_size),
    "corpus": Column(TEXT, lambda x: x.corpus.name),
    "corpus_version": Column(TEXT, lambda x: x.corpus.version),
    "corpus_fingerprint": Column(TEXT, lambda x: short_digest(x.corpus.fingerprint, 16)),
    "limit": Column(WHOLE, limit_of),
    "limited": Column(TRUTH, lambda x: x.corpus.limited),
    "plug_ins": Column(TEXT, lambda x: in_words(x.plug_ins)),
    "pooling": Column(TEXT, lambda x: x.pooling),
    "dtype": Column(TEXT, lambda x: x.dtype),
    "project": Column(WHOLE, lambda x: x.project),
    "view": Column(TEXT, lambda x: x.view),
    "silver": Column(TRUTH, lambda x: x.silver),
    "seconds": Column(NUMBER, lambda x: float(sum(x.seconds.values()))),
    "suite_version": Column(TEXT, lambda x: x.suite_version),
    "full_key": Column(TEXT, lambda x: x.key),
    "key": Column(TEXT, lambda x: short_digest(x.key)),
    # The metric in whose unit differences of scores are; see `Quantity.of_task`.
    "unit": Column(TEXT, lambda x: x.facts.get("unit") or (x.task.metric if x.task else "")),
    "marks": Column(TEXT, lambda x: ", ".join(task_marks(x))),
    "n_measured": Column(WHOLE, lambda x: fullness(x.extent)[0]),
    "n_fits": Column(WHOLE, lambda x: fullness(x.extent)[1]),
    # Equal for scores and the evidence behind them.
    "subject": Column(TEXT, lambda x: json.dumps(subject(x))),
    "definitions": Column(TEXT, lambda x: json.dumps(definitions(x))),
}
"""Columns of every header."""

OF_TASKS = {
    "task": Column(TEXT, lambda x: x.task.name),
    "task_version": Column(WHOLE, lambda x: x.task.version),
    "task_metric": Column(TEXT, lambda x: x.task.metric),
    "probe": Column(TEXT, lambda x: x.probe.family),
    "probe_spec": Column(TEXT, lambda x: short_digest(x.probe.digest)),
    "probe_hidden": Column(WHOLE, lambda x: x.probe.hidden),
}
"""Further columns, missing where there is no task."""

OF_SCORES = {
    "resampled": Column(TEXT, lambda x: x.examples.resampled),
    "control_metric": Column(
        TEXT,
        lambda x: control_metric(x.task.kind, x.task.metric) if x.examples.typed else None,
    ),
    "n_train": Column(WHOLE, lambda x: x.examples.n["train"]),
    "n_dev": Column(WHOLE, lambda x: x.examples.n["dev"]),
    "n_test": Column(WHOLE, lambda x: x.examples.n["test"]),
    "probe_parameters": Column(WHOLE, lambda x: int(x.facts["probe_parameters"])),
}
"""Further columns of scores."""

HEADER_KINDS = {name: x.kind for name, x in (OF_ALL | OF_TASKS | OF_SCORES).items()}

ROW_KINDS = {
    "metric": TEXT,
    "value": NUMBER,
    "layer": WHOLE,
    "low": NUMBER,
    "high": NUMBER,
    "split": TEXT,
    "n": WHOLE,
    "p": NUMBER,
    "why": TEXT,
    # Further axes as JSON, such as {"head": 3}; empty if there are none.
    "axes": TEXT,
    # How often the layer was measured.
    "fits": WHOLE,
}

FILE_KINDS = {"path": TEXT, "changed": WHOLE, "size": WHOLE}
"""Columns on a record's file. Rows have its path, which says whose they are."""

File = tuple[str, int | None, int | None]
"""Path, time of change and size."""


class Frame(NamedTuple):
    """Any number of records as two tables, which together are one long frame.

    Attributes:
        headers: a line per record, with the columns `FILE_KINDS` and `HEADER_KINDS`.
        rows: a line per number, with `path` and the columns `ROW_KINDS`.
    """

    headers: pd.DataFrame
    rows: pd.DataFrame

    def long(self, chosen: Any, columns: Iterable[str]) -> pd.DataFrame:
        """The rows of the chosen records, in the order of headers, with columns of headers."""
        headers: pd.DataFrame = self.headers.loc[chosen, ["path", *columns]]
        return headers.merge(self.rows, on="path")


def checked(record: Record, path: Path) -> Record:
    """A record that can be one of its measurement; one of scores as a `Result`.

    Raises:
        UserError: it cannot.
    """
    if record.measurement == SCORES:
        record = as_result(record, path)
    else:
        require_possible(record, path)
    columns = _columns_of(record).items()
    whole = [(name, [x.of(record)]) for name, x in columns if x.kind == WHOLE]
    whole += [("layer", [*record.rows.layer]), ("n", [*record.rows.n])]
    for name, values in (*whole, ("extent", [*record.extent.values()])):
        if beyond := [x for x in values if x is not None and abs(x) >= 1 << 63]:
            raise unreadable(path, ValueError(f"{name} is {beyond[0]}"))
    return record


def numbered(records: Iterable[Record]) -> dict[File, Record]:
    """Records without files, by their numbers."""
    return {(str(i), None, None): record for i, record in enumerate(records)}


def frame_of(
    records: Mapping[File, Record],
    header: Collection[str] = HEADER_KINDS.keys(),
) -> Frame:
    """The frame of records that were `checked`.

    Args:
        records: by their files.
        header: columns of headers, if not all.
    """
    headers: dict[str, list[Any]] = {name: [] for name in (*FILE_KINDS, *header)}
    columns: dict[str, list[Any]] = {name: [] for name in ("path", *ROW_KINDS)}
    for file, record in records.items():
        for name, known in zip(FILE_KINDS, file, strict=True):
            headers[name].append(known)
        known_columns = _columns_of(record)
        for name in header:
            column = known_columns.get(name)
            headers[name].append(column and column.of(record))
        rows = record.rows
        for name in Row._fields[:-1]:
            columns[name] += getattr(rows, name)
        columns["path"] += repeat(file[0], len(rows))
        columns["axes"] += _axes_as_json(record)
        columns["fits"] += [x if x is None else record.extent.get(x) for x in rows.layer]
    return Frame(_typed(headers), _typed(columns))


def _columns_of(record: Record) -> dict[str, Column]:
    """The columns of headers that a record has a value for."""
    of_task = OF_TASKS if record.task else {}
    return OF_ALL | of_task | (OF_SCORES if isinstance(record, Result) else {})


def _typed(columns: Mapping[str, list[Any]]) -> pd.DataFrame:
    kinds = FILE_KINDS | HEADER_KINDS | ROW_KINDS
    return pd.DataFrame({name: pd.Series(x, dtype=kinds[name]) for name, x in columns.items()})


def _axes_as_json(record: Record) -> Iterator[str]:
    """The places of each row on further axes."""
    names, known = record.rows.axes, dict[tuple[object, ...], str]()
    for places in zip(*names.values(), strict=True) if names else repeat((), len(record.rows)):
        # 1 and 1.0 are equal, and different places.
        key = (*places, *map(type, places))
        if key not in known:
            given = {name: x for name, x in zip(names, places, strict=True) if x is not None}
            known[key] = json.dumps(given) if given else ""
        yield known[key]


def axes_of(rows: pd.DataFrame) -> dict[str, dict[str, Place]]:
    """The places that every distinct text in the column `axes` stands for."""
    return {text: json.loads(text) if text else {} for text in rows["axes"].unique()}


@dataclass(frozen=True, eq=False)
class Findings:
    """What charts are made from: records of several models, by label.

    Attributes:
        paths: their files, by label, which have arrays beside them.
        lacking: why others have no record, by label.
    """

    records: Mapping[str, Record]
    paths: Mapping[str, Path] = field(default_factory=dict)
    lacking: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The rows of all."""
        return labelled_frame(self.records)

    @cached_property
    def arrays(self) -> Mapping[str, Arrays]:
        """Arrays by label; those that cannot be read are named in messages."""
        found = {}
        for label, path in self.paths.items():
            if self.records[label].arrays:
                try:
                    found[label] = read_arrays(path)
                except UserError as error:
                    progress.say(f"not drawn: {error}")
        return found


def long_frame(records: Iterable[Record]) -> pd.DataFrame:
    """One row per number, with the columns `HEADER`, those of `Row`, and one for each axis."""
    return labelled_frame(("", record) for record in records)


def labelled_frame(
    records: Mapping[str, Record] | Iterable[tuple[str, Record]],
) -> pd.DataFrame:
    """The long frame of records by label, which names the model; "" keeps its own name."""
    labelled = [*(records.items() if isinstance(records, Mapping) else records)]
    headers, rows = frame_of(numbered(record for _, record in labelled), HEADER)
    names = [label or record.model.name for label, record in labelled]
    frame = headers.assign(model=pd.Series(names, dtype=TEXT))[["path", *HEADER]].merge(rows)
    places = axes_of(frame)
    number = pd.Index([*places]).get_indexer(pd.Index(frame["axes"]))
    axes = {
        name: _column([given.get(name) for given in places.values()])
        .take(number)
        .set_axis(frame.index)
        for name in dict.fromkeys(name for given in places.values() for name in given)
    }
    return frame.drop(columns=["path", "axes", "fits"]).assign(**axes)


def _column(places: list[Any]) -> pd.Series:
    """An axis: whole numbers stay so where a row has no place on it."""
    whole = all(x is None or (isinstance(x, int) and not isinstance(x, bool)) for x in places)
    return pd.Series(places, dtype="Int64" if whole else object)
