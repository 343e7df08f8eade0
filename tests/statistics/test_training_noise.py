"""What another training would have changed, against the multivariate t distribution."""

import numpy as np
import pytest
from scipy.stats import f, kstest, t

from probes.statistics.replicates import training_noise

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
    assert (training_noise("m", [5], 0.05, 4, 100) == three[1]).all()


def test_the_deviation_scales_and_without_any_nothing_is_added():
    np.testing.assert_allclose(
        training_noise("m", [1], 0.1, 4, 100), 2 * training_noise("m", [1], 0.05, 4, 100)
    )
    assert (training_noise("m", [1, 2], 0.0, 4, 100) == 0).all()
