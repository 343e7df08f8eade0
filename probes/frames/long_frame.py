"""Rows of several records as one frame with a column for each axis, for tables and charts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from probes.common.errors import UserError
from probes.common.terminal import progress
from probes.frames.frame import axes_by_text, frame_of, numbered
from probes.records.record import Record
from probes.records.record_files import Arrays, read_arrays
from probes.records.row import HEADER


@dataclass(frozen=True, eq=False)
class RecordsByModel:
    """Records of several models by label, from which charts are made.

    Attributes:
        paths: their files, by label, which have arrays beside them.
        missing: why others have no record, by label.
    """

    records: Mapping[str, Record]
    paths: Mapping[str, Path] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The rows of all."""
        return labelled_frame(self.records)

    @cached_property
    def arrays(self) -> Mapping[str, Arrays]:
        """Arrays by label; those that cannot be read are named in messages."""
        arrays = {}
        for label, path in self.paths.items():
            if self.records[label].arrays:
                try:
                    arrays[label] = read_arrays(path)
                except UserError as error:
                    progress.say(f"not drawn: {error}")
        return arrays


def long_frame(records: Iterable[Record]) -> pd.DataFrame:
    """One row per number, with the columns `HEADER`, those of `Row`, and one for each axis."""
    return labelled_frame(("", record) for record in records)


def labelled_frame(records: Mapping[str, Record] | Iterable[tuple[str, Record]]) -> pd.DataFrame:
    """The long frame of records by label, which names the model; "" keeps its own name."""
    labelled = [*(records.items() if isinstance(records, Mapping) else records)]
    record_frame = frame_of(numbered(record for _, record in labelled), HEADER)
    names = [label or record.model.name for label, record in labelled]
    model = pd.Series(names, dtype=record_frame.headers["model"].dtype)
    # Rows have the order of records, so that nothing has to be looked up.
    of_row = np.repeat(np.arange(len(labelled)), [len(record.rows) for _, record in labelled])
    headers = record_frame.headers.assign(model=model)[[*HEADER]].take(of_row)
    rows = record_frame.rows.drop(columns=["path", "fits"])
    frame = pd.concat([headers.set_axis(rows.index), rows], axis=1)
    by_text = axes_by_text(frame)
    number = pd.Index([*by_text]).get_indexer(pd.Index(frame["axes"]))
    axes = {
        name: _axis_column([x.get(name) for x in by_text.values()])
        .take(number)
        .set_axis(frame.index)
        for name in dict.fromkeys(name for x in by_text.values() for name in x)
    }
    return frame.drop(columns="axes").assign(**axes)


def _axis_column(values: list[Any]) -> pd.Series:
    """A column of one axis, of whole numbers even where some rows have no value on it."""
    is_whole = all(x is None or (isinstance(x, int) and not isinstance(x, bool)) for x in values)
    return pd.Series(values, dtype="Int64" if is_whole else object)
