"""Intervals of test scores."""

import numpy as np
import pytest

from probes.measurements.scores import intervals
from probes.statistics.gold import Gold


def gold(n):
    """The same label for n one-word sentences."""
    return Gold(np.ones(n, dtype=np.int64), np.arange(n), ("a", "b"), np.zeros(n, dtype=bool))


def test_intervals_of_accuracy_are_those_of_a_proportion():
    n = 400
    rows = np.stack([np.arange(n) % 10 != 0, np.arange(n) % 2 != 0]).astype(np.int64)
    found = intervals(gold(n), ("accuracy",), rows)
    for (low, high), p in zip(found["accuracy"], (0.9, 0.5), strict=True):
        half = 1.96 * np.sqrt(p * (1 - p) / n)
        assert (low, high) == (
            pytest.approx(p - half, abs=0.006),
            pytest.approx(p + half, abs=0.006),
        )


def test_every_metric_has_its_interval():
    right = np.ones((1, 30), dtype=np.int64)
    found = intervals(gold(30), ("accuracy", "macro_f1"), right)
    assert found == {"accuracy": [(1.0, 1.0)], "macro_f1": [(1.0, 1.0)]}


def test_with_very_few_sentences_there_are_none():
    rows = np.stack([np.ones(19, dtype=np.int64), np.zeros(19, dtype=np.int64)])
    assert intervals(gold(19), ("accuracy",), rows) == {"accuracy": [None, None]}
    assert intervals(gold(20), ("accuracy",), rows[:, :1].repeat(20, 1)) == {
        "accuracy": [(1.0, 1.0), (0.0, 0.0)]
    }


def test_an_undefined_metric_has_none():
    # NSpr covers sentences of 5 to 50 words; these have one.
    numbers = Gold(np.ones(40), np.arange(40), (), np.zeros(40, dtype=bool))
    rows = np.stack([np.zeros(40), np.ones(40)])
    assert intervals(numbers, ("nspr",), rows) == {"nspr": [None, None]}
