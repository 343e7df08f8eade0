"""Means of items in strata, and their intervals, against plain bootstraps."""

import numpy as np
import pytest
from scipy.stats import bootstrap, ttest_1samp

from probes.statistics.bootstrap import block
from probes.statistics.of_families.strata import Strata


def test_intervals_are_those_of_a_plain_bootstrap_of_the_same_draws():
    """Strata of 21 to 40 items, some of which share a cluster; loops over resamples."""
    rng = np.random.default_rng(0)
    sizes = 21, 40, 30
    stratum = np.repeat(np.arange(3), sizes)
    cluster = np.concatenate(
        [100 * s + np.arange(n) // (1 + (s == 1)) for s, n in enumerate(sizes)]
    )
    order = rng.permutation(len(stratum))
    stratum, cluster = stratum[order], cluster[order]
    values = rng.random((len(stratum), 2)) < (0.3 + 0.2 * stratum[:, None])
    strata = Strata.of([f"c{x}" for x in cluster], [f"s{x}" for x in stratum])
    everything = np.arange(len(stratum))
    groups = [everything, np.flatnonzero(stratum == 1), everything[::2]]
    found = list(strata.means(values.astype(float), groups))
    # Strata and clusters are numbered as they come first.
    drawn = {}
    for number, s in enumerate(dict.fromkeys(stratum.tolist())):
        own = list(dict.fromkeys(cluster[stratum == s].tolist()))
        for name, column in zip(own, block(len(own), seed=number).T, strict=True):
            drawn[name] = column
    for group, (value, resampled) in zip(groups, found, strict=True):
        assert value.tolist() == pytest.approx(values[group].mean(0).tolist())
        for resample in range(0, 2000, 97):
            weights = np.array([drawn[cluster[i]][resample] for i in group])
            expected = (weights[:, None] * values[group]).sum(0) / weights.sum()
            assert resampled[resample].tolist() == pytest.approx(expected.tolist())


@pytest.mark.parametrize(("n", "each"), [(60, 1), (120, 2), (80, 80)])
def test_the_spread_is_that_of_a_mean(n, each):
    """Also of strata of one or two items, which are drawn as one."""
    values = (np.random.default_rng(each).random(n) < 0.65).astype(float)
    strata = Strata.of([str(i) for i in range(n)], [str(i // each) for i in range(n)])
    ((value, resampled),) = strata.means(values[:, None], [np.arange(n)])
    assert value[0] == values.mean()
    assert resampled.std() == pytest.approx((values.var() / n) ** 0.5, rel=0.06)
    other = bootstrap((values,), np.mean, n_resamples=5000, method="percentile", random_state=0)
    ends = np.quantile(resampled[:, 0], [0.025, 0.975])
    np.testing.assert_allclose(ends, other.confidence_interval, atol=0.03)


def test_strata_of_few_items_or_with_a_cluster_in_common_are_one():
    names, of = [str(i) for i in range(75)], [0] * 10 + [1] * 25 + [2] * 9 + [3] * 30 + [4]
    strata = Strata.of(names, [f"s{x}" for x in of])
    assert strata.stratum.tolist() == [{0: 0, 1: 1, 2: 0, 3: 2, 4: 0}[x] for x in of]
    # What is drawn does not depend on numbers that no item has.
    some = np.flatnonzero(strata.stratum > 0)
    left = Strata(strata.cluster[some], strata.stratum[some])
    values = np.random.default_rng(3).random((75, 1))
    ((_, whole),) = strata.means(values, [some])
    ((_, alone),) = left.means(values[some], [np.arange(len(some))])
    np.testing.assert_allclose(whole, alone)
    names = [str(i // 2) for i in range(60)]
    strata = Strata.of(names, [str(i % 2) for i in range(60)])
    assert set(strata.stratum.tolist()) == {0}
    assert strata.cluster.tolist() == [i // 2 for i in range(60)]
    few = Strata.of(names[:38], ["s"] * 38)
    ((value, resampled),) = few.means(np.ones((38, 1)), [np.arange(38)])
    assert value.tolist() == [1]
    assert np.isnan(resampled).all()  # 19 clusters


def test_p_values_of_strata_are_those_of_a_t_test_if_there_is_one():
    rng = np.random.default_rng(0)
    values = rng.choice([-1.0, 0.0, 1.0], 200, p=(0.2, 0.5, 0.3))
    strata = Strata(np.arange(200), np.zeros(200, dtype=np.int64))
    (p,) = strata.p_values(values[:, None], [np.arange(200)])[0]
    assert p == pytest.approx(ttest_1samp(values, 0).pvalue, abs=0.02)


def test_strata_are_no_noise():
    # Paradigms differ by 1 and hardly vary: their mean is 0, whose error is that within them.
    values = np.concatenate([np.full(40, -0.5), np.full(40, 0.6)])
    values[::4] += 0.2
    strata = Strata(np.arange(80), np.repeat([0, 1], 40))
    within = np.std(values[:40], ddof=1) * np.sqrt(2 / 40) / 2
    assert values.mean() / within > 8
    assert strata.p_values(values[:, None], [np.arange(80)])[0, 0] < 0.001
    mixed = Strata(np.arange(80), np.zeros(80, dtype=np.int64))
    assert mixed.p_values(values[:, None], [np.arange(80)])[0, 0] > 0.1
