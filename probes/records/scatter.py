"""Points in a plane: what charts and figures draw of distances."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

from probes.records.values import span_of


class ScatterPoint(NamedTuple):
    """A point in a plane.

    Attributes:
        text: written beside it if there is room.
        group: what its marker stands for, such as a class; also its colour if it has no level.
        level: its place on a colour scale, such as a layer.
    """

    x: float
    y: float
    text: str = ""
    group: str = ""
    level: float | None = None


@dataclass(frozen=True)
class Scatter:
    """Points in a plane whose axes have no unit, such as heads by multidimensional scaling.

    Attributes:
        name: identifies it on a page: letters and underscores.
        points: a plane for each model, by label.
        scale: what the levels of points are; empty if they have none.
        missing: why a model has no points, by model.
        order: groups in the order of their colours and markers, which are then the same in every
            chart; others follow.
    """

    name: str
    title: str
    note: str
    points: dict[str, tuple[ScatterPoint, ...]] = field(default_factory=dict)
    scale: str = ""
    missing: dict[str, str] = field(default_factory=dict)
    order: tuple[str, ...] = ()

    @property
    def groups(self) -> list[str]:
        """Groups of all planes, and those of `order`."""
        found = (p.group for points in self.points.values() for p in points)
        return list(dict.fromkeys([*self.order, *found]))

    @property
    def fault(self) -> str:
        """What does not fit, as "the chart has …"; empty if everything does."""
        if without := [label for label, points in self.points.items() if not points]:
            return f"no points of {', '.join(without)}, which it does not say are missing"
        every = (p for points in self.points.values() for p in points)
        if not all(math.isfinite(p.x) and math.isfinite(p.y) for p in every):
            return "a point that is nowhere: its place is not a number"
        return ""

    @property
    def span(self) -> tuple[float, float]:
        """The ends of the colour scale; 0 and 1 if no point has a level."""
        return span_of((p.level for points in self.points.values() for p in points), None, None)
