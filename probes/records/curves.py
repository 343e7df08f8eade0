"""Curves with intervals, mostly over layers and one per model: what charts and figures draw."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

from probes.records.values import Interval


class Point(NamedTuple):
    """One point of a curve, with its value and interval.

    Attributes:
        x: a layer, the last layer of a mix, or what else `Curves.what` says.
        line: which curve it is on where a model has several.
        panel: which panel it is in where a chart has several.
        floored: whether it is a score that is not above its floor, and set back for that.
    """

    x: int
    value: float | None
    interval: Interval = None
    line: str = ""
    panel: str = ""
    floored: bool = False


@dataclass(frozen=True)
class Curves:
    """One measure of one task, for every model that has it.

    Attributes:
        name: identifies it on a page: letters and underscores.
        axis: title of the axis of values.
        metric: the metric that the values are printed as; empty for plain numbers.
        percent: whether values are shares, to be drawn as percentages.
        what: what a point is of: "layer", "layers 0 to k", or another title of the axis of x.
        log: whether the axis of x is logarithmic.
        models: points by model.
        levels: values that are the same at every layer, by name.
        missing: why a model has no curve, by model.
    """

    name: str
    title: str
    note: str
    axis: str
    metric: str = ""
    percent: bool = False
    what: str = "layer"
    log: bool = False
    models: dict[str, list[Point]] = field(default_factory=dict)
    levels: dict[str, float] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)

    @property
    def lines(self) -> list[str]:
        """Names of the curves that a model has; one empty name if it has one."""
        return list(dict.fromkeys(p.line for points in self.models.values() for p in points))

    @property
    def panels(self) -> list[Curves]:
        """A chart for each panel, which has its title; alone if it has no panels."""
        every = dict.fromkeys(p.panel for points in self.models.values() for p in points)
        if set(every) <= {""}:
            return [self]
        return [
            replace(
                self,
                title=panel,
                models={m: [p for p in x if p.panel == panel] for m, x in self.models.items()},
            )
            for panel in every
        ]

    @property
    def scale(self) -> int:
        """Factor of the drawn values."""
        return 100 if self.percent else 1
