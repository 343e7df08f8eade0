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

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from probes.common.arrays import Floats
from probes.records.row import Place, Row
from probes.statistics.significance import ALPHA
from probes.tables.table import NOTHING

OFFSETS = range(-5, 6)
"""Distances at which attention is counted; 0 is the token itself."""

COLUMNS = 2
"""The columns of a vertical pattern: those that get the most attention, such as [CLS] and [SEP]."""

STATISTICS = (
    "entropy",
    "first",
    "separators",
    *(f"offset {offset:+d}" for offset in OFFSETS),
    "vertical",
    "diagonal",
    "block",
)
"""What is kept of each map."""


DIRECTIONS = ("dependent to head", "head to dependent")
"""Who attends to whom."""

ROLE_DIRECTIONS = ("argument to predicate", "predicate to argument")
"""The same of links of semantic roles."""

TREES = (*DIRECTIONS, "undirected")
"""How a tree is read from a map."""

TOKENS = 16
"""Length of the texts whose maps are averaged, special tokens included."""

MIX_SENTENCES = 2000
"""Training sentences that mixes of heads are fitted to, by default."""


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


CLEAR, MIXED = 0.5, 0.2

BOUNDS = (0.4, 0.5, 0.6, 0.7)
"""What `CLEAR` might be as well; nothing is said of the share of a class that one contradicts."""

MASSES = ("vertical", "diagonal", "block")

CLASSES = {
    "vertical": "V",
    "diagonal": "D",
    "vertical + diagonal": "VD",
    "block": "B",
    "heterogeneous": "H",
}
"""The classes, each with its sign in pictures."""


def beyond_uniform(mass: Floats, uniform: Floats) -> Floats:
    """The share of attention that a pattern takes beyond uniform attention; at most 1."""
    rest = 1 - uniform
    return np.divide(mass - uniform, rest, out=np.zeros_like(mass), where=rest > 0)


def pattern_of(masses: Mapping[str, float], clear: float = CLEAR) -> str:
    """The class of a head.

    Kovaleva et al. (2019), section 4.1, name the classes. They had a convolutional network tell
    them apart that was trained on some 400 maps labelled by hand; neither network nor labels were
    published. Here a rule does, from the share of attention that each pattern takes beyond what
    uniform attention gives it:

    - diagonal: a token's attention to itself and both neighbours;
    - vertical: attention to the two tokens that get most of it from other rows than are counted;
    - block: attention of words to words of their own segment, in texts of two segments.

    A head is vertical + diagonal if both masses are `MIXED` or more and together `clear`; otherwise
    it has the class of the greatest mass, if that is `clear`; otherwise it is heterogeneous.

    Args:
        masses: beyond uniform attention, by name; block is missing in texts of one segment.
    """
    both = masses["vertical"], masses["diagonal"]
    if min(both) >= MIXED and sum(both) >= clear:
        return "vertical + diagonal"
    greatest = max(masses, key=lambda name: masses[name])
    return greatest if masses[greatest] >= clear else "heterogeneous"


def classes(found: HeadRows, clear: float = CLEAR) -> list[list[str]]:
    """The class of every head, by layer, then by head."""
    beyond = {
        str(name): beyond_uniform(mass.values, mass.baseline)
        for (name, _), mass in found.each("pattern").items()
    }
    return [
        [
            pattern_of({name: each[layer, head] for name, each in beyond.items()}, clear)
            for head in range(found.n_heads)
        ]
        for layer in range(len(found.layers))
    ]


def counted_classes(found: HeadRows) -> list[tuple[str, ...]]:
    """How many heads have each class: cells of a row for each layer, then of all for each bound."""
    rows = [(str(layer), names) for layer, names in zip(found.layers, classes(found), strict=True)]
    rows += [
        (f"all, {bound:.1f}".replace("0.", "."), list(chain(*classes(found, bound))))
        for bound in BOUNDS
    ]
    counts = [(first, Counter(names)) for first, names in rows]
    return [(first, *(str(of[name] or NOTHING) for name in CLASSES)) for first, of in counts]


WHERE_BOUNDS = (
    f"Layers: with a bound of {CLEAR:.1f}; last rows: of all heads with other bounds, too."
).replace(" 0.", " .")
"""What the rows of counts are."""
