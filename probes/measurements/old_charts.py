"""Charts of views in the plain types that the page still reads; goes with them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from probes.measurements.chart_views import Cells, Lines, Maps
from probes.measurements.choosing import chosen, interval_of, place_of, rows_in, unit_of, worded
from probes.records.charts import (
    UNMEASURED,
    Chart,
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
    from probes.measurements.frame import Findings


def plain_chart(view: Any, found: Findings) -> Chart | None:
    """The curves, grid or gallery of a view; None for what the page does not show yet."""
    match view:
        case Lines():
            return _curves(view, found)
        case Cells():
            return _grid(view, found)
        case Maps():
            return _gallery(view, found)
    return view.chart(found) if hasattr(view, "chart") else None


def _curves(view: Lines, found: Findings) -> Curves:
    """The curves of all models; those without such rows are missing."""
    frame = found.frame
    metrics = (view.metric,) if isinstance(view.metric, str) else view.metric
    alone = not view.of_several or frame["model"].nunique() == 1
    where = view.where if alone else {**view.where, **view.of_several}
    shown = chosen(frame, metrics, where)
    rows = rows_in(shown)
    levels = {place_of(row): row["value"] for row in rows if row.get(view.x) is None}
    for name, metric in view.levels.items():
        levels.update((name, row["value"]) for row in rows_in(chosen(frame, [metric], {}))[:1])
    rows = [row for row in rows if row.get(view.x) is not None]
    if view.log:
        rows = [row for row in rows if row[view.x] > 0]
    unit = unit_of(rows[0]) if rows else metrics[0]
    axis = axis_of(unit)
    if unit != metrics[0]:
        axis = f"{label_of(metrics[0])}, {axis}"
    elif len(metrics) > 1:
        axis = view.title.lower() + ", %" * is_percent(unit)
    curves = Curves(
        view.name,
        worded(view.title, shown) or label_of(metrics[0]),
        worded(view.note, shown),
        axis,
        unit,
        is_percent(unit),
        view.x.replace("_", " "),
        view.log,
        levels={name: value for name, value in levels.items() if name and value is not None},
    )
    for model in dict.fromkeys(frame["model"]):
        points = [
            Point(
                row[view.x],
                row["value"],
                interval_of(row),
                _line(view, row) if alone else "",
                str(row[view.apart]) if view.apart else "",
            )
            for row in rows
            if row["model"] == model
        ]
        if any(point.value is not None for point in points):
            curves.models[model] = points
        else:
            curves.missing[model] = "there are no numbers" if points else UNMEASURED
    return curves


def _line(view: Lines, row: Mapping[str, Any]) -> str:
    """The name of the curve that a number is on."""
    if not isinstance(view.metric, str):
        return label_of(row["metric"])
    if not view.line:
        return ""
    if row[view.line] is None:
        return place_of(row, (view.x, view.line))
    return f"layer {row['layer']}" if view.line == "layer" else str(row[view.line])


def _grid(view: Cells, found: Findings) -> Grid:
    """A heat map of each model; those without such rows are missing."""
    grid = Grid(
        view.name,
        view.title or label_of(view.metric),
        view.note,
        view.down.replace("_", " "),
        view.across.replace("_", " "),
        digits=view.digits,
        low=view.low,
        high=view.high,
    )
    shown = chosen(found.frame, [view.metric], view.where)
    for model in dict.fromkeys(found.frame["model"]):
        own = shown[shown["model"] == model]
        if own.empty:
            grid.missing[model] = UNMEASURED
            continue
        if not view.apart:
            grid.panels[model] = _panel(view, own)
            if view.cards:
                grid.cards[model] = view.cards(found, model)
            continue
        for place, part in own.groupby(view.apart, sort=False):
            grid.panels[f"{model} × {place}"] = _panel(view, part)
    return grid


def _panel(view: Cells, shown: pd.DataFrame) -> Panel:
    wide = shown.pivot(index=view.down, columns=view.across, values="value")
    values = wide.astype(object).where(wide.notna(), None)
    return Panel(
        tuple(map(str, wide.index)),
        tuple(map(str, wide.columns)),
        tuple(map(tuple, values.to_numpy().tolist())),
    )


def _gallery(view: Maps, found: Findings) -> Gallery:
    """A panel for each model."""
    gallery = Gallery(
        view.name,
        view.title,
        view.note,
        view.down,
        view.across,
        low=0.0,
        high=1.0,
        order=tuple(view.kinds),
    )
    for model in found.records:
        if why := view._why(found, model):
            gallery.missing[model] = why
        else:
            gallery.panels[model] = _pictures(view, found, model)
    return gallery


def _pictures(view: Maps, found: Findings, model: str) -> GalleryPanel:
    """The pictures of a model whose array is there."""
    places = _places(view, found, model)
    # As it was rounded, which takes the fewest digits.
    maps = found.arrays[model][view.array].astype(np.float64).round(3).tolist()
    return GalleryPanel(
        tuple(map(str, places.index)),
        tuple(map(str, places.columns)),
        tuple(
            tuple(
                Picture(tuple(map(tuple, values)), view.kinds.get(kind, ""), kind)
                for kind, values in zip(kinds, pictures, strict=True)
            )
            for kinds, pictures in zip(places.to_numpy(), maps, strict=True)
        ),
    )


def _places(view: Maps, found: Findings, model: str) -> pd.DataFrame:
    """The kinds of all places, in rows and columns."""
    rows = chosen(found.frame, [view.metric], {})
    rows = rows[rows["model"] == model]
    return rows.pivot(index=view.down, columns=view.across, values=view.kind)
