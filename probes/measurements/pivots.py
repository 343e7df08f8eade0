"""Tables of rows as data: what stands in their lines, columns and sections.

Tables and charts of a measurement are its attribute `shows`; without any, it has one table of
everything by layer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
from probes.statistics.metrics import (
    axis_of,
    is_percent,
    label_of,
    quantity,
    shown_sd,
)
from probes.tables.table import NOTHING, Cell, Table, TableRow, marks_said

if TYPE_CHECKING:
    import pandas as pd

    from probes.records.record import Record
    from probes.records.record_files import Arrays
    from probes.tables.charts import Style


Key = tuple[Any, ...]
"""The places of a column of a table."""


@dataclass(frozen=True)
class Section:
    """Further lines at the end of a `Pivot`, such as baselines.

    Attributes:
        name: name of the lines; the place is added: ``identity, layer 3``.
        metrics: ``{"chain_uuas": "uuas"}`` puts `chain_uuas` into the column of `uuas`. By default
            the metrics of the table.
        where: see `Pivot`.
    """

    name: str
    metrics: Mapping[str, str] = field(default_factory=dict)
    where: Where = field(default_factory=dict)

    def chosen(self, frame: pd.DataFrame, metrics: Sequence[str]) -> pd.DataFrame:
        """Its rows, under the metrics in whose columns they stand."""
        found = rows_where(frame, list(self.metrics) or metrics, self.where)
        return found.assign(metric=found["metric"].replace(dict(self.metrics)))


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
        below: further metrics without a value on `rows`, each with a line of its own.
        mean: axis over which numbers are averaged. Baselines are averaged over lines, too, and have
            a line of their own.
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

    def tables(self, frame: pd.DataFrame, title: str, notes: Sequence[str] = ()) -> list[Table]:
        """The table of a frame, or one for each place on `apart`; none without any such number.

        Args:
            title: what stands before its own.
            notes: further paragraphs.

        Raises:
            ValueError: two numbers would stand in one cell.
        """
        places = rows_where(frame, self._metrics, self.where)
        if places.empty:
            return []
        if not self.apart:
            return [self._table(frame, title, notes)]
        return [
            self._table(frame[frame[self.apart] == place], f"{title} · {place}", notes)
            for place in places[self.apart].unique()
        ]

    @property
    def _metrics(self) -> tuple[str, ...]:
        return (*self.metrics, *self.below) if self.metrics else ()

    def _table(self, frame: pd.DataFrame, title: str, notes: Sequence[str]) -> Table:
        shown = rows_where(frame, self._metrics, self.where)
        if self.mean:
            shown = mean_over_axis(shown, self.mean, self.rows)
        columns = self.columns or self._that_differ(shown)
        # Axes of metrics of which there are no numbers.
        lacking = [name for name in (self.rows, *columns) if name not in shown]
        shown = shown.assign(**dict.fromkeys(lacking))
        heads: dict[Key, str] = {}
        for row in rows_in(shown):
            heads.setdefault(tuple(row[name] for name in columns), self._head(row, columns))
        heads = dict(sorted(heads.items(), key=lambda head: self._place(head[0], columns)))
        own = worded(self.title, shown)
        if not own and columns and "metric" not in columns:
            own = ", ".join(
                metric_heading(metric) for metric in self.metrics or shown["metric"].unique()
            )
            own += f" by {columns[0].replace('_', ' ')}" * (columns != ("task",))
        marks = marks_of(frame, self._metrics, self.where) if self.marked else {}
        lines = self._lines(shown, columns, list(heads), marks)
        if self.sections:
            lines[-1] = replace(lines[-1], ends_section=True)
        for section in self.sections:
            part = section.chosen(frame, self._metrics)
            lines += self._lines(part, columns, list(heads), {}, section.name)
        meaning = marks_said(cell for line in lines for cell in line.cells)
        return Table(
            " · ".join(filter(None, [title, own])),
            (self.rows, *heads.values()),
            tuple(lines),
            notes=tuple(
                filter(None, [self.note, *notes, *_reasons(shown, (self.rows, *columns)), meaning])
            ),
        )

    def _lines(
        self,
        shown: pd.DataFrame,
        columns: Sequence[str],
        order: Sequence[Key],
        marks: Marks,
        section: str = "",
    ) -> list[TableRow]:
        """The lines of a part of the table; those without a place come last, in their order."""
        cells: dict[tuple[Any, str], dict[Key, Cell]] = {}
        for row in rows_in(shown):
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

    def _that_differ(self, shown: pd.DataFrame) -> tuple[str, ...]:
        """The columns of the frame in which its numbers differ; of probes, the task in any case."""
        above = shown[~shown["metric"].isin(self.below)]
        return tuple(
            name
            for name in ("task", "metric", *axis_names(above))
            if name not in (self.rows, self.apart)
            and (above[name].nunique(dropna=False) > 1 or (name == "task" and shown[name].any()))
        )

    def _line(
        self, row: Mapping[str, Any], columns: Sequence[str], section: str
    ) -> tuple[Any, str]:
        """The line of a number: its place, or None, and what the line is called."""
        place = row[self.rows]
        if section:
            return place, section if place is None else f"{section}, {self.rows} {place}"
        if place is not None:
            return place, str(place)
        if row["metric"] in self.below:
            return None, axis_of(row["metric"])
        return None, axis_words(row, columns) or "model"

    def _head(self, row: Mapping[str, Any], columns: Sequence[str]) -> str:
        """The head of the column that a number stands in: ``entropy`` over ``head 3``."""
        parts = []
        for name in columns:
            place = row[name]
            called = self.places.get((name, place), self.places.get(place))
            if called is not None:
                parts.append(called)
            elif name == "metric":
                parts.append(label_of(place) if self.title.endswith("%") else metric_heading(place))
            elif name == "task" and place is not None:
                metric = label_of(row["unit"]) if quantity(row["metric"]).of_task else ""
                marks = ", ".join(filter(None, [metric, row["marks"]]))
                parts.append(f"{place} ({marks})" if marks else place)
            elif place is not None:
                parts.append(
                    str(place) if _says_itself(name, place, columns) else f"{name} {place}"
                )
        below = ", ".join(filter(None, parts[1:]))
        return "\n".join(filter(None, [*parts[:1], below])) or metric_heading(row["metric"])

    def _place(self, key: tuple[Any, ...], columns: Sequence[str]) -> int:
        """Orders columns by metric as they are asked for; else they keep their order."""
        if "metric" not in columns or not self.metrics:
            return 0
        return self.metrics.index(key[columns.index("metric")])


def mean_over_axis(frame: pd.DataFrame, axis: str, rows: str) -> pd.DataFrame:
    """The means over the places on an axis, of baselines over `rows` as well; without intervals."""
    if "baseline" in frame:
        frame = frame.assign(**{rows: frame[rows].mask(frame["baseline"].notna())})
    gone = {axis, "value", "low", "high", "n", "p", "why"}
    alike = [name for name in frame if name not in gone]
    means = frame.groupby(alike, dropna=False, sort=False)["value"].mean().reset_index()
    return means.assign(low=None, high=None, n=None, p=None, why="")


def _cell_of_row(row: Mapping[str, Any], **marks: Any) -> Cell:
    value = row["value"]
    if quantity(row["metric"]).deviation and value is not None:
        return Cell(shown_sd(value, printed_unit(row)), value=value)
    skewed = quantity(row["metric"]).skewed
    return score_cell(value, interval_of_row(row), printed_unit(row), brackets=skewed, **marks)


def _says_itself(name: str, place: Any, columns: Sequence[str]) -> bool:
    """Whether a head need not name its axis: its place is a word, or the title does."""
    return isinstance(place, str) or columns == (name,)


def _reasons(frame: pd.DataFrame, axes: Sequence[str]) -> Iterator[str]:
    """Reasons for missing numbers or intervals, each once: ``NMI, AMI of senses: no lemmas``.

    Args:
        axes: those whose places the table shows.
    """
    for why, those in frame[frame["why"] != ""].groupby("why", sort=False):
        labels = ", ".join(map(label_of, those["metric"].unique()))
        places = [
            place if isinstance(place, str) else f"{name.replace('_', ' ')} {place}"
            for name in dict.fromkeys(("task", *axes))
            if name not in ("metric", "layer") and 0 < those[name].nunique() < frame[name].nunique()
            for place in those[name].dropna().unique()
        ]
        of = f" of {', '.join(places)}" if places else ""
        yield f"{labels[0].upper()}{labels[1:]}{of}: {why}."


class ShownRecords(Protocol):
    """Records of several models by label, from which a chart is drawn, as in `RecordsByModel`."""

    @property
    def records(self) -> Mapping[str, Record]:
        """The records."""

    @property
    def lacking(self) -> Mapping[str, str]:
        """Why others have none, by label."""

    @property
    def frame(self) -> pd.DataFrame:
        """The rows of all."""

    @property
    def arrays(self) -> Mapping[str, Arrays]:
        """The arrays beside them, by label."""

    def __hash__(self) -> int:
        """They are told apart by identity, so that what is computed from them can be kept."""


def lacking(found: ShownRecords, shown: pd.DataFrame) -> dict[str, str]:
    """Reasons why models have no number among the rows that are shown."""
    known = shown.groupby("model")["value"].count()
    reasons = {
        model: "there are no numbers" if model in known else UNMEASURED
        for model in found.records
        if not known.get(model)
    }
    return {**found.lacking, **reasons}


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

    def missing(self, found: ShownRecords) -> dict[str, str]:
        """Reasons why models are not in it, by label."""

    def chart(self, found: ShownRecords, style: Style) -> Any:
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

    def chosen(self, found: ShownRecords) -> pd.DataFrame:
        """The rows that are drawn."""
        rows = rows_where(found.frame, (), dict.fromkeys(axis_names(found.frame)))
        return rows[rows["layer"].notna()]

    def missing(self, found: ShownRecords) -> dict[str, str]:
        """Reasons why models are not in it, by label."""
        return lacking(found, self.chosen(found))

    def chart(self, found: ShownRecords, style: Style) -> Any:
        """An Altair chart of all other models."""
        from probes.tables import charts

        rows = self.chosen(found).dropna(subset="value")
        units = [printed_unit(row) for row in rows_in(rows)]
        scales = [100 if is_percent(unit) else 1 for unit in units]
        ends = {x: rows[x].astype(float) * scales for x in ("value", "low", "high")}
        panels = [axis_of(unit) for unit in units]
        return charts.lines(rows.assign(panel=panels, line="", x=rows["layer"], **ends), style)


AnyView = Pivot | ChartView


def tables_of_views(
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
