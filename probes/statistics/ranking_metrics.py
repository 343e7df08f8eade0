"""Metrics of how well margins rank the examples of one class above those of another.

A margin is the logit of the second of two classes, the positive one, minus that of the first. The
metrics are functions of two curves: the weights of true and of false positives above each
threshold, from the highest threshold down. Values equal scikit-learn's, ties included.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from probes.common.arrays import Floats, Ints
from probes.statistics.gold import Gold, Predictions
from probes.statistics.sums import ratio, sparse_matrix

if TYPE_CHECKING:
    from scipy.sparse import csr_array

RATES = (0.001, 0.005, 0.01, 0.02, 0.05, 0.1)
"""False-positive rates at which recall is known as a metric."""

RATE = 0.05
"""The rate of tasks that are not scored by their ranking."""

FEWEST_OF_CLASS = 10
"""Rankings have intervals and tests from so many examples of either class of test: simulated, the
95 % interval of AUROC covers 13 to 30 % with one positive, and 80 to 97 % with nine."""

FEWEST_EVENTS = 3
"""Recall has intervals and tests if so many negatives of test are above the threshold."""


def recall_name(rate: float) -> str:
    """Name of the metric of recall at a false-positive rate: ``recall_at_1_fpr``."""
    return f"recall_at_{100 * rate:g}_fpr"


RANKING = ("auroc", "average_precision", recall_name(RATE))
"""Metrics of all tasks with two classes of texts or of given vectors."""


def margin_parts(gold: Gold, margins: Predictions) -> csr_array:
    """Each sentence's positives, and then negatives, at every distinct margin from the highest.

    Shape (sentences, 2 × n): there are as many columns as if all margins were distinct. A label
    that train lacks belongs to neither of the classes.
    """
    (known,) = np.nonzero(gold.labels >= 0)
    _, rank = np.unique(-margins[known], return_inverse=True)
    n = max(1, len(known))
    index = gold.sentence_index[known], rank + n * (gold.labels[known] == 0)
    return sparse_matrix((np.ones(len(known)), index), (gold.n_sentences, 2 * n))


def _rate_curves(sums: Floats) -> tuple[Floats, Floats]:
    """Weights of true and of false positives above each threshold. Each (…, thresholds)."""
    true, false = np.split(np.ascontiguousarray(sums), 2, axis=-1)
    return np.cumsum(true, -1), np.cumsum(false, -1)


def roc_auc(sums: Floats) -> Floats:
    """The probability that a positive is above a negative, ties counting half."""
    true, false = _rate_curves(sums)
    new_true, new_false = np.split(sums, 2, axis=-1)
    area = new_false * (true - new_true / 2)
    return ratio(area.sum(-1), true[..., -1] * false[..., -1])


def average_precision(sums: Floats) -> Floats:
    """Precision at each threshold, weighted by the recall that it adds."""
    true, false = _rate_curves(sums)
    precision = ratio(true, true + false, otherwise=0.0)
    return ratio((np.split(sums, 2, axis=-1)[0] * precision).sum(-1), true[..., -1])


def recall_at(rate: float, sums: Floats) -> Floats:
    """The highest recall at a threshold with at most this share of the negatives above it."""
    true, false = _rate_curves(sums)
    allowed = false <= rate * false[..., -1:]
    recall = ratio((true * allowed).max(-1), true[..., -1])
    return np.where(false[..., -1] > 0, recall, np.nan)


def mean_recall_to(rate: float, sums: Floats) -> Floats:
    """Mean of `recall_at` over all rates up to this one, which is smooth where that has steps."""
    true, false = _rate_curves(sums)
    shares = ratio(false, false[..., -1:]).clip(max=rate)
    widths = np.diff(shares, append=rate)
    return ratio((true * widths).sum(-1), rate * true[..., -1])


def threshold_at(rate: float, negatives: Floats) -> float:
    """The smallest threshold with at most this share of negatives above it.

    Args:
        negatives: margins of at least one negative. Shape (n,).
    """
    return float(np.sort(negatives)[len(negatives) - 1 - int(rate * len(negatives))])


def exact_interval(k: float, n: float, tail: float = 0.025) -> tuple[float, float]:
    """Interval of a rate from k of n events (Clopper & Pearson 1934); k and n may be fractions."""
    from scipy.special import betaincinv

    low = float(betaincinv(k, n - k + 1, tail)) if k > 0 else 0.0
    high = float(betaincinv(k + 1, n - k, 1 - tail)) if k < n else 1.0
    return low, high


def rate_interval(events: Floats, cluster: Ints) -> tuple[float, float]:
    """95 % interval of a rate: exact, for as many independent examples as those of clusters equal.

    The effective number of examples is n divided by the design effect, and that of the clusters if
    all examples are alike (Korn & Graubard 1998).

    Args:
        events: 1 or 0 for each example. Shape (n,).
        cluster: cluster of each. Shape (n,).
    """
    _, cluster = np.unique(cluster, return_inverse=True)
    n, n_clusters, rate = len(events), int(cluster.max()) + 1, float(events.mean())
    effective = float(n)
    if n_clusters < n:
        sums = np.bincount(cluster, events - rate)
        variance = (sums**2).sum() / n**2 * n_clusters / max(1, n_clusters - 1)
        effective = min(n, rate * (1 - rate) / variance) if variance else n_clusters
    return exact_interval(rate * effective, effective)


def chosen_rate_interval(k: int, cluster: Ints, n_layers: int) -> tuple[float, float]:
    """95 % interval of the true rate above the threshold of the layer that was chosen.

    Layers may be chosen by anything, also by the same negatives: the interval of each is exact at
    level 1 − .05 / L (Bonferroni). Examples of a cluster count as alike, which they are at most.

    Args:
        k: number of negatives above the threshold of each layer.
        cluster: cluster of each negative. Shape (n,).
        n_layers: L, the number of layers among which one was chosen.
    """
    n, sizes = len(cluster), np.unique(cluster, return_counts=True)[1]
    effective = float(n**2 / (sizes**2).sum())
    return exact_interval(k / n * effective, effective, 0.025 / n_layers)
