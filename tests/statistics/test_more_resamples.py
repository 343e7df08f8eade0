"""More resamples where a p-value is close to its bound: against all resamples there are."""

from itertools import count, islice

import numpy as np
import pytest
from scipy.stats import multinomial

from probes.statistics.bootstrap import MOST, RESAMPLES, blocks, resample
from probes.statistics.significance import ALPHA, Errors, all_pairs, borderline, max_t, shown_p

N = 8
"""Clusters: few enough for all 6,435 different resamples."""


def resamples(n, left):
    """How often each of n clusters is drawn in `left` draws, in every possible way."""
    if n == 1:
        return [[left]]
    return [[k, *rest] for k in range(left + 1) for rest in resamples(n - 1, left - k)]


ALL = np.array(resamples(N, N), dtype=float)
SHARE = multinomial.pmf(ALL, N, np.full(N, 1 / N))


def differences(shift):
    """Of two cells that are means of the same eight clusters."""
    return np.array([-1.3, -0.7, -0.4, 0.1, 0.3, 0.6, 0.9, 1.6]) + shift


def statistics(items, draws):
    """|d* − d| / s* of each resample, by its definition."""
    times = draws.astype(int)
    drawn = [np.repeat(items, each) for each in times]
    moved = np.array([abs(x.mean() - items.mean()) for x in drawn])
    error = np.array([x.std(ddof=1) / N**0.5 for x in drawn])
    with np.errstate(divide="ignore"):
        return np.where(error > 1e-12, moved / np.maximum(error, 1e-300), np.inf)


def exact_p(items):
    """The p-value that infinitely many resamples would give."""
    size = abs(items.mean()) / (items.std(ddof=1) / N**0.5)
    return SHARE[statistics(items, ALL) >= size - 1e-12].sum()


def p_of(items, drawn):
    cells = np.stack([items, np.zeros(N)])
    influence = (cells - cells.mean(1, keepdims=True)) / N
    given = ((cells @ x.T / N, Errors(influence, np.zeros(2), x.astype(float))) for x in drawn)
    (p,) = max_t(cells.mean(1), given, all_pairs(2))
    return p


def blocks_of(seed):
    """Blocks of other resamples than those that the suite draws."""
    return islice((resample(N, RESAMPLES, 1000 * seed + i) for i in count()), MOST)


@pytest.mark.parametrize(
    ("shift", "expected"), [(0.695, 0.0425), (0.68, 0.0456), (0.63, 0.0557), (0.4, 0.1473)]
)
def test_marks_no_longer_hang_on_the_seed_unless_they_are_called_borderline(shift, expected):
    items = differences(shift)
    exact = exact_p(items)
    assert exact == pytest.approx(expected, abs=5e-5)
    once = [p_of(items, [resample(N, RESAMPLES, 1000 * seed)]) for seed in range(40)]
    p_values = np.array([p_of(items, blocks_of(seed)) for seed in range(40)])
    separated = exact < ALPHA
    clear = ~borderline(p_values)
    assert ((p_values < ALPHA) == separated)[clear].all()
    if abs(exact - ALPHA) < 0.01:
        assert len({p < ALPHA for p in once}) == 2
        assert clear.mean() > 0.6
    else:
        # Clear from the first block on.
        assert clear.all()
        assert p_values.tolist() == once


def test_a_p_value_on_the_bound_is_called_borderline_by_most_seeds():
    exact = exact_p(differences(0.655))
    assert exact == pytest.approx(ALPHA, abs=4e-4)
    p_values = np.array([p_of(differences(0.655), blocks_of(seed)) for seed in range(40)])
    assert borderline(p_values).mean() > 0.8
    # Over all 40,000 resamples of those that are, three standard errors are .0033.
    assert p_values[borderline(p_values)] == pytest.approx(exact, abs=4 * 0.0011)
    assert shown_p(0.0468) == ".047 (borderline)"
    assert shown_p(0.0467) == ".047"
    assert shown_p(0.0533) == ".053"
    assert shown_p(0.0532) == ".053 (borderline)"


def test_the_first_block_is_that_of_intervals_and_all_are_bootstrap_resamples():
    found = list(blocks(50))
    assert len(found) == MOST
    assert found[0] is resample(50)
    for one, again in zip(found, blocks(50), strict=True):
        assert (one == again).all()
        assert (one.sum(1) == 50).all()
        # Binomial counts: mean 1, variance 1 − 1/50; those of two clusters have covariance −1/50.
        assert one.var() == pytest.approx(0.98, abs=0.02)
        assert np.cov(one[:, 0], one[:, 1])[0, 1] == pytest.approx(-0.02, abs=0.08)
    assert len({each.tobytes() for each in found}) == MOST
