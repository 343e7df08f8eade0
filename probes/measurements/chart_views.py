"""Chart views: curves, heat maps and pictures of the rows of all models; see `ChartView`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from probes.measurements.pivots import ShownRecords, reasons_missing
from probes.measurements.row_filters import (
    Where,
    axis_words,
    interval_of_row,
    printed_unit,
    rows_in,
    rows_where,
    worded,
)
from probes.statistics.metrics import (
    axis_of,
    decimals,
    heading_with_unit,
    is_percent,
    label_of,
    scale_of,
)

if TYPE_CHECKING:
    import pandas as pd

    from probes.tables.charts import Chart, Style


def caption(view: Any, shown_records: ShownRecords) -> tuple[str, str]:
    """Title and note of a chart; columns in braces are replaced by the values of its rows."""
    # `Maps` and views of plug-ins choose no rows.
    rows = view.shown_rows(shown_records) if hasattr(view, "shown_rows") else shown_records.frame
    return worded(view.title or label_of(view.metric), rows), worded(view.note, rows)


@dataclass(frozen=True)
class Lines:
    """Curves of one metric, or of several in one unit, for each model.

    Numbers without a value on `x`, such as baselines, are horizontal lines. Their panels are those
    of their value on `apart`.

    Attributes:
        name: name for `python -m probes figure`: letters and underscores.
        metric: metric to draw. Of several, each has a curve with its label.
        title: by default the metric's label. With several metrics, also the title of the axis.
        x: "layer", or an axis of whole numbers.
        line: axis with a curve for each of its values.
        apart: axis with a panel for each of its values.
        log: whether x is logarithmic.
        where: see `Pivot`.
        of_several: with several models, further conditions that leave one curve for each, such as
            ``{"layer": BestOnDev("uuas")}``.
        levels: ``{"neighbours": "chain_uuas"}`` draws a dashed line, called neighbours, at the
            value of `chain_uuas` of the first model.
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

    def missing(self, shown_records: ShownRecords) -> dict[str, str]:
        """Reasons why models have no curve, by label."""
        rows = self.shown_rows(shown_records)
        at = rows.reindex(columns=[self.x])[self.x]
        has_x = at.gt(0).fillna(False) if self.log else at.notna()
        return reasons_missing(shown_records, rows[has_x])

    def chart(self, shown_records: ShownRecords, style: Style) -> Chart:
        """A chart: one model has all lines in a panel; with several, each line has a panel."""
        import pandas as pd

        from probes.tables import charts

        shown_rows = self.shown_rows(shown_records)
        rows = [row for row in rows_in(shown_rows) if row["value"] is not None]
        several = len({row["model"] for row in rows}) > 1
        unit = printed_unit(rows[0]) if rows else self._metrics[0]
        scale = scale_of(unit)
        points, levels, apart_of = [], {}, {}
        fixed = [name for name, condition in self.where.items() if isinstance(condition, str)]
        if self.line:  # Baselines have the last panels.
            rows.sort(key=lambda row: row[self.line] is None)
        for row in rows:
            at, line = row.get(self.x), self._line(row, several=several)
            apart = str(row[self.apart]) if self.apart else ""
            if at is None:
                levels[apart, axis_words(row, (self.apart, *fixed))] = scale * row["value"]
            elif at > 0 or not self.log:
                panel = ", ".join(filter(None, (apart, line))) if several else apart
                apart_of[panel] = apart
                ends: Any = [scale * x for x in interval_of_row(row) or ()] or [None, None]
                points.append((panel, row["model"], line, at, scale * row["value"], *ends))
        for name, metric in self.levels.items():
            first = rows_in(rows_where(shown_records.frame, [metric], {}))[:1]
            for row, apart in product(first, set(apart_of.values())):
                levels[apart, name] = scale * row["value"]
        columns = ["panel", "model", "line", "x", "value", "low", "high"]
        frame = pd.DataFrame(points, columns=columns)
        dashed = [
            {"panel": panel, "name": name, "level": value}
            for panel in frame["panel"].unique()
            for (apart, name), value in levels.items()
            if name and apart == apart_of[panel]
        ]
        return charts.lines(
            pd.concat([frame, pd.DataFrame(dashed)]) if dashed else frame,
            style,
            x=self.x.replace("_", " "),
            y=self._axis(unit),
            title=worded(self.title, shown_rows) or label_of(self._metrics[0]),
            log=self.log,
            by="line" if any(row[2] for row in points) and not several else "model",
            one_scale=not self.apart,
        )

    @property
    def _metrics(self) -> tuple[str, ...]:
        return (self.metric,) if isinstance(self.metric, str) else self.metric

    def shown_rows(self, shown_records: ShownRecords) -> pd.DataFrame:
        """The rows that are drawn."""
        several = shown_records.frame["model"].nunique() > 1
        where = {**self.where, **self.of_several} if several else self.where
        return rows_where(shown_records.frame, self._metrics, where)

    def _line(self, row: Mapping[str, Any], *, several: bool) -> str:
        """The name of the curve that a number is on."""
        if several and self.of_several:
            return ""
        if not isinstance(self.metric, str):
            return label_of(row["metric"])
        if not self.line:
            return ""
        if row[self.line] is None:
            return axis_words(row, (self.x, self.line))
        return f"layer {row['layer']}" if self.line == "layer" else str(row[self.line])

    def _axis(self, unit: str) -> str:
        if unit != self._metrics[0]:
            return f"{label_of(self._metrics[0])}, {axis_of(unit)}"
        if len(self._metrics) == 1:
            return axis_of(unit)
        return heading_with_unit(self.title.lower(), unit)


