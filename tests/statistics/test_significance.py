"""Tests of many differences: by definition, by hand, by simulation; noise of training."""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.stats import binom, f, kstest, norm, sem, t, ttest_rel

from probes.statistics import significance
from probes.statistics.bootstrap import influence, resample, resampled_sums
from probes.statistics.metrics import metrics
from probes.statistics.replicates import training_noise
from probes.statistics.significance import (
    ALPHA,
    Errors,
    all_pairs,
    holm,
    least_p_of_better,
    rank_ranges,
    smallest_drop,
)


@dataclass
class Deviations:
    """Standard deviations of replicates (cells, n) as the errors of all resamples."""

    replicates: np.ndarray

    def of_sample(self, one, other):
        return np.nanstd(self.replicates[one] - self.replicates[other], axis=1)

    def of_resamples(self, one, other):
        return self.of_sample(one, other)[:, None]


def max_t(scores, replicates, pairs, errors=None):
    """P-values from one block of resamples."""
    errors = errors or Deviations(replicates)
    return significance.max_t(scores, [(replicates, errors)], pairs)


def by_definition(scores, replicates, pairs, errors=None):
    """Westfall & Young (1993), algorithm 2.8, with loops.

    Args:
        errors: of each pair, its standard error and those of resamples; by default standard
            deviations of replicates.
    """
    n = replicates.shape[1]
    differences = [replicates[a] - replicates[b] for a, b in pairs]
    if errors is None:
        errors = [(np.std(each), np.full(n, np.std(each))) for each in differences]
    sizes = [
        abs(scores[a] - scores[b]) / error for (a, b), (error, _) in zip(pairs, errors, strict=True)
    ]
    order = sorted(range(len(pairs)), key=lambda i: -sizes[i])
    p_values, before = [0.0] * len(pairs), 0.0
    for place, i in enumerate(order):
        exceeded = 0
        for b in range(n):
            statistics = [
                abs(differences[j][b] - (scores[pairs[j][0]] - scores[pairs[j][1]]))
                / errors[j][1][b]
                for j in order[place:]
            ]
            exceeded += max(statistics) >= sizes[i]
        before = max(before, (exceeded + 1) / (n + 1))
        p_values[i] = before
    return p_values


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("chosen", ["all pairs", "with the first"])
def test_p_values_are_those_of_the_definition(seed, chosen):
    rng = np.random.default_rng(seed)
    scores = rng.normal(0, 1.5, 6)
    # Of different widths, and dependent.
    noise = rng.normal(size=(6, 200)) * rng.uniform(0.2, 2, 6)[:, None] + rng.normal(size=200)
    pairs = all_pairs(6) if chosen == "all pairs" else [(0, i) for i in range(1, 6)]
    replicates = scores[:, None] + noise
    found = max_t(scores, replicates, pairs)
    assert found == pytest.approx(by_definition(scores, replicates, pairs), abs=1e-12)
    assert len(set(found)) > 1
    # The order of a pair, and of pairs, does not matter.
    backwards = [(b, a) for a, b in reversed(pairs)]
    assert max_t(scores, replicates, backwards)[::-1] == pytest.approx(found, abs=1e-12)


def of_means(items, draws, training):
    """Scores, replicates and errors of cells that are means of items (cells, n)."""
    n, scores = items.shape[1], items.mean(1)
    changes = (items - scores[:, None]) / n
    errors = Errors(changes, np.array(training, dtype=float), draws.astype(float))
    return scores, items @ draws.T / n, errors


def test_studentised_p_values_are_those_of_the_definition():
    """Standard errors of means are scipy's, of the items as often as a resample has them."""
    rng, n = np.random.default_rng(9), 25
    items = rng.normal(size=(5, n)) * np.array([[1], [2], [0.5], [1], [1]]) + rng.normal(
        0, 0.3, (5, 1)
    )
    draws, training = resample(n, 150), [0.01, 0.0, 0.04, 0.02, 0.09]
    scores, replicates, errors = of_means(items, draws, training)
    replicates += np.sqrt(training)[:, None] * rng.standard_normal(replicates.shape)

    def error(a, b, times):
        return np.hypot(
            sem(np.repeat(items[a] - items[b], times)), np.sqrt(training[a] + training[b])
        )

    pairs = all_pairs(5)
    by_hand = [
        (error(a, b, 1), np.array([error(a, b, draw.astype(int)) for draw in draws]))
        for a, b in pairs
    ]
    found = max_t(scores, replicates, pairs, errors)
    assert found == pytest.approx(by_definition(scores, replicates, pairs, by_hand), abs=1e-12)
    plain = by_definition(scores, replicates, pairs)
    assert np.abs(found - plain).max() > 0.02


