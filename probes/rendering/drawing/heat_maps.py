"""Expected layers as bars, for the page (Tenney et al. 2019a)."""

from __future__ import annotations

from typing import Any

import altair as alt

from probes.boards.groups import Group
from probes.measurements.cells import estimate_text
from probes.measurements.measurement import LOCALISATION
from probes.rendering.drawing.style import (
    SAID,
    Drawing,
    Looks,
    Style,
    layered,
    looks_of_models,
    table,
)


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
