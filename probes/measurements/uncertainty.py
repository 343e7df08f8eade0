"""95 % intervals of test scores, test sentences resampled."""

from __future__ import annotations

from collections.abc import Sequence

from probes.records.values import Interval
from probes.statistics.bootstrap import MIN_SENTENCES, bounds, interval, replicates, resample
from probes.statistics.gold import Gold, Predictions
from probes.statistics.metrics import metrics


def intervals(
    gold: Gold, names: Sequence[str], predicted: Predictions
) -> dict[str, list[Interval]]:
    """The interval of every metric, by metric, for each of several sets of predictions.

    With very few sentences there are none.

    Args:
        predicted: shape (cells, n).
    """
    if gold.n_sentences < MIN_SENTENCES:
        return {name: [None] * len(predicted) for name in names}
    draws = resample(gold.n_sentences)
    return {
        name: [
            bounds(pair) for pair in interval(replicates(metrics.get(name), gold, predicted, draws))
        ]
        for name in names
    }
