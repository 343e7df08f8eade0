"""Replicates with the variance of training added, against Student's t distribution."""

import numpy as np
import pytest
from scipy.stats import kstest, t

from probes.statistics.training_noise import with_training_noise

VALUES = np.linspace(0.2, 0.8, 3)[:, None] * np.ones((3, 20_000))


@pytest.mark.parametrize("df", [3, 4, 12, 60])
def test_what_is_added_is_student_s_t_times_the_deviation(df):
    added = with_training_noise(VALUES, [(0.05, df)]) - VALUES
    assert added.mean() == pytest.approx(0, abs=0.002)
    # The variance of t is df / (df − 2).
    if df > 4:
        assert added.std() == pytest.approx(0.05 * np.sqrt(df / (df - 2)), rel=0.02)
    for row in added:
        assert kstest(row / 0.05, t(df).cdf).pvalue > 0.001
    # Another deviation scales the same draws, and each cell has draws of its own.
    twice = with_training_noise(VALUES, [(0.1, df)]) - VALUES
    np.testing.assert_allclose(twice, 2 * added, atol=1e-12)
    assert abs(np.corrcoef(added)[0, 1]) < 0.03


def test_sources_add_their_variances():
    spreads = [(0.03, 50), (0.04, 100)]
    added = with_training_noise(VALUES, spreads) - VALUES
    expected = 0.03**2 * 50 / 48 + 0.04**2 * 100 / 98
    assert added.var() == pytest.approx(expected, rel=0.03)


def test_the_same_shape_has_the_same_draws():
    one = with_training_noise(VALUES, [(0.05, 4)]) - VALUES
    other = with_training_noise(VALUES + 1, [(0.05, 4)]) - VALUES - 1
    np.testing.assert_allclose(one, other, atol=1e-12)


def test_without_spread_nothing_is_added_and_nothing_is_changed():
    before = VALUES.copy()
    assert (with_training_noise(VALUES, []) == VALUES).all()
    assert (with_training_noise(VALUES, [(0.0, 4)]) == VALUES).all()
    with_training_noise(VALUES, [(0.5, 4)])
    assert (before == VALUES).all()


def test_undefined_replicates_stay_so():
    values = np.array([[np.nan, 0.5], [0.5, 0.5]])
    found = with_training_noise(values, [(0.1, 9)])
    assert np.isnan(found).tolist() == [[True, False], [False, False]]
