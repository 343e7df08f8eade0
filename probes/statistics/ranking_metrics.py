"""Metrics of how well a number ranks the examples of one class above those of another.

They are functions of two curves: the weights of true and of false positives above each threshold,
from the highest threshold down. An example's weight is the count of its cluster in a resample.
Values equal scikit-learn's `roc_auc_score` and `average_precision_score`, ties included.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from probes.common.arrays import Floats
from probes.records.values import Estimate
from probes.statistics.bootstrap import draws_of, estimate_of, missing_estimate
from probes.statistics.gold import Gold
from probes.statistics.sums import ratio

FALSE_POSITIVE_RATE = 0.05

_AT_ONCE = 1 << 22
"""Weights of examples in memory at once."""


def _roc_auc(true: Floats, false: Floats) -> Floats:
    """The probability that a positive is above a negative, ties counting half."""
    area = np.diff(false, prepend=0) * (true - np.diff(true, prepend=0) / 2)
    return ratio(area.sum(-1), true[..., -1] * false[..., -1])


def _average_precision(true: Floats, false: Floats) -> Floats:
    """Precision at each threshold, weighted by the recall that it adds."""
    precision = ratio(true, true + false, otherwise=0.0)
    return ratio((np.diff(true, prepend=0) * precision).sum(-1), true[..., -1])


def _recall(true: Floats, false: Floats) -> Floats:
    """The highest recall at a threshold with at most 5 % of the negatives above it."""
    allowed = false <= FALSE_POSITIVE_RATE * false[..., -1:]
    recall = ratio((true * allowed).max(-1), true[..., -1])
    return np.where(false[..., -1] > 0, recall, np.nan)


RANKING: dict[str, Callable[[Floats, Floats], Floats]] = {
    "auroc": _roc_auc,
    "average_precision": _average_precision,
    "recall_at_5_fpr": _recall,
}
"""Functions of the two curves (…, thresholds). NaN where a class has no weight."""


def rate_curves(
    margins: Floats, positive: NDArray[np.bool_], weights: Floats
) -> tuple[Floats, Floats]:
    """The weights of true and of false positives above each threshold. Each (R, thresholds).

    Args:
        margins: scores for the positive class. Shape (n,).
        positive: True for examples of the positive class. Shape (n,).
        weights: weight of each example in each of R resamples. Shape (R, n).
    """
    order = np.argsort(-margins, kind="stable")
    (ends,) = np.nonzero(np.diff(margins[order], append=np.nan) != 0)
    weights, positive = weights[:, order], positive[order]
    true, false = (np.cumsum(weights * mask, axis=1)[:, ends] for mask in (positive, ~positive))
    return true, false


def ranking_scores(gold: Gold, margins: Floats) -> dict[str, list[Estimate]]:
    """Each metric for each row of margins (cells, n); the second of two classes is positive.

    Intervals resample clusters; they do not include training variation.
    """
    # A label that train lacks (-1) belongs to neither of the two classes.
    has_label = gold.labels >= 0
    positive, cluster = gold.labels[has_label] == 1, gold.clusters[gold.sentence_index[has_label]]
    if len(set(positive)) < 2:
        return {name: [missing_estimate("one class in test")] * len(margins) for name in RANKING}
    draws, at_once = draws_of(gold), max(1, _AT_ONCE // len(cluster))
    blocks = [] if draws is None else np.split(draws, range(at_once, len(draws), at_once))
    estimates: dict[str, list[Estimate]] = {name: [] for name in RANKING}
    for row in margins[:, has_label]:
        curves = rate_curves(row, positive, np.ones((1, len(row))))
        resampled = [rate_curves(row, positive, x[:, cluster].astype(np.float64)) for x in blocks]
        for name, metric in RANKING.items():
            values = [metric(*part) for part in resampled]
            replicates = np.concatenate(values) if values else None
            clusters = "clusters" if gold.partition is None else gold.partition.clusters
            estimates[name].append(estimate_of(float(metric(*curves)[0]), replicates, clusters))
    return estimates
