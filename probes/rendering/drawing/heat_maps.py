"""Scores as heat maps (Liu et al. 2019a), and expected layers (Tenney et al. 2019a)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from probes.boards.groups import Group
from probes.boards.layer_tables import floor_row, layer_rows
from probes.common.errors import UserError
from probes.measurements.cells import estimate_text, metric_name
from probes.measurements.measurement import LOCALISATION, get_measurement
from probes.records.record import limit_mark, model_title
from probes.records.result import Result
from probes.rendering.drawing.grids import CELL, LARGEST, SMALLEST, distinct_names, names
from probes.rendering.drawing.style import (
    SAID,
    SOLID,
    Drawing,
    Looks,
    Mark,
    Style,
    filled,
    layered,
    looks_of_models,
    stacked,
    stroked,
    table,
    text_width,
    viridis,
    wrapped,
)

FRAME = "#ff5a36"

GREY = "#e9ecef"
"""The ground of the floor, and of scores that are not above it."""

_FLOOR = "floor"

_KEY = (
    Mark("best on dev", FRAME, shape="square", filled=False),
    Mark("not above the floor", "black", shape="triangle-down", filled=False),
)


def of_group(group: Group, style: Style, room: float) -> Drawing:
    """A heat map for each model of a group; a task's colours span all of them."""
    columns = style.columns(len(group.models), 200)
    panels = []
    for model in group.models:
        units = [unit for unit in group.units if model in unit.results]
        among = [list(unit.results.values()) for unit in units]
        results = [unit.floored[model] for unit in units]
        panels.append(heat_map(model, results, style, room / columns, among))
    return stacked(panels, columns, "", style, _KEY, room)


def of_results(results: Sequence[Result], style: Style, room: float) -> Drawing:
    """One model's heat maps, side by side: one for each probe family."""
    families = list(dict.fromkeys(result.probe.family for result in results))
    chosen = {f: [x for x in results if x.probe.family == f] for f in families}
    panels = [
        heat_map(f"{family} probe", own, style, room * len(own) / len(results))
        for family, own in chosen.items()
    ]
    first = results[0]
    title = f"{model_title(first)} on {first.corpus.name}{limit_mark(first)}: test scores by layer"
    return stacked(panels, len(panels), title, style, _KEY, room)


def heat_map(
    title: str,
    results: Sequence[Result],
    style: Style,
    width: float,
    among: Sequence[Sequence[Result]] = (),
) -> Drawing:
    """One family's scores: a column per task, a row per layer, and the floor below layer 0.

    Args:
        among: the results whose scores span the colours of each column; see `layer_rows`.
    """
    across = width / len(results)
    heads = _heads(results, across - 4, style.text)
    layers = layer_rows(results, among)
    rows: list[dict[str, Any]] = [
        {
            "layer": row.cells[0].text,
            "task": head,
            "place": cell.place,
            "text": cell.text,
            "ink": "black" if cell.floored or (cell.place or 0) > 0.6 else "white",
            "best": cell.best,
            "floored": cell.floored,
        }
        for row in layers
        for head, cell in zip(heads, row.cells[1:], strict=True)
        if cell.place is not None
    ]
    floors: list[dict[str, Any]] = [
        {"layer": _FLOOR, "task": head, "text": cell.text}
        for head, cell in zip(heads, floor_row(results).cells[1:], strict=True)
    ]
    every = [*(row.cells[0].text for row in reversed(layers)), _FLOOR]
    x = names("task", heads, "", across, style)
    y = names("layer", every, "layer", CELL, style, upright=True)
    base = alt.Chart(table(rows)).encode(x=x, y=y)
    longest = max((text_width(row["text"], 1) for row in [*rows, *floors]), default=1) + 1.1
    size = min(LARGEST, across / longest)
    colour = viridis(
        "place",
        (0, 1),
        "task's worst score (0) to its best (1)",
        style,
        values=[0, 1],
        format="d",
    )
    drawn = [
        base.mark_rect().encode(color=colour),
        base.transform_filter("datum.floored").mark_rect(fill=GREY),
        base.transform_filter("datum.best").mark_rect(
            fill=None, stroke=FRAME, strokeWidth=1.2, width={"band": 0.96}, height={"band": 0.92}
        ),
        base.transform_filter("datum.floored")
        .mark_point(
            shape="triangle-down", size=size**2 / 4, strokeWidth=0.6, xOffset=across / 2 - size / 2
        )
        .encode(stroke=stroked("ink")),
        alt.Chart(table(floors))
        .mark_rect(fill=GREY, stroke="white", strokeWidth=1.5)
        .encode(x=x, y=y),
    ]
    if size >= SMALLEST:
        text: dict[str, Any] = {"fontSize": size, "baseline": "middle", "xOffset": -size / 4}
        drawn += [
            base.mark_text(**text).encode(text="text:N", fill=filled("ink")),
            alt.Chart(table(floors)).mark_text(**text).encode(x=x, y=y, text="text:N"),
        ]
    return layered(drawn, title, width, CELL * len(every), style)


