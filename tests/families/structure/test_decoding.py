"""Rank correlations within sentences, against scipy."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from probes.statistics.rank_correlation import spearman


def symmetric(m, n):
    found = np.random.default_rng(0).random((m, n, n)) + 0.1
    return found + found.swapaxes(1, 2)


def test_correlations_are_scipys():
    gold = np.random.default_rng(2).integers(0, 4, (6, 5))
    gold[:, 0] = 9
    predicted = np.round(symmetric(6, 5), 1)[:3, :, None]  # with ties
    found = spearman(predicted, gold)
    assert found.shape == (3, 5, 6)
    for place in np.ndindex(found.shape):
        expected = spearmanr(predicted[place[0], place[1], 0], gold[place[2]]).statistic
        assert found[place] == pytest.approx(expected)


def test_correlations_of_constants():
    gold = np.array([[1.0, 1.0, 1.0], [0.0, 1.0, 2.0]])
    predicted = np.array([[3.0, 2.0, 1.0], [5.0, 5.0, 5.0]])
    assert np.isnan(spearman(predicted, gold)[0])
    assert spearman(predicted, gold)[1] == 0