@dataclass(frozen=True)
class Cells:
    """One metric as a heat map, for each model.

    Attributes:
        name: name for `python -m probes figure`: letters and underscores.
        metric: metric to draw.
        across: axis whose values are the columns.
        down: axis whose values are the rows.
        apart: axis with a panel for each of its values.
        number: title of the colour legend; by default the metric's label.
        low, high: ends of the colour scale; by default the lowest and the highest value.
        digits: decimals of the numbers in cells.
        where: see `Pivot`.
        more: called with (records, label of a model); returns further texts for tooltips, by row
            and column. Not with `apart`.
    """

    name: str
    metric: str
    across: str
    down: str = "layer"
    title: str = ""
    note: str = ""
    number: str = ""
    low: float | None = None
    high: float | None = None
    digits: int = 2
    where: Where = field(default_factory=dict)
    apart: str = ""
    more: Callable[[ShownRecords, str], Mapping[tuple[int, int], Mapping[str, str]]] | None = None

    def missing(self, shown_records: ShownRecords) -> dict[str, str]:
        """Reasons why models have no heat map, by label."""
        return reasons_missing(shown_records, self.shown_rows(shown_records))

    def chart(self, shown_records: ShownRecords, style: Style) -> Chart:
        """A heat map with a panel for each model and each value on `apart`."""
        import pandas as pd

        from probes.tables import charts

        rows = self.shown_rows(shown_records)
        bases = {model: record.base for model, record in shown_records.records.items()}
        pairs = {model: f"{model} × {base.name}" for model, base in bases.items() if base}
        panel = rows["model"].astype(str).replace(pairs)
        if self.apart:
            panel += " · " + rows[self.apart].astype(str)
        frame = pd.DataFrame(
            {
                "panel": panel,
                "model": rows["model"],
                "row": rows[self.down],
                "column": rows[self.across],
                "value": rows["value"].astype(float),
            }
        )
        frame["text"] = frame["value"].map(self._text)
        if self.more and style.hover:
            texts = {model: self.more(shown_records, model) for model in frame["model"].unique()}
            cells = zip(frame["model"], frame["row"], frame["column"], strict=True)
            tooltips: Any = [texts[model][row, column] for model, row, column in cells]
            frame = frame.assign(said=tooltips)
        # Unlike in tables and curves, numbers in cells are not multiplied by 100.
        share = ", as a share" if is_percent(self.metric) else ""
        return charts.heat_map(
            frame,
            style,
            down=self.down.replace("_", " "),
            across=self.across.replace("_", " "),
            legend_title=self.number or label_of(self.metric) + share,
            title=self.title or label_of(self.metric),
            low=self.low,
            high=self.high,
        )

    def shown_rows(self, shown_records: ShownRecords) -> pd.DataFrame:
        """The rows that are drawn."""
        return rows_where(shown_records.frame, [self.metric], self.where)

    def _text(self, value: float) -> str:
        """A number as it is written into a cell: ``.98``."""
        return "" if np.isnan(value) else decimals(value, self.digits)


@dataclass(frozen=True)
class Maps:
    """An array of pictures with values from 0 to 1. Shape (rows, columns, height, width).

    Attributes:
        name: name for `python -m probes figure`: letters and underscores.
        array: name of the array stored with the record.
        metric: metric with a row for each picture.
        kind: axis of these rows with the kind of picture, which is shown by colour.
        down, across: columns of these rows that say where the picture stands.
        kinds: the kinds in the order of their colours, each with a sign for its pictures.
        absent: message if there is no such array.
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

    def missing(self, shown_records: ShownRecords) -> dict[str, str]:
        """Reasons why models have no pictures, by label."""
        reasons = {x: self._reason(shown_records, x) for x in shown_records.records}
        return {**shown_records.missing, **{x: reason for x, reason in reasons.items() if reason}}

    def chart(self, shown_records: ShownRecords, style: Style) -> Chart:
        """A panel of pictures for each model."""
        import pandas as pd

        from probes.tables import charts

        rows = rows_where(shown_records.frame, [self.metric], {})
        parts = []
        for model in [x for x in shown_records.records if x not in self.missing(shown_records)]:
            model_rows = rows[rows["model"] == model].sort_values([self.down, self.across])
            maps = shown_records.arrays[model][self.array]
            parts.append(
                pd.DataFrame(
                    {
                        "panel": model,
                        "model": model,
                        "row": model_rows[self.down],
                        "column": model_rows[self.across],
                        "kind": model_rows[self.kind],
                        "url": [charts.picture(x) for x in maps.reshape(-1, *maps.shape[2:])],
                    }
                )
            )
        return charts.pictures(
            pd.concat(parts),
            style,
            down=self.down,
            across=self.across,
            kinds=self.kinds,
            title=self.title,
        )

    def _reason(self, shown_records: ShownRecords, model: str) -> str:
        """The reason why a model has no pictures; empty if it has some."""
        if self.array not in shown_records.records[model].arrays:
            return self.absent
        if model not in shown_records.arrays:
            return "its arrays cannot be read"
        return "" if shown_records.arrays[model][self.array].size else self.absent