def _heads(results: Sequence[Result], room: float, size: float) -> list[str]:
    """Tasks and their metrics, in lines if these fit."""
    parts = [(result.task.name, metric_name(result)) for result in results]
    if max(text_width(word, size) for pair in parts for x in pair for word in x.split()) > room:
        return distinct_names([", ".join(pair) for pair in parts])
    return distinct_names(["\n".join([t, *wrapped(m, room, size)]) for t, m in parts])


def of_localisation(group: Group, style: Style, room: float) -> Drawing:
    """Expected layers with their intervals, and centres of gravity: a bar per model and task.

    Raises:
        UserError: no result has an expected layer.
    """
    found = localisation(group, style, room)
    if found is None:
        why = get_measurement(LOCALISATION).missing_of(group.units[0].first)
        raise UserError(f"{group.title}: no result has an expected layer ({why}).")
    measured = {m for unit in group.units for m, x in unit.results.items() if x.found(LOCALISATION)}
    marks = [
        mark._replace(dash=SOLID, filled=False)
        for mark in _looks(group).marks()
        if mark.name in measured
    ]
    title = "Bars: expected layer, with its 95 % interval; marks: centre of gravity"
    return stacked([found], 1, title, style, marks, room)


def _looks(group: Group) -> Looks:
    """How models are told apart: random twins have their model's colour, paler."""
    looks = looks_of_models(group.models)
    pairs = zip(looks.names, looks.colours, strict=True)
    return looks._replace(colours=[c + "80" if name in looks.open else c for name, c in pairs])


def localisation(group: Group, style: Style, width: float) -> Drawing | None:
    """The bars; None if no result has been localised."""
    looks = _looks(group)
    rows: list[dict[str, Any]] = []
    for unit in group.units:
        for model, result in unit.results.items():
            expected = result.row(LOCALISATION, "expected_layer")
            gravity = result.row(LOCALISATION, "centre_of_gravity")
            if expected is None or gravity is None:
                continue
            rows.append(
                {
                    "task": group.short_title(unit),
                    "model": model,
                    "expected": _rounded(expected.value),
                    "low": _rounded(expected.low),
                    "high": _rounded(expected.high),
                    "layers": result.model.n_layers,
                    "said": {
                        "task": group.short_title(unit),
                        "model": model,
                        "expected layer": estimate_text(expected),
                        "centre of gravity": estimate_text(gravity),
                    },
                    "gravity": _rounded(gravity.value),
                }
            )
    if not rows:
        return None
    deepest = max(row["layers"] for row in rows)
    kept = list(dict.fromkeys(row["task"] for row in rows))
    step = style.text * 1.5
    scale = alt.Scale(domain=[0, deepest], nice=False)
    colours = alt.Scale(domain=looks.names, range=looks.colours)
    y = alt.Y("task:N", title=None, sort=None, scale=alt.Scale(domain=kept, paddingInner=0.25))
    # Of each task only models that were measured on it, in the order of all.
    offset = alt.YOffset("model:N", sort=looks.names)
    base = alt.Chart(table(rows)).encode(y=y, yOffset=offset)
    said: dict[str, Any] = {"tooltip": SAID} if style.hover else {}
    layers = alt.Axis(values=list(range(0, deepest + 1, -(-deepest // 12))), format="d")
    x = alt.X("expected:Q", title="layer", scale=scale, axis=layers)
    centre = alt.X("gravity:Q", title="layer", scale=scale)
    by: dict[str, Any] = {"scale": colours, "legend": None}
    shapes = alt.Scale(domain=looks.names, range=looks.shapes)
    drawn = [
        base.mark_bar(**said).encode(x=x, color=alt.Color("model:N", **by)),
        base.transform_filter("datum.low !== null")
        .transform_calculate(end="min(datum.high, datum.layers)")
        .mark_rule(color=style.ink, strokeWidth=0.8)
        .encode(x=alt.X("low:Q", scale=scale, title="layer"), x2="end:Q"),
        base.mark_point(fill="white", size=1.5 * style.marker**2, **said).encode(
            x=centre,
            stroke=alt.Stroke("model:N", **by),
            shape=alt.Shape("model:N", scale=shapes, legend=None),
        ),
        base.transform_filter("datum.expected === null")
        .mark_text(align="left", baseline="middle", dx=2)
        .encode(x=alt.XValue(0), text=alt.TextValue("undefined")),
    ]
    if not style.hover:
        numbers = base.mark_text(align="left", baseline="middle", dx=3)
        drawn.append(
            numbers.encode(x=alt.XValue("width"), text=alt.Text("expected:Q", format=".1f"))
        )
    return layered(drawn, "", width, alt.Step(step, **{"for": "offset"}), style)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