def rarely_wrong(rng, cells, n):
    """Scores of 0 or 1, of which 3 % are 0; half of the mistakes are made by all cells."""
    wrong = np.where(
        rng.random((cells, n)) < 0.5, rng.random(n) < 0.03, rng.random((cells, n)) < 0.03
    )
    return 1.0 - wrong


def test_cells_that_make_one_mistake_are_clearly_above_a_bad_one():
    """A resample without that mistake has error 0, which must not count as an infinite size."""
    items = np.ones((4, 80))
    items[0, 3] = items[1, 9] = 0
    items[3] = 0.5
    scores, replicates, errors = of_means(items, resample(80, 1000), np.zeros(4))
    found = max_t(scores, replicates, [(0, 3), (1, 3), (2, 3)], errors)
    assert (found < 0.002).all()


def test_equal_cells_with_few_mistakes_are_rarely_told_apart():
    rng, draws = np.random.default_rng(4), resample(40, 500)
    found = [
        (max_t(scores, replicates, all_pairs(5), errors) < 0.05).any()
        for scores, replicates, errors in (
            of_means(rarely_wrong(rng, 5, 40), draws, np.zeros(5)) for _ in range(300)
        )
    ]
    assert np.mean(found) < 0.05


def test_a_studentised_test_of_few_normal_means_is_the_paired_t_test():
    n, found = 20, []
    for seed in range(40):
        items = np.random.default_rng(seed).normal(size=(2, n))
        items[1] += 0.4
        scores, replicates, errors = of_means(items, resample(n), [0, 0])
        (studentised,) = max_t(scores, replicates, [(0, 1)], errors)
        (plain,) = max_t(scores, replicates, [(0, 1)])
        found.append(np.array([studentised, plain]) - ttest_rel(*items).pvalue)
    assert np.abs(found).max(0)[0] < 0.04
    bias, bias_of_plain = np.mean(found, axis=0)
    assert bias == pytest.approx(0, abs=0.004)
    # With one error for all resamples p is too small.
    assert bias_of_plain < -0.015


@pytest.mark.parametrize(("churn", "n"), [(0.12, 57), (0.12, 296), (0.02, 1000)])
def test_the_smallest_drop_is_found_four_times_in_five(churn, n):
    drop = smallest_drop(churn, n)
    shares = [drop + churn / 2, churn / 2, 1 - drop - churn]
    worse, better, _ = np.random.default_rng(0).multinomial(n, shares, 20_000).T
    d = (worse - better) / n
    z = d / np.sqrt(((worse + better) / n - d**2) / n)
    assert (z > 1.96).mean() == pytest.approx(0.8, abs=0.03)


def simulated(n_cells, seed, n_resamples=500):
    """Equal cells that are scored on the same 400 items: their means, and those of resamples."""
    rng, n = np.random.default_rng(seed), 400
    items = rng.normal(size=(n_cells, n)) + rng.normal(size=n)
    return items.mean(1), items @ resample(n, n_resamples).T / n


def test_under_the_complete_null_one_test_in_twenty_finds_anything():
    pairs = all_pairs(10)
    least = np.array([max_t(*simulated(10, seed), pairs).min() for seed in range(400)])
    # .05 ± three standard errors of a share over 400.
    assert (least < ALPHA).mean() == pytest.approx(0.05, abs=0.033)
    assert (least < 0.5).mean() == pytest.approx(0.5, abs=0.075)


