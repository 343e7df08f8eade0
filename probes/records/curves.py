"""Curves over layers with intervals, one per model: what charts and figures draw."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from probes.records.values import Interval


class Point(NamedTuple):
    """One point of a curve: a layer, or the last layer of a mix, with its value and interval."""

    layer: int
    value: float | None
    interval: Interval = None


@dataclass(frozen=True)
class Curves:
    """One measure of one task, for every model that has it.

    Attributes:
        name: identifies it on a page: letters and underscores.
        axis: title of the axis of values.
        metric: the metric that the values are printed as; empty for plain numbers.
        percent: whether values are shares, to be drawn as percentages.
        what: what a point is of: "layer", or "layers 0 to k".
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
    models: dict[str, list[Point]] = field(default_factory=dict)
    levels: dict[str, float] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)

    @property
    def scale(self) -> int:
        """Factor of the drawn values."""
        return 100 if self.percent else 1
