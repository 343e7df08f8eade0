"""Metrics against scikit-learn and examples by hand; numbers on two sets of answers."""

import warnings

import numpy as np
import pandas as pd
import pytest
from gold_by_hand import gold_of
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import spearmanr
from sklearn.metrics import accuracy_score, balanced_accuracy_score, f1_score, recall_score
from statistics_simulation import simulate
from stratified_kappa import stratified_kappa

from probes.statistics.gold import chunk_spans
from probes.statistics.metrics import metrics, printed_score, printed_sd
from probes.statistics.of_families.two_answers import (
    TwoAnswers,
    agreement_rates,
    fitted_threshold,
    p_values_of_answers,
)
from probes.statistics.rank_correlation import nspr_sentences, spearman


def score(name, gold, *rows):
    return metrics.get(name)(gold, np.asarray(rows)).tolist()


@pytest.mark.parametrize(
    ("value", "metric", "text"),
    [
        (-0.037, "accuracy", "−3.7"),
        (-0.25, "spearman", "−.250"),
        (-0.0001, "spearman", ".000"),
        (-1.5, "mae", "−1.500"),
        (None, "accuracy", "–"),
    ],
)
def test_scores_are_shown_with_a_minus_sign(value, metric, text):
    assert printed_score(value, metric) == text


def test_deviations_are_shown_with_one_more_digit():
    assert (printed_sd(0.0012, "accuracy"), printed_sd(0.0031, "spearman")) == ("0.12", ".0031")


@settings(derandomize=True, max_examples=60)
@given(arrays(int, (4, 3), elements=st.integers(0, 25)).filter(lambda table: table[:3].any()))
def test_metrics_of_classes_are_scikit_learns(confusion):
    """A table counts examples by label (rows; train lacks the last one) and prediction."""
    labels, predicted = (np.repeat(x.ravel(), confusion.ravel()) for x in np.indices((4, 3)))
    unseen = ("z",) * int(confusion[3].sum())
    gold = gold_of(np.where(labels == 3, -1, labels), classes="abc", unseen=unseen)
    known = labels < 3

    def macro_f1(least):
        names = np.flatnonzero(np.bincount(labels) >= least)
        if not len(names):
            return np.nan
        return f1_score(labels, predicted, labels=names, average="macro", zero_division=0)

    with warnings.catch_warnings(action="ignore"):  # of predicted classes that are not in gold
        balanced = balanced_accuracy_score(labels[known], predicted[known])
    expected = {
        "accuracy": accuracy_score(labels, predicted),
        "balanced_accuracy": balanced,
        "macro_f1": macro_f1(1),
        "macro_f1_20": macro_f1(20),
    }
    for name, value in expected.items():
        assert score(name, gold, predicted) == [pytest.approx(value, nan_ok=True)], name


def test_narrow_integers_hold_many_classes():
    labels = np.array([0, 11_999, 16_383, 16_383], dtype=np.int16)
    given = np.array([0, 11_999, 16_383, 0], dtype=np.int16)
    gold = gold_of(labels, classes=map(str, range(16_384)))
    assert score("balanced_accuracy", gold, given) == [pytest.approx((1 + 1 + 0.5) / 3)]


@pytest.mark.parametrize("name", [*metrics])
def test_a_metric_says_whether_its_sums_count_examples_or_labels(name):
    gold, given = simulate(name, 80, np.random.default_rng(6))
    sums, counts = metrics.get(name).parts(gold, given).sum(0), metrics.get(name).counts
    n, of_labels = len(gold.labels), np.bincount(gold.labels.astype(int))
    assert [column for column, total in enumerate(sums) if total == n] == (
        [counts] if isinstance(counts, int) else []
    )
    assert np.array_equal(sums[: len(of_labels)], of_labels) == (counts == "labels")


TAGS = ("B-NP", "B-VP", "I-NP", "I-VP", "O")


@pytest.mark.parametrize(
    ("text", "sentence", "spans"),
    [
        ("B-NP I-NP O B-VP", [0, 0, 0, 0], {(0, 2, "NP"), (3, 4, "VP")}),
        ("B-NP B-NP I-NP", [0, 0, 0], {(0, 1, "NP"), (1, 3, "NP")}),
        # conlleval: I- begins a chunk after O, after another type, and at a sentence's start.
        ("O I-NP I-VP", [0, 0, 0], {(1, 2, "NP"), (2, 3, "VP")}),
        ("B-NP I-NP", [0, 1], {(0, 1, "NP"), (1, 2, "NP")}),
        ("O O", [0, 0], set()),
    ],
)
def test_chunk_spans_by_hand(text, sentence, spans):
    first = np.diff(sentence, prepend=-1) != 0
    names, tags = np.unique(text.split(), return_inverse=True)
    assert chunk_spans(names.tolist(), tags, first) == spans


