"""Numbers on two sets of answers, against scikit-learn and tests by hand."""

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, recall_score
from stratified_kappa import stratified_kappa

from probes.statistics.two_answers import TwoAnswers, fitted_threshold, found, p_values


def drawn(seed, n=600):
    """Answers to four times as many examples of one class, most of which one's prior gets right."""
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < 0.8
    one = rng.random(n) < 0.7
    other = np.where(rng.random(n) < 0.5, one, rng.random(n) < np.where(positive, 0.9, 0.3))
    return one, other, positive, np.sort(rng.integers(0, 60, n))


@pytest.mark.parametrize("seed", range(3))
def test_numbers_are_those_of_scikit_learn_with_balanced_weights(seed):
    one, other, positive, cluster = drawn(seed)
    its = TwoAnswers(one.astype(float), other.astype(float), positive, cluster, 60)
    scores = [balanced_accuracy_score(positive, positive == right) for right in (one, other)]
    assert [its.estimate(x)[0] for x in ("one", "other")] == pytest.approx(scores)
    assert its.estimate("difference")[0] == pytest.approx(scores[0] - scores[1])
    assert its.estimate("kappa")[0] == pytest.approx(stratified_kappa(one, other, positive))


def test_independent_answers_have_no_kappa_however_right_they_are():
    """Nine of ten are right, a tenth of them at random; κ of one with itself is 1."""
    rng, n = np.random.default_rng(0), 20_000
    one, other = (rng.random((2, n)) < 0.9).astype(float)
    half, cluster = np.arange(n) % 2 == 0, np.arange(n) // 100
    value, (low, high) = TwoAnswers(one, other, half, cluster, n // 100).estimate("kappa")
    assert low < 0 < high
    assert abs(value) < 0.03
    assert TwoAnswers(one, one, half, cluster, n // 100).estimate("kappa")[0] == pytest.approx(1)
    assert np.isnan(found(np.tile([5.0, 5, 5, 5], 2))["kappa"])
    # Independent of each other in each class, of which both get one right more often: κ of both
    # classes together would be .19.
    assert found(np.array([90.0, 90, 81, 100, 50, 50, 25, 100]))["kappa"] == pytest.approx(0)


def test_a_threshold_undoes_a_prior_and_nothing_else():
    positive = np.array([1, 1, 1, 1, 0, 0, 0, 0], dtype=bool)
    log_odds = np.array([5.0, 4, 3, 2, 1.5, 0.5, -1, -3])
    assert fitted_threshold(log_odds, positive) == 1.75
    assert fitted_threshold(log_odds - 1.7, positive) == 0  # already right there
    # One singular verb stands out, of the others nothing is known: most answers are not the same.
    nothing_known = np.array([9.0, 1.8, 1.2, 0.6, 1.9, 1.3, 0.7, 0.5])
    above = nothing_known > fitted_threshold(nothing_known, positive)
    assert recall_score(positive, above) == recall_score(~positive, ~above) == 0.5


def test_differences_are_tested_where_enough_clusters_differ():
    one, other, positive, cluster = drawn(0)
    its = TwoAnswers(one.astype(float), other.astype(float), positive, cluster, 60)
    alike = TwoAnswers(its.other.copy(), its.other, positive, cluster, 60)
    better = TwoAnswers(np.maximum(its.other, cluster % 2), its.other, positive, cluster, 60)
    p = p_values([alike, better])
    assert p[0] is None
    assert p[1] is not None
    assert p[1] < 0.01
    in_one_document = TwoAnswers(its.one, its.other, positive, cluster * 0, 1)
    assert np.isnan(in_one_document.estimate("kappa")[1]).all()
