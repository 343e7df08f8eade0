"""Numbers of attention heads, read from rows, and the class of each head.

Rows of the measurement `attention` have the axes ``head``, ``feature`` and ``direction`` where
they apply. Baselines are rows of their own; the axis ``baseline`` names the kind: "uniform",
"offset +1" and so on. A baseline without a layer holds for all heads, one with a layer for its
heads. For every relation, and for trees, four rows describe the head that is best on dev and have
the axis ``chosen``: test score, baseline, ``chance``, and ``above_baseline`` of the ``measure``,
the difference of score and baseline with its p-value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from probes.measurements.measurement import CSV_FIELDS
from probes.measurements.row_filters import rows_where as rows_where
from probes.records.row import AxisValue, Row
from probes.statistics.significance import ALPHA
from probes.statistics.sums import ratio

if TYPE_CHECKING:
    import pandas as pd

OFFSETS = range(-5, 6)
"""Distances at which attention is counted; 0 is the token itself."""

COLUMNS = 2
"""The columns of a vertical pattern: those that get the most attention, such as [CLS] and [SEP]."""

MASSES = ("vertical", "diagonal")
"""Statistics from which classes are made."""

BLOCK = "block"
SEGMENTS = (BLOCK, "other segment")
"""Statistics of texts of two segments: attention of words to their own and the other segment."""

STATISTICS = (
    *("entropy", "first", "separators"),
    *(f"offset {offset:+d}" for offset in OFFSETS),
    *MASSES,
)
"""Numbers kept for each map."""

DIRECTIONS, UNDIRECTED = ("dependent to head", "head to dependent"), "undirected"
"""Directions of attention between a word and its head."""

TREES = (*DIRECTIONS, UNDIRECTED)
"""Ways to read a tree from a map."""

TOKENS = 16
"""Length of the texts whose maps are averaged, including special tokens."""

EVERY, NOT_PUNCTUATION = "all", "all but punct"
"""Groups of relations, beside those of the annotation."""

CHANCE, ABOVE, CLASS = "chance", "above_baseline", "class"


@dataclass(frozen=True)
class Choice:
    """The head that is best on dev for a relation or for trees, with its test rows."""

    test: Row
    baseline: Row
    chance: Row
    difference: Row

    @property
    def feature(self) -> str:
        """Name of the relation; empty for trees."""
        return str(self.test.axes.get("feature", ""))

    @property
    def name(self) -> str:
        """Layer and head: ``3–9``."""
        return f"{self.test.layer}–{self.test.axes['head']}"

    @property
    def kind(self) -> str:
        """Kind of baseline."""
        return str(self.baseline.axes["baseline"])

    @property
    def is_better(self) -> bool:
        """True if the head is above its baseline beyond chance."""
        value, p = self.difference.value, self.difference.p
        return value is not None and value > 0 and p is not None and p < ALPHA


def choices(rows: Iterable[Row]) -> list[Choice]:
    """The chosen heads, in the order of their rows."""
    rows_by_choice: dict[tuple[AxisValue, ...], dict[str, Row]] = {}
    for row in rows:
        if "chosen" in row.axes:
            kind = row.axes.get("baseline")
            part = "chance" if kind == CHANCE else "baseline" if kind else "test"
            measure = row.axes.get("measure", row.metric)
            of = measure, row.axes.get("feature"), row.axes.get("direction")
            rows_by_choice.setdefault(of, {})["difference" if row.metric == ABOVE else part] = row
    return [Choice(**parts) for parts in rows_by_choice.values()]


def numbers(rows: Iterable[Row]) -> Iterator[dict[str, Any]]:
    """The lines of ``heads.csv``: numbers with their baselines; the chosen with chance and p."""

    def key(row: Row) -> tuple[AxisValue, ...]:
        of = row.axes.get
        return row.metric, row.split, of("feature"), of("direction"), of("head"), row.layer

    all_rows = list(rows)
    best = {key(choice.test): choice for choice in choices(all_rows)}
    baselines = {
        key(row): row for row in all_rows if "baseline" in row.axes and "chosen" not in row.axes
    }
    for row in all_rows:
        if row.metric == ABOVE or "baseline" in row.axes or "chosen" in row.axes:
            continue
        *of, head, layer = place = key(row)
        # The baseline of this head, or else that of its layer, or of all heads.
        places = (*of, head, layer), (*of, None, layer), (*of, None, None)
        baseline = next((baselines[x] for x in places if x in baselines), None)
        choice = best.get(place)
        yield {
            "layer": layer,
            **{axis: row.axes.get(axis) for axis in ("head", "feature", "direction")},
            **{name: getattr(row, name) for name in CSV_FIELDS},
            "baseline": baseline and baseline.value,
            "baseline_kind": baseline and baseline.axes["baseline"],
            "chance": choice and choice.chance.value,
            "p": choice and choice.difference.p,
            "chosen": choice and "yes",
            "n": row.n,
        }


def head_frame(rows: Iterable[Row]) -> pd.DataFrame:
    """Numbers of single heads, one per line, with the columns of ``heads.csv``."""
    import pandas as pd

    frame = pd.DataFrame(numbers(rows), dtype=object)
    return frame[frame["head"].notna()]


def grid(heads: pd.DataFrame, metric: str, column: str = "value", **places: Any) -> pd.DataFrame:
    """One number of a measure, by layer (rows) and head (columns).

    Args:
        heads: see `head_frame`.
        places: feature and direction, where the measure has them, and the split if not test.
    """
    where = {"feature": None, "direction": None, **places}
    return rows_where(heads, [metric], where).pivot(index="layer", columns="head", values=column)


CLEAR, MIXED = 0.5, 0.2

BOUNDS = (0.4, 0.5, 0.6, 0.7)
"""Other plausible values of `CLEAR`; a share of a class is stated only if all of them agree."""

CLASSES = {"vertical": "V", "diagonal": "D", "vertical + diagonal": "VD", "heterogeneous": "H"}
"""The classes, each with its sign in pictures."""


def masses(rows: Iterable[Row]) -> pd.DataFrame:
    """Masses beyond uniform attention, by layer and head (rows) and pattern (columns)."""
    frame = rows_where(head_frame(row for row in rows if row.metric == "pattern"), (), {})
    mass, uniform = (frame[name].to_numpy(dtype=float) for name in ("value", "baseline"))
    wide = frame.assign(value=ratio(mass - uniform, 1 - uniform, 0.0)).pivot(
        index=["layer", "head"], columns="feature", values="value"
    )
    return wide[[name for name in (*MASSES, BLOCK) if name in wide]]


def classes(of_heads: pd.DataFrame, clear: float = CLEAR) -> pd.Series:
    """The class of every head, by layer and head.

    The classes are those of Kovaleva et al. (2019), section 4.1. Their classifier was trained on
    some 400 hand-labelled maps and never published, so a rule decides here, from the share of
    attention that each pattern takes beyond uniform attention:

    - diagonal: a token's attention to itself and both neighbours;
    - vertical: attention to the two tokens that receive most, chosen on the other half of the rows;
    - block: attention of words to words of their own segment, in texts of two segments.

    A head is vertical + diagonal if both masses are at least `MIXED` and their sum at least
    `clear`. Otherwise it has the class of the greatest mass if that is at least `clear`, else it
    is heterogeneous.

    Args:
        of_heads: see `masses`.
    """
    greatest = of_heads.idxmax(axis=1).where(of_heads.max(axis=1) >= clear, "heterogeneous")
    two = of_heads[[*MASSES]]
    is_both = (two.min(axis=1) >= MIXED) & (two.sum(axis=1) >= clear)
    return greatest.mask(is_both, "vertical + diagonal")
