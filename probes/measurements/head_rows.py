"""Numbers of attention heads as they are read from rows: by measure and feature, and of the best.

Rows of the measurement `attention` have the axes ``head``, ``feature`` and ``direction``, where
they are of one. Baselines are rows of their own with the axis ``baseline``, which says what it is:
"uniform", "controls", "offset +1" and the like; without a head it is that of all heads of the
layer, without a layer that of all. Of every feature, the rows of the head that is best on dev have
the axis ``chosen``: its test score, its baseline, what is reached by ``chance``, and, as
``above_baseline`` of the ``measure``, the difference of score and baseline, resampled together,
with its p-value.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from probes.common.arrays import Floats
from probes.records.row import Place, Row
from probes.statistics.significance import ALPHA

EVERY, NOT_PUNCTUATION = "all", "all but punct"
"""Relations of a word to its head that are no relations of the annotation."""

CHANCE, ABOVE = "chance", "above_baseline"

CLASS = "class"


@dataclass(frozen=True)
class HeadNumbers:
    """One measure of one feature for every head; NaN where there is no number.

    Attributes:
        n: sentences, words or links that are averaged over.
        values, low, high: with the ends of 95 % intervals. Shape (layers, heads).
        baseline: shape (layers, heads).
        kind: of baseline.
    """

    n: int | None
    values: Floats
    low: Floats
    high: Floats
    baseline: Floats
    kind: str


@dataclass(frozen=True)
class Choice:
    """The head that is best on dev by a feature, scored on test; see above."""

    test: Row
    baseline: Row
    chance: Row
    difference: Row

    @property
    def feature(self) -> str:
        """Empty if the measure has none."""
        return str(self.test.axes.get("feature", ""))

    @property
    def name(self) -> str:
        """Layer and head: ``3–9``."""
        return f"{self.test.layer}–{self.test.axes['head']}"

    @property
    def kind(self) -> str:
        """Of baseline."""
        return str(self.baseline.axes["baseline"])

    @property
    def is_better(self) -> bool:
        """Whether the head is above its baseline beyond chance."""
        value, p = self.difference.value, self.difference.p
        return value is not None and value > 0 and p is not None and p < ALPHA


def _part(row: Row) -> str:
    """Which attribute of a `Choice` a row is."""
    if row.metric == ABOVE:
        return "difference"
    kind = row.axes.get("baseline")
    return "chance" if kind == CHANCE else "baseline" if kind else "test"


_Key = tuple[str, Place, Place, str]
"""Metric, feature, direction and split."""


def _key(row: Row) -> _Key:
    return row.metric, row.axes.get("feature"), row.axes.get("direction"), row.split


def _head_and_key(row: Row) -> tuple[int | None, Place, _Key]:
    return row.layer, row.axes.get("head"), _key(row)


class HeadRows:
    """The rows of a record.

    Attributes:
        layers: ascending.
        n_heads: of each layer.
        classes: the class of each head by layer and head, counted from 1.
        choices: in their order.
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        self._cells: dict[_Key, list[Row]] = defaultdict(list)
        self._baselines: dict[_Key, dict[tuple[Place, Place], Row]] = defaultdict(dict)
        self.classes: dict[tuple[int, int], str] = {}
        chosen: dict[tuple[Place, Place], dict[str, Row]] = defaultdict(dict)
        places: set[tuple[int, int]] = set()
        for row in rows:
            axes: Mapping[str, Any] = row.axes
            feature = axes.get("feature")
            of = _key(row)
            if "chosen" in axes:
                chosen[axes.get("measure", row.metric), feature][_part(row)] = row
            elif "baseline" in axes:
                self._baselines[of][row.layer, axes.get("head")] = row
            elif row.layer is not None and "head" in axes:
                places.add(place := (row.layer, axes["head"]))
                if row.metric == CLASS:
                    self.classes[place] = str(feature)
                else:
                    self._cells[of].append(row)
        self.layers = sorted({layer for layer, _ in places})
        self.n_heads = max((head for _, head in places), default=0)
        self.choices = [Choice(**each) for each in chosen.values()]
        self._chosen = {_head_and_key(choice.test): choice for choice in self.choices}

    def of(
        self, measure: str, feature: Place = None, direction: Place = None, split: str = "test"
    ) -> HeadNumbers | None:
        """One measure of one feature; None if it was not measured."""
        key = measure, feature, direction, split
        rows = self._cells.get(key)
        if not rows:
            return None
        baselines = list(self._baselines.get(key, {}).values())
        kind = str(baselines[0].axes["baseline"]) if baselines else ""
        values, low, high = (self._grid(rows, name) for name in ("value", "low", "high"))
        return HeadNumbers(rows[0].n, values, low, high, self._grid(baselines, "value"), kind)

    def each(self, measure: str) -> dict[tuple[Place, Place], HeadNumbers]:
        """All features of a measure on test, by feature and direction."""
        keys = [key for key in self._cells if key[0] == measure and key[3] == "test"]
        return {key[1:3]: found for key in keys if (found := self.of(*key))}

    def baseline_of(self, row: Row) -> Row | None:
        """The baseline of a head's number."""
        axes = row.axes
        found = self._baselines.get(_key(row), {})
        places = (row.layer, axes.get("head")), (row.layer, None), (None, None)
        return next((found[place] for place in places if place in found), None)

    def choice_of(self, row: Row) -> Choice | None:
        """The choice of a head whose score on test this is."""
        return self._chosen.get(_head_and_key(row))

    def choices_of(self, measure: str) -> list[Choice]:
        """The chosen heads of a measure."""
        return [choice for choice in self.choices if choice.test.metric == measure]

    def _grid(self, rows: Iterable[Row], field: str) -> Floats:
        place = {layer: i for i, layer in enumerate(self.layers)}
        found = np.full((len(self.layers), self.n_heads), np.nan)
        for row in rows:
            head: Any = row.axes.get("head")
            layer = slice(None) if row.layer is None else place[row.layer]
            # numpy reads None as NaN.
            found[layer, slice(None) if head is None else head - 1] = getattr(row, field)
        return found
