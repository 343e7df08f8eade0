"""Comparison of two sets of answers to the same questions; both classes count alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from probes.common.arrays import Floats, Ints
from probes.statistics.bootstrap import interval, resample
from probes.statistics.metrics import metric_over_draws, metrics
from probes.statistics.partition import FEWEST
from probes.statistics.replicates import Replicates, p_values_of
from probes.statistics.sums import ratio, sparse_matrix

if TYPE_CHECKING:
    from numpy.typing import NDArray


def fitted_threshold(log_odds: Floats, positive: NDArray[np.bool_]) -> float:
    """The threshold at which both classes are recognised about equally often.

    It is 0 or lies halfway between two neighbouring log-odds; ties go to the one nearest to 0. We
    do not maximise balanced accuracy: without any signal, its maximum lies anywhere by chance, even
    where nearly all answers are the same.

    Args:
        log_odds: log-odds of the first class. Shape (n,).
        positive: True for examples of the first class; both classes occur. Shape (n,).
    """
    values = np.unique(log_odds)
    thresholds = np.concatenate([[0.0], (values[1:] + values[:-1]) / 2])
    positive_recall = (log_odds > thresholds[:, None])[:, positive].mean(1)
    negative_recall = (log_odds < thresholds[:, None])[:, ~positive].mean(1)
    gap = np.abs(positive_recall - negative_recall)
    best = thresholds[gap == gap.min()]
    return float(best[np.abs(best).argmin()])


@dataclass(frozen=True)
class TwoAnswers:
    """Right and wrong answers of two systems; every number is a mean over both classes.

    Attributes:
        one, other: 1 for a right answer, 0 for a wrong one. Each (n,).
        positive: True for examples of the first class. Shape (n,).
        cluster: cluster of each example. Shape (n,).
    """

    one: Floats
    other: Floats
    positive: NDArray[np.bool_]
    cluster: Ints
    n_clusters: int

    @cached_property
    def sums(self) -> Floats:
        """Sums of `one`, `other` and both, and the count, by class. Shape (clusters, 8)."""
        values = self.one, self.other, self.one * self.other, np.ones(len(self.one))
        return np.stack(
            [
                np.bincount(self.cluster, x * of_class, self.n_clusters)
                for of_class in (self.positive, ~self.positive)
                for x in values
            ],
            axis=1,
        )

    def estimate(self, name: str) -> tuple[float, Floats]:
        """A number of `agreement_rates`, and its 95 % interval (2,); NaN with too few clusters."""
        value = float(agreement_rates(self.sums.sum(0))[name])
        if len(np.unique(self.cluster)) < FEWEST:
            return value, np.full(2, np.nan)
        return value, interval(agreement_rates(resample(self.n_clusters) @ self.sums)[name])


def agreement_rates(sums: Floats) -> Mapping[str, Floats]:
    """Numbers computed from sums (…, 8), by name; each (…).

    `one` and `other` are balanced accuracies. `kappa` is the error consistency of Geirhos et al.
    (2020, eq. 3), stratified by class (Barlow, Lai & Azen 1991). It compares how often both are
    right or both wrong with independent answers of the same accuracy in each class. A shared
    preference for one class does not raise it.
    """
    of_class = sums.reshape(*sums.shape[:-1], 2, 4)
    rates = ratio(of_class[..., :3], of_class[..., 3:])
    right = rates[..., :2].prod(-1) + (1 - rates[..., :2]).prod(-1)
    (one, other, both), chance = np.moveaxis(rates.mean(-2), -1, 0), right.mean(-1)
    neither = 1 - one - other + both
    return {
        "one": one,
        "other": other,
        "both": both,
        "one_only": one - both,
        "other_only": other - both,
        "neither": neither,
        "difference": one - other,
        "kappa": ratio(both + neither - chance, 1 - chance),
    }


def p_values_of_answers(comparisons: Sequence[TwoAnswers]) -> list[float | None]:
    """Two-sided p-values of `one` minus `other`, corrected for testing all; see `max_t`.

    None where the two differ in fewer than `FEWEST` clusters.

    Args:
        comparisons: all with the same examples and the same `other`.
    """
    tested = [
        i
        for i, answers in enumerate(comparisons)
        if (answers.sums[:, [0, 4]] != answers.sums[:, [1, 5]]).any(1).sum() >= FEWEST
    ]
    p_values: list[float | None] = [None] * len(comparisons)
    if tested:
        # Balanced accuracy as a mean of two accuracies: right answers and counts, by class.
        sums_of_one = [comparisons[i].sums[:, [0, 3, 4, 7]] for i in tested]
        cells = [sparse_matrix(x) for x in (*sums_of_one, comparisons[0].sums[:, [1, 3, 5, 7]])]
        metric = metric_over_draws(metrics.get("accuracy"), 2)
        scores = np.array([metric.value(x.sum(0)) for x in cells])
        replicates = Replicates(scores, metric, cells, range(len(cells)), "")
        pairs = [(i, len(tested)) for i in range(len(tested))]
        for i, p_value in zip(tested, p_values_of([replicates], pairs), strict=True):
            p_values[i] = None if np.isnan(p_value) else p_value
    return p_values
