"""Ratios of sums over sentences, against loops over resamples."""

import numpy as np
import pytest
from scipy.stats import binom, ttest_rel

from probes.statistics.metrics import quantity
from probes.statistics.of_families.ratios import (
    RatioParts,
    p_values_of_ratios,
    ratio_difference,
    ratio_estimate,
    ratio_intervals,
)
from probes.statistics.partition import Partition, by_sentence
from probes.statistics.quantities import SHARE
from probes.statistics.significance import ALPHA

PAIRS, CLUSTERS = 4, 25


def drawn(seed, n=60, cells=3):
    """Hits among 0 to 4 words of each sentence."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 5, n)
    sums = rng.binomial(counts[:, None], rng.uniform(0.2, 0.8, cells), (n, cells))
    return RatioParts(sums.astype(np.float32), counts.astype(np.float64))


def clusters(n=60, n_clusters=CLUSTERS, seed=0):
    of = np.random.default_rng(seed).permutation(np.arange(n) % n_clusters)
    return Partition("documents", of)


def draws(n):
    return np.random.default_rng(0).multinomial(n, [1 / n] * n, 2000)


def replicates(found, partition):
    """Scores of all cells in each resample, sentence by sentence. Shape (resamples, cells)."""
    scores = []
    for times in draws(partition.n):
        weight = times[partition.of_sentence]
        scores.append((weight[:, None] * found.sums).sum(0) / (weight * found.counts).sum())
    return np.array(scores)


def test_scores_are_ratios_of_sums():
    found = RatioParts(np.array([[1, 2], [0, 1], [3, 0]], np.float32), np.array([2.0, 1, 5]))
    assert found.scores.tolist() == [0.5, 0.375]
    assert found.n == 8
    assert found.of(1).scores.tolist() == [0.375]
    sums, counts = found.by_cluster(Partition("documents", np.array([1, 0, 1])))
    assert sums.tolist() == [[0, 1], [4, 2]]
    assert counts.tolist() == [1, 7]


def test_intervals_with_noise_end_at_the_limits():
    found, partition = drawn(1), clusters()
    noise = 5 * np.random.default_rng(0).standard_normal((3, 2000))
    assert (np.abs(ratio_intervals(found, partition, noise)) > 5).all()
    assert ratio_intervals(found, partition, noise, SHARE).tolist() == [[0, 1]] * 3
    # An increase of loss has no limits, a drop of accuracy has.
    assert quantity("cloze_drop").bounds == (-1, 1)


def test_intervals_are_quantiles_of_resampled_scores():
    found, partition = drawn(1, cells=300), clusters()  # more cells than are resampled at once
    expected = np.quantile(replicates(found, partition), [0.025, 0.975], axis=0).T
    assert ratio_intervals(found, partition) == pytest.approx(expected, abs=1e-6)
    one = ratio_estimate(found.of(270), partition)
    assert one.value == pytest.approx(found.sums[:, 270].sum() / found.counts.sum())
    assert one.interval == pytest.approx(expected[270], abs=1e-6)


def test_differences_are_resampled_together():
    one, other, partition = drawn(1, cells=1), drawn(2, cells=1), clusters()
    other = RatioParts(np.minimum(other.sums, one.counts[:, None]), one.counts)
    found = ratio_difference(one, other, partition)
    assert found.value == pytest.approx(one.scores[0] - other.scores[0])
    moved = replicates(one, partition)[:, 0] - replicates(other, partition)[:, 0]
    assert found.interval == pytest.approx(np.quantile(moved, [0.025, 0.975]), abs=1e-6)


def test_too_few_clusters_have_neither_intervals_nor_tests():
    found = drawn(1, cells=2)
    few = clusters(n_clusters=19)
    assert np.isnan(ratio_intervals(found, few)).all()
    assert ratio_estimate(found.of(0), few).interval is None
    assert ratio_difference(found.of(0), found.of(1), few).interval is None
    assert p_values_of_ratios([(found.of(0), found.of(1))], few) == [None]
    assert ratio_difference(found.of(0), found.of(1), few).value == pytest.approx(
        found.scores[0] - found.scores[1]
    )


def test_only_clusters_with_something_to_count_make_enough():
    counts = np.array([1.0] * 20 + [0.0] * 10)
    found = RatioParts(counts[:, None].astype(np.float32), counts)
    assert not np.isnan(ratio_intervals(found, by_sentence(30))).any()
    fewer = counts * (np.arange(30) > 0)
    found = RatioParts(fewer[:, None].astype(np.float32), fewer)
    assert np.isnan(ratio_intervals(found, by_sentence(30))).all()


def test_nothing_to_count_is_no_score():
    nothing = RatioParts(np.zeros((30, 1), np.float32), np.zeros(30))
    found = ratio_estimate(nothing, by_sentence(30))
    assert (found.value, found.interval) == (None, None)
    assert np.isnan(nothing.scores).all()


def max_t(pairs, partition):
    """Step-down max-T with a standard error in each resample, in loops."""
    times = draws(partition.n).astype(float)
    n, sizes, reached = partition.n, [], []
    for one, other in pairs:
        scores, moved, influence = [], [], 0
        for sign, each in ((1, one), (-1, other)):
            sums, counts = (
                np.bincount(partition.of_sentence, x, n) for x in (each.sums[:, 0], each.counts)
            )
            score = sums.sum() / counts.sum()
            scores.append(sign * score)
            moved.append(sign * (times @ sums) / (times @ counts))
            influence = influence + sign * (sums - score * counts) / counts.sum()
        distance = abs(sum(scores))
        variance = influence.var(ddof=1) * n
        sizes.append(distance / np.sqrt(variance) if distance else 0)
        its = []
        for weights, change in zip(times, sum(moved) - sum(scores), strict=True):
            mean = weights @ influence / n
            spread = weights @ influence**2 - n * mean**2
            error = np.sqrt(spread * n / (n - 1))
            its.append(abs(change) / error if error > 0 else 0)
        reached.append(its)
    reached, p = np.array(reached), {}
    for place in np.argsort(sizes):
        smaller = [x for x in range(len(pairs)) if sizes[x] <= sizes[place]]
        exceeded = (reached[smaller].max(0) >= sizes[place]).sum()
        p[place] = (exceeded + 1) / (len(times) + 1)
    ordered = sorted(p, key=lambda x: -sizes[x])
    return {x: max(p[y] for y in ordered[: i + 1]) for i, x in enumerate(ordered)}


def test_p_values_are_those_of_step_down_max_t():
    partition = clusters(n=200, n_clusters=40)
    pairs = []
    for seed in range(PAIRS):
        found = drawn(seed, n=200, cells=1)
        rng = np.random.default_rng(100 + seed)
        # The other is wrong more often, from hardly to clearly.
        lost = rng.binomial(found.sums.astype(int), 0.4 + 0.1 * seed).astype(np.float32)
        gained = rng.binomial((found.counts[:, None] - found.sums).astype(int), 0.3)
        pairs.append((found, RatioParts(found.sums - lost + gained, found.counts)))
    found, expected = p_values_of_ratios(pairs, partition), max_t(pairs, partition)
    assert found == pytest.approx([expected[x] for x in range(PAIRS)], abs=1e-3)
    assert min(found) == pytest.approx(1 / 2001)
    assert len(set(found)) == 3


def test_equal_scores_are_not_told_apart():
    one, other = drawn(1, cells=1), drawn(2, cells=1)
    counts = np.full(60, 4.0)
    one, other = (RatioParts(x.sums, counts) for x in (one, other))
    swapped = RatioParts(one.sums[::-1].copy(), counts)
    assert swapped.scores == one.scores
    same, equal, _ = p_values_of_ratios([(one, one), (one, swapped), (one, other)], by_sentence(60))
    assert (same, equal) == (None, 1)


def discordant(counts, n=300, wins=0.5, seed=0):
    """Pairs that differ in so many of n sentences of one word, in which either may be right."""
    rng, pairs = np.random.default_rng(seed), []
    for count in counts:
        one = rng.integers(0, 2, (n, 1)).astype(np.float32)
        other = one.copy()
        differ = rng.permutation(n)[:count]
        one[differ, 0] = rng.random(count) < wins
        other[differ] = 1 - one[differ]
        pairs.append((RatioParts(one, np.ones(n)), RatioParts(other, np.ones(n))))
    return pairs


def test_pairs_that_differ_in_few_clusters_take_no_power_from_others():
    few, clear = discordant([6, 10, 14, 19]), discordant([40], wins=0.8)
    partition = by_sentence(300)
    (alone,) = p_values_of_ratios(clear, partition)
    one, other = clear[0]
    assert alone == pytest.approx(ttest_rel(one.sums, other.sums).pvalue[0], abs=0.006)
    # Tested with the others, its p-value would be .13.
    assert p_values_of_ratios([*few, *clear], partition) == [None] * 4 + [alone]
    assert p_values_of_ratios(discordant([20]), partition) != [None]


@pytest.mark.slow
def test_the_level_holds_for_pairs_that_differ_in_few_or_many_clusters():
    """Some difference of those that are none is told in no more than a twentieth of corpora."""
    counts, n_corpora = (6, 12, 20, 22, 25, 30, 40, 80, 150), 200
    partition = by_sentence(300)
    told = 0
    for seed in range(n_corpora):
        found = p_values_of_ratios(discordant(counts, seed=seed), partition)
        assert [p is None for p in found] == [True, True, *[False] * 7]
        told += min(found[2:]) < ALPHA
    assert told <= binom.ppf(0.99, n_corpora, ALPHA)
    assert told > 0