@pytest.mark.parametrize(
    ("gold_tags", "predicted", "f1"),
    [
        # One of three chunks is right: NP(0,2) VP(2,3) NP(3,5), and NP(0,2) VP(2,4) NP(4,5).
        ("B-NP I-NP B-VP B-NP I-NP", "B-NP I-NP B-VP I-VP B-NP", 1 / 3),
        ("B-NP I-NP B-VP B-NP I-NP", "B-NP I-NP B-VP B-NP I-NP", 1),
        ("B-NP O B-VP", "B-NP O O", 2 / 3),  # precision 1, recall 1/2
        ("O O", "O O", 0),  # as in conlleval
        ("B-NP B-LST", "B-NP O", 2 / 3),  # train has no LST
    ],
)
def test_span_f1_by_hand(gold_tags, predicted, f1):
    labels = [TAGS.index(tag) if tag in TAGS else -1 for tag in gold_tags.split()]
    unseen = tuple(tag for tag in gold_tags.split() if tag not in TAGS)
    gold = gold_of(labels, [0] * len(labels), TAGS, unseen=unseen)
    assert score("span_f1", gold, [TAGS.index(x) for x in predicted.split()]) == [pytest.approx(f1)]


def rho_by_scipy(labels, predicted):
    """Spearman's ρ: 0 for constant predictions, NaN for constant labels."""
    if len({*labels}) == 1:
        return np.nan
    return spearmanr(labels, predicted).statistic if len({*predicted}) > 1 else 0.0


LENGTHS = st.lists(st.sampled_from([1, 2, 4, 5, 9, 50, 51]), min_size=1, max_size=8)


@settings(derandomize=True, max_examples=60)
@given(LENGTHS, st.integers(0, 1000), st.sampled_from([1, 3, 60]))
def test_rank_correlations_are_scipys(lengths, seed, n_values):
    """Over all words; and averaged over sentences, by NSpr of 5 to 50 words and first by length."""
    depths, predicted = np.random.default_rng(seed).integers(0, n_values, (2, sum(lengths)))
    gold = gold_of(depths.astype(np.float32), np.repeat(np.arange(len(lengths)), lengths), ())
    parts = np.split(np.arange(sum(lengths)), np.cumsum(lengths)[:-1])
    rho = pd.Series([rho_by_scipy(depths[x], predicted[x]) for x in parts], lengths).dropna()
    of_length = rho[(rho.index >= 5) & (rho.index <= 50)].groupby(level=0)
    expected = {
        "spearman": rho.mean(),
        "nspr": of_length.mean().mean(),
        "corpus_spearman": rho_by_scipy(depths, predicted),
    }
    for name, value in expected.items():
        assert score(name, gold, predicted) == [pytest.approx(value, nan_ok=True)], name
    assert nspr_sentences(gold) == of_length.size().sum()


def test_root_accuracy_ignores_punctuation():
    # The full stop is predicted least deep, but is punctuation; sentence 1 is only punctuation.
    stops = [False, False, True, True, False, False]
    gold = gold_of([1, 0, 2, 0, 1, 0], [0, 0, 0, 1, 2, 2], (), punctuation=stops)
    assert score("root_accuracy", gold, [1.0, 0.5, 0.1, 3.0, 0.2, 0.4]) == [pytest.approx(2 / 3)]


def test_mae_by_hand():
    assert score("mae", gold_of([0.0, 2.0], classes=()), [1.0, 2.5]) == [0.75]


def answers(seed, n=600):
    """Answers to four times as many examples of one class, most of which one's prior gets right."""
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < 0.8
    one = rng.random(n) < 0.7
    other = np.where(rng.random(n) < 0.5, one, rng.random(n) < np.where(positive, 0.9, 0.3))
    return one, other, positive, np.sort(rng.integers(0, 60, n))


@pytest.mark.parametrize("seed", range(3))
def test_numbers_are_those_of_scikit_learn_with_balanced_weights(seed):
    one, other, positive, cluster = answers(seed)
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
    assert np.isnan(agreement_rates(np.tile([5.0, 5, 5, 5], 2))["kappa"])
    # Independent of each other in each class, of which both get one right more often: κ of both
    # classes together would be .19.
    assert agreement_rates(np.array([90.0, 90, 81, 100, 50, 50, 25, 100]))[
        "kappa"
    ] == pytest.approx(0)


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
    one, other, positive, cluster = answers(0)
    its = TwoAnswers(one.astype(float), other.astype(float), positive, cluster, 60)
    alike = TwoAnswers(its.other.copy(), its.other, positive, cluster, 60)
    better = TwoAnswers(np.maximum(its.other, cluster % 2), its.other, positive, cluster, 60)
    p = p_values_of_answers([alike, better])
    assert p[0] is None
    assert p[1] is not None
    assert p[1] < 0.01
    in_one_document = TwoAnswers(its.one, its.other, positive, cluster * 0, 1)
    assert np.isnan(in_one_document.estimate("kappa")[1]).all()


def test_correlations_of_all_predictions_with_all_labels_are_scipys():
    rng = np.random.default_rng(2)
    labels = rng.integers(0, 4, (6, 5))
    predicted = np.round(rng.random((3, 5, 1, 5)), 1)  # with ties
    correlations = spearman(predicted, labels)
    assert correlations.shape == (3, 5, 6)
    for i, j, k in np.ndindex(correlations.shape):
        expected = spearmanr(predicted[i, j, 0], labels[k]).statistic
        assert correlations[i, j, k] == pytest.approx(expected)
