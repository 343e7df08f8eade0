"""Views that are tables: lines, columns and sections for the rows of a measurement.

A measurement lists its views in `shows`. By default it has one table of everything by layer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from probes.measurements.row_filters import (
    Marks,
    Where,
    axis_names,
    axis_words,
    interval_of_row,
    marks_of,
    metric_heading,
    printed_unit,
    rows_in,
    rows_where,
    worded,
)
from probes.measurements.table_cells import score_cell
from probes.records.result import UNMEASURED
from probes.statistics.metrics import axis_of, label_of, printed_sd, quantity, scale_of
from probes.tables.table import NOTHING, Cell, Table, TableRow, marks_meaning

if TYPE_CHECKING:
    import pandas as pd

    from probes.records.record import Record
    from probes.records.record_files import Arrays
    from probes.tables.charts import Style


Notes = Mapping[str, Sequence[str]]
"""Paragraphs below tables, by the task that they are about; "" for those about none."""

NO_NOTES: Notes = MappingProxyType({})

Key = tuple[Any, ...]
"""Values, one for each axis, that a column of a table stands for."""


@dataclass(frozen=True)
class Section:
    """Further lines at the end of a `Pivot`, such as baselines.

    Attributes:
        name: name of the lines, to which the value is added: ``identity, layer 3``.
        metrics: ``{"chain_uuas": "uuas"}`` puts `chain_uuas` into the column of `uuas`. By default
            the metrics of the table.
        where: see `Pivot`.
    """

    name: str
    metrics: Mapping[str, str] = field(default_factory=dict)
    where: Where = field(default_factory=dict)

    def shown_rows(self, frame: pd.DataFrame, metrics: Sequence[str]) -> pd.DataFrame:
        """Rows of the section, under the metrics in whose columns they stand."""
        rows = rows_where(frame, list(self.metrics) or metrics, self.where)
        return rows.assign(metric=rows["metric"].replace(dict(self.metrics)))


@dataclass(frozen=True)
class Pivot:
    """A table with a line for each layer, or for each value of another axis.

    Numbers without a layer, such as those of the whole model, have lines below. To show several
    metrics of several tasks, give one table for each metric, with ``columns=("task",)``.

    Attributes:
        title: title after the model and corpus. ``{rank}`` is replaced by the values of the axis
            `rank` that are shown.
        metrics: metrics to show, in this order; by default all.
        rows: axis whose values are the lines.
        columns: axes whose values are the columns; by default all that differ.
        where: values that rows must have, by column or axis: one value, or a tuple of several;
            ``...`` for any, None for none; `PlacesOf` or `BestOnDev`. `split` is "test" unless
            given.
        before: axis whose value is written before each number, as a dimension in ``223: 27.1``.
        below: further metrics without a value on `rows`, each with a separate line.
        mean: axis over which numbers are averaged. Baselines are averaged over lines, too, and have
            a separate line.
        apart: column or axis with a table for each of its values.
        sections: further lines at the end, such as baselines.
        marked: whether layers have the marks ★ ☆ † ≈. They come from scores on dev, and from rows
            of the metric ``<metric>_p_best``, the p-values of a comparison with the best layer.
        places: names for metrics or values in column headings, by value, or by (axis, value).
        note: paragraph below the table.
    """

    title: str = ""
    metrics: tuple[str, ...] = ()
    rows: str = "layer"
    columns: tuple[str, ...] = ()
    where: Where = field(default_factory=dict)
    before: str = ""
    below: tuple[str, ...] = ()
    mean: str = ""
    apart: str = ""
    sections: tuple[Section, ...] = ()
    marked: bool = False
    places: Mapping[Any, str] = field(default_factory=dict)
    note: str = ""

    def tables(self, frame: pd.DataFrame, title: str, notes: Notes = NO_NOTES) -> list[Table]:
        """The table of a frame, or one for each value on `apart`; none without any such number.

        Args:
            title: text before the view's own title.
            notes: further paragraphs. With a table for each task, each has its own.

        Raises:
            ValueError: two numbers would stand in one cell.
        """
        rows = rows_where(frame, self._metrics, self.where)
        all_notes = list(dict.fromkeys(note for of_task in notes.values() for note in of_task))
        if rows.empty:
            return []
        if not self.apart:
            return [self._table(frame, title, all_notes)]
        own_notes = notes if self.apart == "task" else {}
        parts = {value: frame[frame[self.apart] == value] for value in rows[self.apart].unique()}
        return [
            self._table(x, f"{title} · {value}", own_notes.get(value, all_notes))
            for value, x in parts.items()
        ]

    @property
    def _metrics(self) -> tuple[str, ...]:
        return (*self.metrics, *self.below) if self.metrics else ()

    def _table(self, frame: pd.DataFrame, title: str, notes: Sequence[str]) -> Table:
        shown_rows = rows_where(frame, self._metrics, self.where)
        if self.mean:
            shown_rows = mean_over_axis(shown_rows, self.mean, self.rows)
        columns = self.columns or self._differing_columns(shown_rows)
        # A metric without any numbers brings no column for its axes.
        missing_axes = [name for name in (self.rows, *columns) if name not in shown_rows]
        shown_rows = shown_rows.assign(**dict.fromkeys(missing_axes))
        heads: dict[Key, str] = {}
        rows = rows_in(shown_rows)
        for row in rows:
            heads.setdefault(tuple(row[name] for name in columns), self._head(row, columns))
        heads = dict(sorted(heads.items(), key=lambda head: self._column_order(head[0], columns)))
        own_title = worded(self.title, shown_rows)
        if not own_title and columns and "metric" not in columns:
            own_title = ", ".join(
                map(metric_heading, self.metrics or shown_rows["metric"].unique())
            )
            if columns != ("task",):
                own_title += f" by {columns[0].replace('_', ' ')}"
        marks = marks_of(frame, self._metrics, self.where) if self.marked else {}
        lines = self._lines(rows, columns, list(heads), marks)
        if self.sections:
            lines[-1] = replace(lines[-1], ends_section=True)
        for section in self.sections:
            part = section.shown_rows(frame, self._metrics)
            lines += self._lines(rows_in(part), columns, list(heads), {}, section.name)
        meaning = marks_meaning(cell for line in lines for cell in line.cells)
        notes = [self.note, *notes, *_reasons(shown_rows, (self.rows, *columns)), meaning]
        title = " · ".join(filter(None, [title, own_title]))
        heading = (self.rows, *heads.values())
        return Table(title, heading, tuple(lines), notes=tuple(filter(None, notes)))

    def _lines(
        self,
        rows: Sequence[Mapping[str, Any]],
        columns: Sequence[str],
        order: Sequence[Key],
        marks: Marks,
        section: str = "",
    ) -> list[TableRow]:
        """The lines of a part of the table; those without a value come last, in their order."""
        cells: dict[tuple[Any, str], dict[Key, Cell]] = {}
        for row in rows:
            key = tuple(row[name] for name in columns)
            line = cells.setdefault(self._line(row, columns, section), {})
            if key in line:
                raise ValueError(f"two numbers of {' and '.join(map(str, key))} are in one cell")
            cell = _cell_of_row(row, **marks.get((row["key"], row["metric"], row["layer"]), {}))
            if self.before:
                cell = replace(cell, text=f"{row[self.before]}: {cell.text}")
            line[key] = cell
        return [
            TableRow.of(
                label, *(line.get(key, Cell(NOTHING)) for key in order), faint=bool(section)
            )
            for (_, label), line in sorted(
                cells.items(), key=lambda x: (x[0][0] is None, x[0][0] or 0)
            )
        ]

    def _differing_columns(self, shown_rows: pd.DataFrame) -> tuple[str, ...]:
        """Columns with several values among the numbers shown; for probes, also the task."""
        above = shown_rows[~shown_rows["metric"].isin(self.below)]
        return tuple(
            name
            for name in ("task", "metric", *axis_names(above))
            if name not in (self.rows, self.apart)
            and (
                above[name].nunique(dropna=False) > 1 or (name == "task" and shown_rows[name].any())
            )
        )

    def _line(
        self, row: Mapping[str, Any], columns: Sequence[str], section: str
    ) -> tuple[Any, str]:
        """The line of a number: its value on `rows`, or None, and the label of the line."""
        value = row[self.rows]
        if section:
            return value, section if value is None else f"{section}, {self.rows} {value}"
        if value is not None:
            return value, str(value)
        if row["metric"] in self.below:
            return None, axis_of(row["metric"])
        return None, axis_words(row, columns) or "model"

    def _head(self, row: Mapping[str, Any], columns: Sequence[str]) -> str:
        """The head of the column that a number stands in: ``entropy`` over ``head 3``."""
        parts = []
        for name in columns:
            value = row[name]
            heading = self.places.get((name, value), self.places.get(value))
            if heading is not None:
                parts.append(heading)
            elif name == "metric":
                parts.append(label_of(value) if self.title.endswith("%") else metric_heading(value))
            elif name == "task" and value is not None:
                metric = label_of(row["unit"]) if quantity(row["metric"]).of_task else ""
                marks = ", ".join(filter(None, [metric, row["marks"]]))
                parts.append(f"{value} ({marks})" if marks else value)
            elif value is not None:
                parts.append(
                    str(value) if _says_itself(name, value, columns) else f"{name} {value}"
                )
        below = ", ".join(filter(None, parts[1:]))
        return "\n".join(filter(None, [*parts[:1], below])) or metric_heading(row["metric"])

    def _column_order(self, key: Key, columns: Sequence[str]) -> int:
        """A sort key: columns are ordered by metric as in `metrics`, or keep their order."""
        if "metric" not in columns or not self.metrics:
            return 0
        return self.metrics.index(key[columns.index("metric")])


def mean_over_axis(frame: pd.DataFrame, axis: str, rows: str) -> pd.DataFrame:
    """The means over the values on an axis, of baselines over `rows` as well; without intervals."""
    if "baseline" in frame:
        frame = frame.assign(**{rows: frame[rows].mask(frame["baseline"].notna())})
    gone = {axis, "value", "low", "high", "n", "p", "why"}
    group_columns = [name for name in frame if name not in gone]
    means = frame.groupby(group_columns, dropna=False, sort=False)["value"].mean().reset_index()
    return means.assign(low=None, high=None, n=None, p=None, why="")


def _cell_of_row(row: Mapping[str, Any], **marks: Any) -> Cell:
    value = row["value"]
    if quantity(row["metric"]).deviation and value is not None:
        return Cell(printed_sd(value, printed_unit(row)), value=value)
    skewed = quantity(row["metric"]).skewed
    return score_cell(value, interval_of_row(row), printed_unit(row), brackets=skewed, **marks)


def _says_itself(name: str, value: Any, columns: Sequence[str]) -> bool:
    """Whether a head need not name its axis: its value is a word, or the title names the axis."""
    return isinstance(value, str) or columns == (name,)


def _reasons(frame: pd.DataFrame, axes: Sequence[str]) -> Iterator[str]:
    """Reasons for missing numbers or intervals, each once: ``NMI, AMI of senses: no lemmas``.

    Args:
        axes: the axes whose values the table shows.
    """
    explained = frame["why"] != ""
    for reason, rows in frame[explained].groupby("why", sort=False) if explained.any() else ():
        labels = ", ".join(map(label_of, rows["metric"].unique()))
        places = [
            value if isinstance(value, str) else f"{name.replace('_', ' ')} {value}"
            for name in dict.fromkeys(("task", *axes))
            if name not in ("metric", "layer") and 0 < rows[name].nunique() < frame[name].nunique()
            for value in rows[name].dropna().unique()
        ]
        of = f" of {', '.join(places)}" if places else ""
        yield f"{labels[0].upper()}{labels[1:]}{of}: {reason}."


class ShownRecords(Protocol):
    """Records of several models by label, from which a chart is drawn, as in `RecordsByModel`."""

    @property
    def records(self) -> Mapping[str, Record]:
        """The records."""

    @property
    def missing(self) -> Mapping[str, str]:
        """Reasons why other models have no record, by label."""

    @property
    def frame(self) -> pd.DataFrame:
        """The rows of all."""

    @property
    def arrays(self) -> Mapping[str, Arrays]:
        """The arrays beside them, by label."""

    def __hash__(self) -> int:
        """By identity, so that a cache can hold what is computed from the records."""


def reasons_missing(shown_records: ShownRecords, shown_rows: pd.DataFrame) -> dict[str, str]:
    """Reasons why models have no number among the rows that are shown."""
    counts = shown_rows.groupby("model")["value"].count()
    reasons = {
        model: "there are no numbers" if model in counts else UNMEASURED
        for model in shown_records.records
        if not counts.get(model)
    }
    return {**shown_records.missing, **reasons}


class ChartView(Protocol):
    """A chart of a measurement, on the page and by `python -m probes figure`."""

    @property
    def name(self) -> str:
        """Name for `figure`: letters and underscores."""

    @property
    def title(self) -> str:
        """Heading of the chart."""

    @property
    def note(self) -> str:
        """Explanation below the heading."""

    def missing(self, shown_records: ShownRecords) -> dict[str, str]:
        """Reasons why models are not in it, by label."""

    def chart(self, shown_records: ShownRecords, style: Style) -> Any:
        """An Altair chart of all other models."""


@dataclass(frozen=True)
class ByLayer:
    """Curves of every metric by layer, a panel for each: the chart of a measurement without views.

    Rows with further axes are left to its table.
    """

    name: str
    note: str = ""

    @property
    def title(self) -> str:
        """The measurement's name, with spaces."""
        return self.name.replace("_", " ")

    def shown_rows(self, shown_records: ShownRecords) -> pd.DataFrame:
        """The rows that are drawn."""
        rows = rows_where(shown_records.frame, (), dict.fromkeys(axis_names(shown_records.frame)))
        return rows[rows["layer"].notna()]

    def missing(self, shown_records: ShownRecords) -> dict[str, str]:
        """Reasons why models are not in it, by label."""
        return reasons_missing(shown_records, self.shown_rows(shown_records))

    def chart(self, shown_records: ShownRecords, style: Style) -> Any:
        """An Altair chart of all other models."""
        from probes.tables import charts

        rows = self.shown_rows(shown_records).dropna(subset="value")
        units = [printed_unit(row) for row in rows_in(rows)]
        scales = [*map(scale_of, units)]
        ends = {x: rows[x].astype(float) * scales for x in ("value", "low", "high")}
        panels = [axis_of(unit) for unit in units]
        return charts.lines(rows.assign(panel=panels, line="", x=rows["layer"], **ends), style)


AnyView = Pivot | ChartView


def tables_of_views(
    views: Sequence[AnyView], frame: pd.DataFrame, title: str, notes: Notes
) -> list[Table]:
    """The tables among views, each with its notes; the first has those that belong to none."""
    tables: list[Table] = []
    for view in views:
        if isinstance(view, Pivot):
            titles = [x for x in dict.fromkeys((view.title, "")) if x or not tables]
            view_notes = {
                task: [note for x in titles for note in notes_of(of_task, x)]
                for task, of_task in notes.items()
            }
            tables += view.tables(frame, title, view_notes)
    return tables


def note_of(title: str, note: str) -> str:
    """A note that stands below the table of this title alone."""
    return f"[{title}] {note}"


def notes_of(notes: Sequence[str], title: str) -> list[str]:
    """The notes that belong to the table of a title; "" for those that belong to none."""
    if not title:
        return [note for note in notes if not note.startswith("[")]
    mark = note_of(title, "")
    return [note.removeprefix(mark) for note in notes if note.startswith(mark)]
