"""Views of rows as data: how a measurement's numbers are shown in tables and charts.

A view is given the long frame of one record, or of those of several models or tasks, and chooses
from it. Views of one measurement are its attribute `views`; without any, it has one table of
everything by layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from probes.measurements.chart_views import Cells, Lines
from probes.measurements.pivots import Pivot
from probes.records.charts import Grid
from probes.records.curves import Curves
from probes.records.table import Table

if TYPE_CHECKING:
    import pandas as pd

RowView = Pivot | Lines | Cells


def tables(
    views: Sequence[RowView], frame: pd.DataFrame, title: str, notes: Sequence[str] = ()
) -> list[Table]:
    """The tables among views, each with its notes; the first has those that belong to none."""
    found: list[Table] = []
    for view in views:
        if isinstance(view, Pivot):
            own = notes_of(notes, view.title) if view.title else []
            own += [] if found else notes_of(notes, "")
            found += view.tables(frame, title, own)
    return found


def note_of(title: str, note: str) -> str:
    """A note that stands below the table of this title alone."""
    return f"[{title}] {note}"


def notes_of(notes: Sequence[str], title: str) -> list[str]:
    """The notes that belong to the table of a title; "" for those that belong to none."""
    if not title:
        return [note for note in notes if not note.startswith("[")]
    mark = note_of(title, "")
    return [note.removeprefix(mark) for note in notes if note.startswith(mark)]


def charts(views: Sequence[RowView], frame: pd.DataFrame) -> list[Curves | Grid]:
    """The charts among views."""
    return [view.chart(frame) for view in views if not isinstance(view, Pivot)]