def separates_equal_cells(words, rng, n_cells=7):
    """Whether tests tell equal cells apart: studentised, and with one error for all resamples.

    Documents have these numbers of words, and cells are means over words.
    """
    n, pairs, metric = len(words), all_pairs(n_cells), metrics.get("accuracy")
    effects = (rng.standard_normal((n_cells, n)) + rng.standard_normal(n)) * words
    draws = resample(n, 500)
    sums = [csr_array(np.stack([each, words], axis=1)) for each in effects]
    replicates = np.stack([metric.value(resampled_sums(each, draws)) for each in sums])
    changes = np.stack([influence(metric, each) for each in sums])
    scores = effects.sum(1) / words.sum()
    errors = Errors(changes, np.zeros(n_cells), draws.astype(float))
    tests = max_t(scores, replicates, pairs, errors), max_t(scores, replicates, pairs)
    return [p.min() < ALPHA for p in tests]


@pytest.mark.parametrize(("n", "spread"), [(20, 0.0), (60, 1.1)], ids=["few", "unequal"])
def test_few_or_unequal_documents_need_an_error_for_each_resample(n, spread):
    n_sets, rng = 400, np.random.default_rng(2)
    found = [
        separates_equal_cells(np.exp(spread * rng.standard_normal(n)), rng) for _ in range(n_sets)
    ]
    studentised, plain = np.mean(found, axis=0)
    # Exceeded in one of a thousand cases, were .05 true.
    most = binom.ppf(0.999, n_sets, ALPHA) / n_sets
    assert studentised <= most < plain


def test_a_true_null_beside_clear_differences_is_rejected_one_time_in_twenty():
    """Step-down: what is clear does not make the rest less certain."""
    found = []
    for seed in range(400):
        scores, replicates = simulated(4, seed)
        apart = np.array([0.0, 0.0, 50.0, 100.0])
        p_values = max_t(scores + apart, replicates + apart[:, None], all_pairs(4))
        assert (p_values[1:] == 1 / 501).all()
        found.append(p_values[0] < ALPHA)
    assert np.mean(found) == pytest.approx(0.05, abs=0.033)


def test_identical_cells_are_never_told_apart():
    scores, replicates = simulated(2, 0)
    same = np.array([0, 0, 1])
    found = max_t(scores[same], replicates[same], [(0, 1), (0, 2)])
    assert found[0] == 1.0
    assert found[1] == max_t(scores, replicates, [(0, 1)])[0]
    # Cells of the same score are not, even if resamples differ.
    level = replicates - scores[:, None]
    assert max_t(np.zeros(2), level, [(0, 1)]).tolist() == [1.0]


def test_undefined_cells_have_no_p_value_and_do_not_count():
    scores, replicates = simulated(3, 1)
    scores += [0, 0.2, 0.4]
    replicates += np.array([[0], [0.2], [0.4]])
    expected = max_t(scores, replicates, all_pairs(3))
    without_score = np.append(scores, np.nan), np.vstack([replicates, replicates[:1]])
    without_replicates = np.append(scores, 0.5), np.vstack([replicates, replicates[:1] * np.nan])
    for cells_of_four in (without_score, without_replicates):
        found = dict(zip(all_pairs(4), max_t(*cells_of_four, all_pairs(4)), strict=True))
        assert [found[pair] for pair in all_pairs(3)] == expected.tolist()
        assert np.isnan([found[i, 3] for i in range(3)]).all()
    assert max_t(scores, replicates, []).tolist() == []


def test_resamples_without_a_value_count_against_a_difference():
    scores = np.array([0.0, 9.0, 1.5])
    moves = np.array([[0.0] * 4, [1, -1, 1, np.nan], [2, -2, 0, 0]])
    # One of four resamples is unknown: (1 + 1) / 5; the other difference has all of them.
    found = max_t(scores, scores[:, None] + moves, [(0, 1), (0, 2)])
    assert found == pytest.approx([2 / 5, 3 / 5])


def test_ranges_of_ranks_by_hand():
    scores, pairs = np.array([0.7, 0.9, 0.8]), [(0, 1), (0, 2), (1, 2)]
    # Only the best and the worst are told apart; .05 itself does not separate.
    some = rank_ranges(scores, pairs, np.array([0.049, 0.05, np.nan]))
    assert some.tolist() == [[2, 3], [1, 2], [1, 3]]
    assert rank_ranges(scores, pairs, np.full(3, 0.01)).tolist() == [[3, 3], [1, 1], [2, 2]]
    assert rank_ranges(scores[:1], [], np.array([])).tolist() == [[1, 1]]


