"""Intervals of a result's scores, and tests between its layers, from resampled test sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probes.records.payload import LayerResult
from probes.records.result import best_of
from probes.statistics.bootstrap import MIN_SENTENCES, bounds, interval, replicates, resample
from probes.statistics.gold import Gold
from probes.statistics.metrics import metrics
from probes.statistics.significance import holm, paired_p


def with_uncertainty(
    layers: Sequence[LayerResult],
    predicted: NDArray[Any],
    gold: Gold,
    names: Sequence[str],
) -> tuple[LayerResult, ...]:
    """Add intervals of every metric to the layers, and p-values of the headline metric.

    Both are for the probes of seed 0, whose scores are reported. Every layer is tested against the
    layer that is best on dev, on the same resamples (paired bootstrap); p-values are corrected by
    Holm's method over these comparisons. With very few sentences there are neither.

    Args:
        predicted: seed 0's predictions on test. Shape (layers, n).
        names: metrics, the headline metric first.
    """
    if gold.n_sentences < MIN_SENTENCES:
        nothing = dict.fromkeys(names)
        return tuple(x.model_copy(update={"intervals": nothing, "p_best": None}) for x in layers)
    draws = resample(gold.n_sentences)
    values = {name: replicates(metrics.get(name), gold, predicted, draws) for name in names}
    intervals = {name: interval(found) for name, found in values.items()}
    headline = values[names[0]]
    best = best_of(layers, names[0])
    others = [i for i, layer in enumerate(layers) if layer is not best]
    p_values = holm(paired_p(headline[others], headline[layers.index(best)]))
    known = [None if np.isnan(p) else float(p) for p in p_values]
    p_best = dict(zip(others, known, strict=True))
    return tuple(
        layer.model_copy(
            update={
                "intervals": {name: bounds(intervals[name][i]) for name in names},
                "p_best": p_best.get(i),
            }
        )
        for i, layer in enumerate(layers)
    )
