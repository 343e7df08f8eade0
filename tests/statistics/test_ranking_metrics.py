"""Ranking metrics, thresholds and their intervals, against scikit-learn, scipy and DeLong."""

import numpy as np
import pytest
from gold_by_hand import gold_of
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, binomtest, t
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    balanced_accuracy_score,
    roc_auc_score,
    roc_curve,
)
from statistics_simulation import chosen_thresholds

from probes.probing.scores import _ranking_scores, intervals_by_metric, rows_above
from probes.statistics.bootstrap import cluster_sums, draws_of, influence, interval, resample
from probes.statistics.metrics import metrics
from probes.statistics.partition import partition
from probes.statistics.ranking_metrics import (
    RANKING,
    RATES,
    chosen_rate_interval,
    mean_recall_to,
    rate_interval,
    recall_name,
    threshold_at,
)
from probes.statistics.replicates import Replicates, p_values_of


def by_scikit_learn(positive, margins, times):
    """Ranking metrics of examples that occur so many times."""
    positive, margins = np.repeat(positive, times), np.repeat(margins, times)
    false, true, _ = roc_curve(positive, margins, drop_intermediate=False)
    return {
        "auroc": roc_auc_score(positive, margins),
        "average_precision": average_precision_score(positive, margins),
        **{recall_name(rate): true[false <= rate].max() for rate in RATES},
    }


def ranked(seed, n=90):
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < 0.3
    return positive, rng.normal(size=n) + positive


@settings(derandomize=True, max_examples=40)
@given(st.integers(0, 1000), st.booleans())
def test_values_and_weights_are_those_of_scikit_learn(seed, ties):
    positive, margins = ranked(seed)
    margins = np.round(margins) if ties else margins
    gold, times = gold_of(positive.astype(int)), np.random.default_rng(seed).integers(0, 4, (2, 90))
    expected = [by_scikit_learn(positive, margins, x) for x in times]
    for name in expected[0]:
        metric = metrics.get(name)
        values = metric.value(times @ metric.parts(gold, margins).toarray())
        assert values == pytest.approx([x[name] for x in expected])


def test_names_of_recall():
    assert recall_name(0.001) == "recall_at_0.1_fpr"
    assert [metrics.get(recall_name(x)).label for x in (0.01, 0.05)] == [
        "recall at 1 % FPR",
        "recall at 5 % FPR",
    ]


def test_without_one_of_the_classes_nothing_is_defined():
    for labels in (np.zeros(4, int), np.ones(4, int)):
        values = [metrics.get(x)(gold_of(labels), np.arange(4.0)[None])[0] for x in RANKING]
        assert np.isnan(values).any()
        assert np.isnan(values[0])


def test_labels_that_train_lacks_belong_to_neither_class():
    gold = gold_of([1, 0, -1, 1], unseen=("c",))
    assert metrics.get("auroc")(gold, np.array([[3.0, 1.0, 2.0, 0.0]])) == [0.5]


def test_margins_decide_by_their_sign():
    positive, margins = ranked(1)
    gold = gold_of(positive.astype(int))
    for name, by_sklearn in (
        ("accuracy", accuracy_score),
        ("balanced_accuracy", balanced_accuracy_score),
    ):
        expected = by_sklearn(positive, margins > 0)
        assert metrics.get(name)(gold, margins[None].astype(np.float32)) == pytest.approx(expected)


def delong(positive, *margins):
    """Covariance of AUROCs by DeLong et al. 1988, with 1/n in place of 1/(n − 1)."""
    pairs = [np.sign(x[positive][:, None] - x[~positive]) / 2 + 0.5 for x in margins]
    of_positives, of_negatives = (np.stack([x.mean(axis) for x in pairs]) for axis in (1, 0))
    return sum(np.cov(x, bias=True) / x.shape[1] for x in (of_positives, of_negatives))


