"""Metrics of the order of two classes, against scikit-learn, also on resampled examples."""

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve

from probes.statistics.bootstrap import interval, resample
from probes.statistics.gold import Gold
from probes.statistics.partition import partition
from probes.statistics.ranking_metrics import RANKING, curves, ranking_scores


def theirs(positive, margins):
    false, true, _ = roc_curve(positive, margins, drop_intermediate=False)
    return {
        "auroc": roc_auc_score(positive, margins),
        "average_precision": average_precision_score(positive, margins),
        "recall_at_5_fpr": true[false <= 0.05].max(),
    }


def drawn(seed, n=90, ties=False):
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < 0.3
    margins = rng.normal(size=n) + positive
    return positive, np.round(margins) if ties else margins


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_values_and_weights_are_those_of_scikit_learn(seed, ties):
    positive, margins = drawn(seed, ties=ties)
    counts = np.stack([np.ones(90), np.random.default_rng(9).integers(0, 4, 90)]).astype(int)
    found = curves(margins, positive, counts.astype(float))
    for row, count in enumerate(counts):
        wanted = theirs(np.repeat(positive, count), np.repeat(margins, count))
        for name, metric in RANKING.items():
            assert metric(*found)[row] == pytest.approx(wanted[name])


def test_without_one_of_the_classes_nothing_is_defined():
    for positive in (np.zeros(4, bool), np.ones(4, bool)):
        found = curves(np.arange(4.0), positive, np.ones((1, 4)))
        assert np.isnan([metric(*found)[0] for metric in RANKING.values()]).any()
        assert np.isnan(RANKING["auroc"](*found)[0])


def test_intervals_resample_groups():
    positive, margins = drawn(3)
    groups = [str(i // 3) for i in range(90)]
    gold = Gold(positive.astype(int), np.arange(90), ("a", "b"), np.zeros(90, bool),
                partition=partition(groups))  # fmt: skip
    found = ranking_scores(gold, np.stack([margins, -margins]))
    counts = resample(30)[:40][:, np.arange(90) // 3].astype(int)
    many = resample(30)[:, np.arange(90) // 3].astype(float)
    for name, (estimate, other) in found.items():
        replicates = RANKING[name](*curves(margins, positive, many))
        assert estimate.value == pytest.approx(theirs(positive, margins)[name])
        assert estimate.interval == pytest.approx(tuple(interval(replicates)))
        assert other.value < estimate.value
        for count, value in zip(counts, replicates, strict=False):
            wanted = theirs(np.repeat(positive, count), np.repeat(margins, count))
            assert value == pytest.approx(wanted[name])


def test_few_groups_give_no_interval():
    positive, margins = drawn(4, n=12)
    gold = Gold(positive.astype(int), np.arange(12), ("a", "b"), np.zeros(12, bool))
    (estimate,) = ranking_scores(gold, margins[None])["auroc"]
    assert estimate.interval is None
    assert estimate.missing == "fewer than 20 clusters"
