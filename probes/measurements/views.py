"""Views of rows as data: how a measurement's numbers are shown in tables and charts.

A view is given the long frame of one record, or of those of several models or tasks, and chooses
from it. Views of one measurement are its attribute `views`; without any, it has one table of
everything by layer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from probes.measurements.cells import score_cell
from probes.measurements.choosing import Marks, Where, chosen, marks_of
from probes.records.charts import Grid, Panel
from probes.records.curves import Curves, Point
from probes.records.row import HEADER, Row
from probes.records.table import MARKS, NOTHING, Cell, Table, TableRow
from probes.records.values import Interval
from probes.statistics.formatting import shown_sd
from probes.statistics.metrics import axis_of, is_percent, label_of, quantity

if TYPE_CHECKING:
    import pandas as pd

Key = tuple[Any, ...]
"""The places of a column of a table."""


def averaged(frame: pd.DataFrame, axis: str, rows: str) -> pd.DataFrame:
    """The means over the places on an axis, of baselines over `rows` as well; without intervals."""
    if "baseline" in frame:
        frame = frame.assign(**{rows: frame[rows].mask(frame["baseline"].notna())})
    gone = {axis, "value", "low", "high", "n", "p", "why"}
    alike = [name for name in frame if name not in gone]
    means = frame.groupby(alike, dropna=False, sort=False)["value"].mean().reset_index()
    return means.assign(low=None, high=None, n=None, p=None, why="")


def axes_of(frame: pd.DataFrame) -> list[str]:
    """The axes of its rows."""
    return [str(name) for name in frame if name not in (*HEADER, *Row._fields)]


@dataclass(frozen=True)
class Section:
    """Further lines of a `Pivot`, set back below the others.

    Attributes:
        name: what they are called: ``identity, layer 3``, or the name alone without a place.
        metrics: by metric, that in whose column it stands; those of the table if empty.
        where: see `Where`.
    """

    name: str
    metrics: Mapping[str, str] = field(default_factory=dict)
    where: Where = field(default_factory=dict)

    def chosen(self, frame: pd.DataFrame, metrics: Sequence[str]) -> pd.DataFrame:
        """Its rows, under the metrics in whose columns they stand."""
        found = chosen(frame, list(self.metrics) or metrics, self.where)
        return found.assign(metric=found["metric"].replace(dict(self.metrics)))


@dataclass(frozen=True)
class Pivot:
    """A table: rows by their places on one column of the frame, columns by those on others.

    Numbers without a place there, such as those of the model as a whole, have lines below.

    Attributes:
        title: what it shows, after the model and corpus; the metric and axis, where heads do not
            name them. A column in braces, as in ``rank {rank}``, stands for its places.
        metrics: those that are shown, in this order; all if empty.
        rows: a column of the frame.
        columns: those whose places are columns of the table; every one that differs if empty.
        where: see `Where`.
        before: an axis whose place is written before each number, as a dimension: ``223: 27.1``.
        below: further metrics, without a place on `rows`, each of which has a line of its own.
        mean: an axis over whose places numbers are averaged; baselines are averaged over rows, too,
            and have a line of their own.
        apart: a column whose every place has a table of its own.
        sections: further lines at the end, such as baselines.
        marked: whether numbers have the marks of layers; see `marks_of`.
        places: what metrics, or places of axes, are called in heads of columns.
        note: a paragraph below it.
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
        places = chosen(frame, self._metrics, self.where)
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
        shown = chosen(frame, self._metrics, self.where)
        if self.mean:
            shown = averaged(shown, self.mean, self.rows)
        columns = self.columns or self._that_differ(shown)
        heads: dict[Key, str] = {}
        for row in _each(shown):
            heads.setdefault(tuple(row[name] for name in columns), self._head(row, columns))
        heads = dict(sorted(heads.items(), key=lambda head: self._place(head[0], columns)))
        own = worded(self.title, shown)
        if not own and columns and "metric" not in columns:
            own = ", ".join(_named(metric) for metric in self.metrics or shown["metric"].unique())
            own += f" by {columns[0].replace('_', ' ')}" * (columns != ("task",))
        marks = marks_of(frame, self._metrics, self.where) if self.marked else {}
        lines = self._lines(shown, columns, list(heads), marks)
        if self.sections:
            lines[-1] = replace(lines[-1], ends_section=True)
        for section in self.sections:
            part = section.chosen(frame, self._metrics)
            lines += self._lines(part, columns, list(heads), {}, section.name)
        borderline = any(cell.borderline for line in lines for cell in line.cells)
        meaning = f"{' '.join(MARKS['borderline'])}." * borderline
        return Table(
            " · ".join(filter(None, [title, own])),
            (self.rows, *heads.values()),
            tuple(lines),
            notes=tuple(filter(None, [self.note, *notes, *_reasons(shown), meaning])),
            repeated=1,
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
        for row in _each(shown):
            key = tuple(row[name] for name in columns)
            line = cells.setdefault(self._line(row, columns, section), {})
            if key in line:
                raise ValueError(f"two numbers of {' and '.join(map(str, key))} are in one cell")
            cell = _cell(row, **marks.get((row["key"], row["metric"], row["layer"]), {}))
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
            for name in ("task", "metric", *axes_of(above))
            if name not in (self.rows, self.apart)
            and (above[name].nunique(dropna=False) > 1 or (name == "task" and above[name].any()))
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
            return None, label_of(row["metric"])
        return None, place_of(row, columns) or "model"

    def _head(self, row: Mapping[str, Any], columns: Sequence[str]) -> str:
        """The head of the column that a number stands in: ``entropy`` over ``head 3``."""
        parts = []
        for name in columns:
            place = row[name]
            if place in self.places:
                parts.append(self.places[place])
            elif name == "metric":
                parts.append(label_of(place) if self.title.endswith("%") else _named(place))
            elif name == "task" and place is not None:
                metric = label_of(row["unit"]) if quantity(row["metric"]).of_task else ""
                marks = ", ".join(filter(None, [metric, row["marks"]]))
                parts.append(f"{place} ({marks})" if marks else place)
            elif place is not None:
                parts.append(
                    str(place) if _says_itself(name, place, columns) else f"{name} {place}"
                )
        return "\n".join(filter(None, [*parts[:1], ", ".join(parts[1:])])) or _named(row["metric"])

    def _place(self, key: tuple[Any, ...], columns: Sequence[str]) -> int:
        """Orders columns by metric as they are asked for; else they keep their order."""
        if "metric" not in columns or not self.metrics:
            return 0
        return self.metrics.index(key[columns.index("metric")])


@dataclass(frozen=True)
class Lines:
    """Curves of one metric, or of several in one unit, for each model.

    Baselines without a place on x are levels.

    Attributes:
        name: by which `figure` draws it: letters and underscores.
        metric: what is drawn; of several, each has a curve of its own, which is called by its
            label.
        title: the metric's label if empty; of several, also that of the axis.
        x: a column of whole numbers: layers, or an axis.
        line: an axis whose places are curves of their own.
        log: whether x is logarithmic.
        where: see `Where`.
        of_several: further places of the numbers of several models, which then have one curve each.
        levels: by name, metrics of the whole that are dashed lines; the first model's are drawn.
    """

    name: str
    metric: str | tuple[str, ...]
    title: str = ""
    note: str = ""
    x: str = "layer"
    line: str = ""
    log: bool = False
    where: Where = field(default_factory=dict)
    of_several: Where = field(default_factory=dict)
    levels: Mapping[str, str] = field(default_factory=dict)

    def chart(self, frame: pd.DataFrame) -> Curves:
        """The curves of all models of a frame; those without such rows are missing."""
        metrics = (self.metric,) if isinstance(self.metric, str) else self.metric
        alone = not self.of_several or frame["model"].nunique() == 1
        where = self.where if alone else {**self.where, **self.of_several}
        shown = chosen(frame, metrics, where)
        rows = _each(shown)
        levels = {place_of(row): row["value"] for row in rows if row.get(self.x) is None}
        for name, metric in self.levels.items():
            levels.update((name, row["value"]) for row in _each(chosen(frame, [metric], {}))[:1])
        rows = [row for row in rows if row.get(self.x) is not None]
        if self.log:
            rows = [row for row in rows if row[self.x] > 0]
        unit = _as(rows[0]) if rows else metrics[0]
        axis = axis_of(unit)
        if unit != metrics[0]:
            axis = f"{label_of(metrics[0])}, {axis}"
        elif len(metrics) > 1:
            axis = self.title.lower() + ", %" * is_percent(unit)
        curves = Curves(
            self.name,
            worded(self.title, shown) or label_of(metrics[0]),
            worded(self.note, shown),
            axis,
            unit,
            is_percent(unit),
            self.x.replace("_", " "),
            self.log,
            levels={name: value for name, value in levels.items() if name and value is not None},
        )
        for model in dict.fromkeys(frame["model"]):
            points = [
                Point(row[self.x], row["value"], _interval(row), self._line(row) if alone else "")
                for row in rows
                if row["model"] == model
            ]
            if any(point.value is not None for point in points):
                curves.models[model] = points
            else:
                curves.missing[model] = "there are no numbers" if points else "it was not measured"
        return curves

    def _line(self, row: Mapping[str, Any]) -> str:
        """The name of the curve that a number is on."""
        if not isinstance(self.metric, str):
            return label_of(row["metric"])
        if not self.line:
            return ""
        if row[self.line] is None:
            return place_of(row, (self.x, self.line))
        return f"layer {row['layer']}" if self.line == "layer" else str(row[self.line])


@dataclass(frozen=True)
class Cells:
    """One metric as a heat map, for each model.

    Attributes:
        name: by which `figure` draws it: letters and underscores.
        metric: what is drawn.
        across: the axis whose places are columns.
        down: a column whose places are rows.
        apart: an axis whose every place has a panel of its own: ``model × place``.
        low, high: ends of the colour scale; None for the least and the greatest value.
        digits: of the numbers in cells.
        where: see `Where`.
    """

    name: str
    metric: str
    across: str
    down: str = "layer"
    title: str = ""
    note: str = ""
    low: float | None = None
    high: float | None = None
    digits: int = 2
    where: Where = field(default_factory=dict)
    apart: str = ""

    def chart(self, frame: pd.DataFrame) -> Grid:
        """A heat map of each model of a frame; those without such rows are missing."""
        grid = Grid(
            self.name,
            self.title or label_of(self.metric),
            self.note,
            self.down.replace("_", " "),
            self.across.replace("_", " "),
            digits=self.digits,
            low=self.low,
            high=self.high,
        )
        shown = chosen(frame, [self.metric], self.where)
        for model in dict.fromkeys(frame["model"]):
            own = shown[shown["model"] == model]
            if own.empty:
                grid.missing[model] = "it was not measured"
                continue
            if not self.apart:
                grid.panels[model] = self._panel(own)
                continue
            for place, part in own.groupby(self.apart, sort=False):
                grid.panels[f"{model} × {place}"] = self._panel(part)
        return grid

    def _panel(self, shown: pd.DataFrame) -> Panel:
        wide = shown.pivot(index=self.down, columns=self.across, values="value")
        values = wide.astype(object).where(wide.notna(), None)
        return Panel(
            tuple(map(str, wide.index)),
            tuple(map(str, wide.columns)),
            tuple(map(tuple, values.to_numpy().tolist())),
        )


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


def worded(text: str, shown: pd.DataFrame) -> str:
    """A title or note; columns in braces stand for the places of the rows that are shown."""

    def places(found: re.Match[str]) -> str:
        if found[1] not in shown:
            return found[0]
        return " or ".join(map(str, sorted(shown[found[1]].dropna().unique())))

    return re.sub(r"\{(\w+)\}", places, text)


def _named(metric: str) -> str:
    """A metric in heads and titles of tables."""
    return label_of(metric) + ", %" * is_percent(metric)


def place_of(row: Mapping[str, Any], apart_from: Sequence[str] = ()) -> str:
    """A row's places on its axes, in words: ``labels alone``."""
    known = (*HEADER, *Row._fields, *apart_from)
    return ", ".join(str(x) for name, x in row.items() if name not in known and x is not None)


def _cell(row: Mapping[str, Any], **marks: Any) -> Cell:
    value = row["value"]
    if quantity(row["metric"]).deviation and value is not None:
        return Cell(shown_sd(value, _as(row)), value=value)
    return score_cell(value, _interval(row), _as(row), value=value, **marks)


def _as(row: Mapping[str, Any]) -> str:
    """The metric as which a number is printed: its own, or that of its task."""
    metric: str = row["unit"] if quantity(row["metric"]).of_task else row["metric"]
    return metric


def _says_itself(name: str, place: Any, columns: Sequence[str]) -> bool:
    """Whether a head need not name its axis: its place is a word, or the title does."""
    return isinstance(place, str) or columns == (name,)


def _each(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Its rows by column, None for what is missing."""
    each = frame.astype(object).where(frame.notna(), None)
    names = list(map(str, each))
    return [dict(zip(names, row, strict=True)) for row in each.to_numpy().tolist()]


def _interval(row: Mapping[str, Any]) -> Interval:
    return None if row["low"] is None or row["high"] is None else (row["low"], row["high"])


def _reasons(frame: pd.DataFrame) -> Iterator[str]:
    """Why numbers or intervals are missing, each reason once: ``NMI, AMI: few lemmas``."""
    for why, those in frame[frame["why"] != ""].groupby("why", sort=False):
        labels = ", ".join(map(label_of, those["metric"].unique()))
        yield f"{labels[0].upper()}{labels[1:]}: {why}."
