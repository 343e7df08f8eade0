"""The best layer, mostly by scores on dev: one rule for all tables, charts and families.

It is the layer with the highest score; of several, the lowest. Layers whose score is undefined
(None or NaN) come last. So this holds for metrics of which higher is better.
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
        scores: a row for each score, with its layer in the column `layer`.
        by: columns that say which group, such as a record, a row belongs to.
        column: column of the scores.
    """
    defined = scores.dropna(subset=column)
    ordered = defined.sort_values([column, "layer"], ascending=[False, True], kind="stable")
    return ordered.drop_duplicates(by)
