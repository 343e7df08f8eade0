"""Roots, orientation and correlations against scipy and examples by hand."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from probes.data.sentence import ROOT
from probes.measurements.structure.contributions import lowest, oriented
from probes.records.charts import LEFT_OUT
from probes.statistics.rank_correlation import spearman


def symmetric(m, n):
    found = np.random.default_rng(0).random((m, n, n)) + 0.1
    return found + found.swapaxes(1, 2)


def test_orientation_by_hand():
    heads = np.array([ROOT, 0, 1, 1, LEFT_OUT, 3])
    assert oriented(heads, 3).tolist() == [1, 3, 1, ROOT, LEFT_OUT, 3]
    assert oriented(heads, 0).tolist() == heads.tolist()
    assert oriented(heads, 5).tolist() == [1, 3, 1, 5, LEFT_OUT, ROOT]
    nothing = np.full(2, LEFT_OUT)
    assert oriented(nothing, ROOT).tolist() == [LEFT_OUT, LEFT_OUT]


def test_roots_are_the_least_deep_words_that_are_kept():
    depths = np.array([[[2.0, 0.5, 1.0], [0.1, 0.2, 0.3], [0.4, 0.3, 0.3]]])
    kept = np.array([[True, False, True], [False, False, False], [True, True, True]])
    assert lowest(depths, kept).tolist() == [[2, -1, 1]]
    assert lowest(depths, np.ones((3, 3), dtype=bool)).tolist() == [[1, 0, 1]]


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
