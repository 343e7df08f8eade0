"""Charts of rows as data: curves and heat maps, of every model that has such rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from probes.measurements.choosing import (
    Where,
    chosen,
    interval_of,
    place_of,
    rows_in,
    unit_of,
    worded,
)
from probes.records.charts import (
    UNMEASURED,
    Card,
    Curves,
    Gallery,
    GalleryPanel,
    Grid,
    Panel,
    Picture,
    Point,
)
from probes.statistics.metrics import axis_of, is_percent, label_of

if TYPE_CHECKING:
    import pandas as pd

    from probes.measurements.frame import Findings


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
        apart: an axis whose every place has a panel of its own.
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
    apart: str = ""
    log: bool = False
    where: Where = field(default_factory=dict)
    of_several: Where = field(default_factory=dict)
    levels: Mapping[str, str] = field(default_factory=dict)

    def chart(self, found: Findings) -> Curves:
        """The curves of all models; those without such rows are missing."""
        frame = found.frame
        metrics = (self.metric,) if isinstance(self.metric, str) else self.metric
        alone = not self.of_several or frame["model"].nunique() == 1
        where = self.where if alone else {**self.where, **self.of_several}
        shown = chosen(frame, metrics, where)
        rows = rows_in(shown)
        levels = {place_of(row): row["value"] for row in rows if row.get(self.x) is None}
        for name, metric in self.levels.items():
            levels.update((name, row["value"]) for row in rows_in(chosen(frame, [metric], {}))[:1])
        rows = [row for row in rows if row.get(self.x) is not None]
        if self.log:
            rows = [row for row in rows if row[self.x] > 0]
        unit = unit_of(rows[0]) if rows else metrics[0]
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
                Point(
                    row[self.x],
                    row["value"],
                    interval_of(row),
                    self._line(row) if alone else "",
                    str(row[self.apart]) if self.apart else "",
                )
                for row in rows
                if row["model"] == model
            ]
            if any(point.value is not None for point in points):
                curves.models[model] = points
            else:
                curves.missing[model] = "there are no numbers" if points else UNMEASURED
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
        cards: given what is drawn and a model's label, the card of each cell. Not with `apart`.
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
    cards: Callable[[Findings, str], tuple[tuple[Card, ...], ...]] | None = None

    def chart(self, found: Findings) -> Grid:
        """A heat map of each model; those without such rows are missing."""
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
        shown = chosen(found.frame, [self.metric], self.where)
        for model in dict.fromkeys(found.frame["model"]):
            own = shown[shown["model"] == model]
            if own.empty:
                grid.missing[model] = UNMEASURED
                continue
            if not self.apart:
                grid.panels[model] = self._panel(own)
                if self.cards:
                    grid.cards[model] = self.cards(found, model)
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


@dataclass(frozen=True)
class Maps:
    """An array of pictures with values from 0 to 1. Shape (rows, columns, height, width).

    Attributes:
        name: by which `figure` draws it: letters and underscores.
        array: its name in the file beside the record.
        metric: of which there is a row for each place.
        kind: the axis of these rows that says what kind of place it is.
        down, across: the columns of these rows that say where it is.
        kinds: in the order of their colours, each with the sign that pictures have.
        absent: why a record has no such array.
    """

    name: str
    array: str
    metric: str
    kind: str
    title: str
    note: str
    absent: str
    down: str = "layer"
    across: str = "head"
    kinds: Mapping[str, str] = field(default_factory=dict)

    def missing(self, found: Findings, model: str) -> str:
        """Why there is nothing to draw; empty if there is."""
        if self.array not in found.records[model].arrays:
            return self.absent
        if model not in found.arrays:
            return "its arrays cannot be read"
        return "" if found.arrays[model][self.array].size else self.absent

    def places(self, found: Findings, model: str) -> pd.DataFrame:
        """The kinds of all places, in rows and columns."""
        rows = chosen(found.frame, [self.metric], {})
        rows = rows[rows["model"] == model]
        return rows.pivot(index=self.down, columns=self.across, values=self.kind)

    def chart(self, found: Findings) -> Gallery:
        """A panel for each model."""
        gallery = Gallery(
            self.name,
            self.title,
            self.note,
            self.down,
            self.across,
            low=0.0,
            high=1.0,
            order=tuple(self.kinds),
        )
        for model in found.records:
            if why := self.missing(found, model):
                gallery.missing[model] = why
            else:
                gallery.panels[model] = self.panel(found, model)
        return gallery

    def panel(self, found: Findings, model: str) -> GalleryPanel:
        """The pictures of a model whose array is there."""
        places = self.places(found, model)
        # As it was rounded, which takes the fewest digits.
        maps = found.arrays[model][self.array].astype(np.float64).round(3).tolist()
        return GalleryPanel(
            tuple(map(str, places.index)),
            tuple(map(str, places.columns)),
            tuple(
                tuple(
                    Picture(tuple(map(tuple, values)), self.kinds.get(kind, ""), kind)
                    for kind, values in zip(kinds, pictures, strict=True)
                )
                for kinds, pictures in zip(places.to_numpy(), maps, strict=True)
            ),
        )
