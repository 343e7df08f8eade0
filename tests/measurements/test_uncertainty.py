"""Intervals, tests and the confidence set of a result's layers."""

import numpy as np
import pytest

from probes.measurements.uncertainty import with_uncertainty
from probes.records.payload import Cell, LayerResult
from probes.statistics.gold import Gold


def layer(number, dev):
    cell = Cell(
        seed=0, l2=0.1, stopped=1.0, dev_loss=1.0, dev={"accuracy": dev}, test={}, groups={}
    )
    return LayerResult(layer=number, cells=(cell,))


@pytest.fixture
def found():
    """Three layers on 400 one-word sentences: .9, the same but for two words, and .5."""
    n = 400
    gold = Gold(np.ones(n, dtype=np.int64), np.arange(n), ("a", "b"), np.zeros(n, dtype=bool))
    best = (np.arange(n) % 10 != 0).astype(np.int64)
    close = best.copy()
    close[[0, 1]] = 1 - close[[0, 1]]
    far = (np.arange(n) % 2).astype(np.int64)
    layers = [layer(2, 0.89), layer(3, 0.95), layer(5, 0.6)]
    return with_uncertainty(layers, np.stack([close, best, far]), gold, ("accuracy",))


def test_the_best_layer_on_dev_has_no_p_value(found):
    close, best, far = found
    assert best.p_best is None
    # One word gained and one lost: nothing to tell them apart.
    assert close.p_best > 0.5
    # No resample of 2,000 has the difference's other sign: 2 · 1 / 2,001, times two comparisons.
    assert far.p_best == pytest.approx(2 * 2 / 2001)


def test_intervals_of_accuracy_are_those_of_a_proportion(found):
    _, best, _ = found
    low, high = best.intervals["accuracy"]
    half = 1.96 * np.sqrt(0.9 * 0.1 / 400)
    assert (low, high) == (
        pytest.approx(0.9 - half, abs=0.006),
        pytest.approx(0.9 + half, abs=0.006),
    )


def test_a_single_layer_has_an_interval_and_no_test():
    gold = Gold(np.ones(30, dtype=np.int64), np.arange(30), ("a", "b"), np.zeros(30, dtype=bool))
    ones = np.ones((1, 30), dtype=np.int64)
    (only,) = with_uncertainty([layer(0, 0.5)], ones, gold, ("accuracy",))
    assert only.p_best is None
    assert only.intervals["accuracy"] == (1.0, 1.0)


def test_very_few_sentences_have_neither_intervals_nor_tests():
    gold = Gold(np.ones(9, dtype=np.int64), np.arange(9), ("a", "b"), np.zeros(9, dtype=bool))
    rows = np.stack([np.ones(9, dtype=np.int64), np.zeros(9, dtype=np.int64)])
    found = with_uncertainty([layer(0, 0.5), layer(1, 0.4)], rows, gold, ("accuracy",))
    assert [x.intervals for x in found] == [{"accuracy": None}] * 2
    assert [x.p_best for x in found] == [None, None]


def test_an_undefined_metric_separates_no_layers():
    # NSpr covers sentences of 5 to 50 words; these have one.
    gold = Gold(np.ones(40), np.arange(40), (), np.zeros(40, dtype=bool))
    rows = np.stack([np.zeros(40), np.ones(40)])
    layers = [layer(0, 0.5), layer(1, 0.4)]
    layers = [
        x.model_copy(update={"cells": (x.cells[0].model_copy(update={"dev": {"nspr": None}}),)})
        for x in layers
    ]
    found = with_uncertainty(layers, rows, gold, ("nspr",))
    assert [x.p_best for x in found] == [None, None]
    assert [x.intervals["nspr"] for x in found] == [None, None]