def test_errors_of_areas_and_of_paired_differences_are_those_of_delong():
    positive, margins = ranked(2)
    other = margins + np.random.default_rng(9).normal(size=90)
    gold, metric = gold_of(positive.astype(int)), metrics.get("auroc")
    slopes = np.stack(
        [influence(metric, cluster_sums(metric.parts(gold, x), gold)) for x in (margins, other)]
    )
    assert slopes @ slopes.T == pytest.approx(delong(positive, margins, other), rel=1e-4)


def test_the_bootstrap_of_a_paired_difference_agrees_with_delong():
    positive, margins = ranked(4, n=400)
    other = margins + 0.7 * np.random.default_rng(1).normal(size=400)
    gold, metric = gold_of(positive.astype(int)), metrics.get("auroc")
    rows = np.stack([margins, other])
    sums = [cluster_sums(metric.parts(gold, x), gold) for x in rows]
    both = Replicates(metric(gold, rows), metric, sums, [0, 1], "")
    covariance = delong(positive, *rows)
    error = np.sqrt(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1])
    assert (both.values[0] - both.values[1]).std() == pytest.approx(error, rel=0.06)
    (p,) = p_values_of([both], [(0, 1)])
    z = (both.scores[0] - both.scores[1]) / error
    assert p == pytest.approx(2 * t.sf(z, 399), abs=0.01)


def test_mean_recall_is_the_integral_of_recall():
    positive, margins = ranked(5)
    sums = metrics.get("auroc").parts(gold_of(positive.astype(int)), margins).sum(0)
    false, true, _ = roc_curve(positive, margins, drop_intermediate=False)
    rates = (np.arange(20_000) + 0.5) / 20_000 * 0.2
    recall = true[np.searchsorted(false, rates, side="right") - 1]
    assert mean_recall_to(0.2, sums) == pytest.approx(recall.mean(), abs=1e-4)


@pytest.mark.parametrize("n", [1, 35, 99, 100, 250])
def test_a_threshold_lets_as_many_negatives_pass_as_may(n):
    negatives = np.random.default_rng(n).normal(size=n)
    found = threshold_at(0.01, negatives)
    # Every smaller threshold lets more pass than one in a hundred; so scikit-learn finds it too.
    allowed = [x for x in negatives if (negatives > x).mean() <= 0.01]
    assert found == min(allowed)
    false, _, thresholds = roc_curve([0] * n + [1], [*negatives, 9.0], drop_intermediate=False)
    assert (negatives > found).mean() == false[false <= 0.01].max()
    assert found < thresholds[false <= 0.01].min()


@pytest.mark.parametrize(("k", "n"), [(0, 100), (1, 100), (3, 300), (5, 5)])
def test_intervals_of_rates_are_exact(k, n):
    events = np.arange(n) < k
    exact = binomtest(k, n).proportion_ci(method="exact")
    assert rate_interval(events.astype(float), np.arange(n)) == pytest.approx(tuple(exact))


def test_alike_examples_of_a_group_count_as_one():
    cluster = np.repeat(np.arange(40), 5)
    none = binomtest(0, 40).proportion_ci(method="exact")
    assert rate_interval(np.zeros(200), cluster) == pytest.approx(tuple(none))
    # Korn & Graubard: 8 of 40 groups, which are as many as t distributions allow for.
    low, high = rate_interval(np.repeat(np.arange(40) < 8, 5).astype(float), cluster)
    exact = binomtest(8, 40).proportion_ci(method="exact")
    assert low < exact.low < high
    assert (low, high) == pytest.approx(tuple(exact), abs=0.02)
    mixed = rate_interval((np.arange(200) % 5 == 0).astype(float), cluster)
    assert mixed == pytest.approx(tuple(binomtest(40, 200).proportion_ci(method="exact")), abs=0.02)


