"""The best layer by scores on a split, mostly dev: one rule for all tables, charts and families.

The layer with the highest score is the best; of equal ones the lowest. A score may be undefined
(None or NaN), and such a layer comes after all that have a score. Higher has to be better.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


def best_layer_of(scores: Mapping[int, float | None]) -> int:
    """The best layer of one model, by scores of its layers; the lowest if none is defined."""

    def sort_key(layer: int) -> tuple[float, int]:
        score = scores[layer]
        return math.inf if score is None or math.isnan(score) else -score, layer

    return min(scores, key=sort_key)


def best_layer_rows(scores: pd.DataFrame, by: Sequence[str], column: str = "value") -> pd.DataFrame:
    """The row of the best layer of each group; none of a group in which no score is defined.

    Args:
        scores: a row for each layer, which stands in the column `layer`, and score.
        by: columns that say which group, such as a record, a row belongs to.
        column: column of the scores.
    """
    defined = scores.dropna(subset=column)
    ordered = defined.sort_values([column, "layer"], ascending=[False, True], kind="stable")
    return ordered.drop_duplicates(by)
