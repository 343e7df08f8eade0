"""95 % intervals of test scores over documents or sentences."""

from __future__ import annotations

from collections.abc import Sequence

from probes.records.values import Interval
from probes.statistics.bootstrap import bounds, draws_of, interval, replicates
from probes.statistics.gold import Gold, Predictions
from probes.statistics.metrics import metrics


def intervals(
    gold: Gold, names: Sequence[str], predicted: Predictions
) -> dict[str, list[Interval]]:
    """The interval of every metric, by metric, for each of several sets of predictions.

    With very few clusters there are none.

    Args:
        predicted: shape (cells, n).
    """
    draws = draws_of(gold)
    if draws is None:
        return {name: [None] * len(predicted) for name in names}
    return {
        name: [
            bounds(pair) for pair in interval(replicates(metrics.get(name), gold, predicted, draws))
        ]
        for name in names
    }
