"""Views as data: how a measurement's rows and arrays are shown in tables and charts.

A view is given the long frame of one record, or the findings of several models, and chooses from
them. Views of one measurement are its attribute `views`; without any, it has one table of
everything by layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from probes.measurements.pivots import Pivot
from probes.records.charts import Chart
from probes.records.table import Table

if TYPE_CHECKING:
    import pandas as pd

    from probes.measurements.frame import Findings


class ChartView(Protocol):
    """What makes a chart; any class of this shape will do."""

    @property
    def name(self) -> str:
        """By which `python -m probes figure` draws it: letters and underscores."""

    def chart(self, found: Findings) -> Chart:
        """The chart, with a part for each model."""


AnyView = Pivot | ChartView


def tables(
    views: Sequence[AnyView], frame: pd.DataFrame, title: str, notes: Sequence[str] = ()
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


def charts(views: Sequence[AnyView], found: Findings) -> list[Chart]:
    """The charts among views."""
    return [view.chart(found) for view in views if not isinstance(view, Pivot)]