def test_the_interval_of_a_chosen_layer_is_exact_at_the_level_of_each():
    level = binomtest(3, 300).proportion_ci(1 - 0.05 / 19, method="exact")
    assert chosen_rate_interval(3, np.arange(300), 19) == pytest.approx(tuple(level))
    # Groups of five that are alike: 60 texts, of which three fifths are above the threshold.
    low, high = chosen_rate_interval(3, np.arange(300) // 5, 19)
    assert low == pytest.approx(beta.ppf(0.025 / 19, 0.6, 60.4))
    assert high == pytest.approx(beta.ppf(1 - 0.025 / 19, 1.6, 59.4))
    # Kish: groups of 1 and 9 texts count as 100 / 82.
    none = beta.ppf(0.975, 1, 100 / 82)
    assert chosen_rate_interval(0, np.array([0] + [1] * 9), 1) == (0, pytest.approx(none))


@pytest.mark.parametrize("shared", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("size", [1, 5])
@pytest.mark.parametrize("by", ["auroc", "recall_at_1_fpr"])
def test_the_threshold_of_a_chosen_layer_has_a_valid_interval(by, size, shared):
    of_one, of_chosen = chosen_thresholds(100, size, shared, by, 150)
    print(f"{by}, groups of {size}, {shared:g} shared: {of_one:.1%}, {of_chosen:.1%} covered")
    assert of_chosen >= 0.95 - 2.3 * np.sqrt(0.95 * 0.05 / 150)
    # That of one layer is valid only if all layers are the same.
    assert (of_one < 0.93) == (shared < 1)


def test_rows_above_a_threshold():
    gold = gold_of([0, 0, 0, 1, 1])
    false, hits = rows_above(gold, np.array([True, False, False, True, True]), 3)
    assert (false.metric, false.value, false.n) == ("false_positive_rate", 1 / 3, 3)
    assert (hits.metric, hits.value, hits.n, hits.layer) == ("hit_rate", 1.0, 2, 3)
    assert hits.interval == pytest.approx(tuple(binomtest(2, 2).proportion_ci(method="exact")))


@pytest.mark.parametrize(
    ("positive", "missing"),
    [
        ([0] * 40, "one class in test"),
        ([1] * 40, "one class in test"),
        ([0, 1] * 6, "fewer than 20 clusters"),
    ],
)
def test_a_ranking_that_has_no_interval_says_why(positive, missing):
    margins = np.random.default_rng(0).normal(size=(2, len(positive)))
    for estimates in _ranking_scores(gold_of(positive), margins).values():
        assert [(x.interval, x.missing) for x in estimates] == [(None, missing)] * 2
        assert [x.value is None for x in estimates] == [len({*positive}) == 1] * 2


def test_a_ranking_with_few_of_a_class_has_no_interval():
    for n, missing in ((9, "fewer than 10 positives in test"), (10, None)):
        positive = [1] * n + [0] * 40
        margins = np.random.default_rng(0).normal(size=(1, len(positive)))
        (estimate,) = _ranking_scores(gold_of(positive), margins)["auroc"]
        assert (estimate.missing, estimate.interval is None) == (missing, missing is not None)


def test_intervals_resample_groups():
    positive, margins = ranked(3)
    groups = np.arange(90) // 3
    gold = gold_of(positive.astype(int), partition=partition([*map(str, groups)]))
    estimates = _ranking_scores(gold, np.stack([margins, -margins]))
    times = resample(30)[:, groups].astype(int)
    whole = by_scikit_learn(positive, margins, np.ones(90, int))
    replicates = [by_scikit_learn(positive, margins, x) for x in times]
    for name, (estimate, other) in estimates.items():
        values = np.array([x[name] for x in replicates])
        assert estimate.value == pytest.approx(whole[name])
        assert estimate.interval == pytest.approx(tuple(interval(values)))
        assert other.value < estimate.value


def test_few_negatives_give_recall_no_interval():
    few, enough = (np.arange(n) % 2 for n in (598, 600))
    for labels, there in ((few, False), (enough, True)):
        gold = gold_of(labels)
        margins = np.random.default_rng(0).normal(size=(1, len(labels)))
        name = recall_name(0.01)
        assert (draws_of(gold, metrics.get(name)) is not None) == there
        found = intervals_by_metric(gold, (name, "auroc"), margins)
        assert (found[name] != [None]) == there
        assert found["auroc"] != [None]