def test_the_evidence_against_being_best_by_hand():
    pairs = all_pairs(4)  # 01 02 03 12 13 23
    scores = np.array([0.9, 0.7, 0.8, 0.7])
    p_values = np.array([0.03, 0.3, 0.2, 0.02, 0.5, 0.04])
    # 1 is below 0 (.03) and 2 (.02), 2 below 0 (.3), 3 below 0 (.2) and 2 (.04); 1 and 3 are equal.
    assert least_p_of_better(scores, pairs, p_values).tolist() == [1.0, 0.02, 0.3, 0.04]
    undefined = np.array([0.03, np.nan, 0.2, 0.02, 0.5, 0.04])
    assert least_p_of_better(scores, pairs, undefined) == pytest.approx(
        [1, 0.02, np.nan, 0.04], nan_ok=True
    )


def test_the_leader_of_equal_models_is_not_split_off():
    """Of forty equal models one always leads; it is not the best for that."""
    n, pairs = 40, all_pairs(40)
    split, split_naively = [], []
    for seed in range(100):
        scores, replicates = simulated(n, seed, n_resamples=300)
        ranges = rank_ranges(scores, pairs, max_t(scores, replicates, pairs))
        split.append((ranges != [1, n]).any())
        # What a test of two models would say of the first and the last, chosen because they are.
        first, last = scores.argmax(), scores.argmin()
        distance = scores[first] - scores[last]
        p = 2 * norm.sf(distance / (replicates[first] - replicates[last]).std())
        split_naively.append(p < ALPHA)
    assert np.mean(split) <= 0.08
    assert np.mean(split_naively) > 0.9


@settings(derandomize=True)
@given(st.lists(st.sampled_from([0.001, 0.01, 0.02, 0.03, 0.04, 0.5]), max_size=6))
def test_holms_correction_is_the_closure_of_bonferronis(p_values):
    """An hypothesis is rejected if every intersection that it is part of is (Marcus et al. 1976)."""
    index = range(len(p_values))
    sets = [part for size in index for part in combinations(index, size + 1)]
    assert holm(p_values) == pytest.approx(
        [
            max(min(1, len(part) * min(p_values[j] for j in part)) for part in sets if i in part)
            for i in index
        ]
    )


N = 20_000


@pytest.mark.parametrize("df", [3, 12, 60])
def test_each_layer_has_student_s_t_times_the_deviation(df):
    for row in training_noise("m", [0, 7], 0.05, df, N):
        assert kstest(row / 0.05, t(df).cdf).pvalue > 0.001


def test_one_estimate_of_the_deviation_is_shared_by_all_layers():
    n_layers, df = 20, 4
    squares = (training_noise("m", range(n_layers), 0.05, df, N) / 0.05) ** 2
    # Normal draws over one χ²: the mean square has an F distribution.
    assert kstest(squares.mean(0), f(n_layers, df).cdf).pvalue > 0.001
    # With a χ² for each layer, large values would not come together.
    apart = np.stack([t(df).rvs(N, random_state=i) for i in range(n_layers)]) ** 2
    assert kstest(apart.mean(0), f(n_layers, df).cdf).pvalue < 1e-9


def test_layers_and_results_do_not_depend_on_each_other():
    first = training_noise("m", [0, 1, 2], 0.05, 60, N)
    other = training_noise("another", [0, 1, 2], 0.05, 60, N)
    correlations = np.corrcoef(np.concatenate([first, other]))
    assert np.abs(correlations - np.eye(6)).max() < 0.03


def test_a_layer_has_the_same_draws_whatever_it_is_compared_with():
    three = training_noise("m", [2, 5, 9], 0.05, 4, 100)
    assert (training_noise("m", [9, 5], 0.05, 4, 100) == three[[2, 1]]).all()


def test_the_deviation_scales_and_without_any_nothing_is_added():
    np.testing.assert_allclose(
        training_noise("m", [1], 0.1, 4, 100), 2 * training_noise("m", [1], 0.05, 4, 100)
    )
    assert (training_noise("m", [1, 2], 0.0, 4, 100) == 0).all()
