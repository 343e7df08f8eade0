"""Seeds as a random effect: analysis of variance by hand, and coverage in a simulation."""

from dataclasses import replace

import numpy as np
import pytest

from probes.statistics.metrics import metrics
from probes.statistics.replicates import Replicates
from probes.statistics.seeds import (
    difference_over_seeds,
    interval_over_seeds,
    mean_over_seeds,
    p_values_over_seeds,
    variance_parts,
)
from probes.statistics.sums import sparse_matrix

METRIC = metrics.get("accuracy")


def replicates(table):
    """Replicates of each row of a table of scores by seed and document."""
    return [
        Replicates(
            np.array([row.mean()]),
            METRIC,
            [sparse_matrix(np.stack([row, np.ones_like(row)], axis=1))],
            [0],
            f"seed {i}",
        )
        for i, row in enumerate(table)
    ]


def drawn(rng, n_seeds, seeds, documents, both, n=60):
    """Scores by seed and document, with the standard deviations of a seed's mean score."""
    each = np.sqrt(n)
    return (
        rng.normal(0, seeds, (n_seeds, 1))
        + rng.normal(0, documents * each, (1, n))
        + rng.normal(0, both * each, (n_seeds, n))
    )


def test_variance_parts_are_those_of_a_two_way_analysis_of_variance():
    """By mean squares: E MS = σ²_both, + n σ²_seeds for rows, + S σ²_documents for columns."""
    table = drawn(np.random.default_rng(2), 6, 1.0, 0.5, 0.7, n=40)
    rows, columns = table.shape
    of_rows = columns * ((table.mean(1) - table.mean()) ** 2).sum() / (rows - 1)
    of_columns = rows * ((table.mean(0) - table.mean()) ** 2).sum() / (columns - 1)
    total = ((table - table.mean()) ** 2).sum()
    left = total - of_rows * (rows - 1) - of_columns * (columns - 1)
    left /= (rows - 1) * (columns - 1)
    seeds, documents = (of_rows - left) / columns, (of_columns - left) / rows / columns
    found = variance_parts(replicates(table), None)
    assert found[:3] == pytest.approx(np.sqrt([seeds, documents, left / columns]), rel=1e-6)
    assert found.training is None
    # Samples 2 and 3 move all seeds by .1 and .4, and each seed by something of its own.
    own = np.array([[0, 0.12, 0.38], [0, 0.08, 0.42]] * 3)
    trained = variance_parts(replicates(table), own + table.mean(1, keepdims=True))
    of_one = 12 * 0.02**2 / (5 * 2)  # sum of squares, by its degrees of freedom
    assert trained.training == pytest.approx(
        np.sqrt(np.var([0, 0.1, 0.4], ddof=1) - of_one / 6 + of_one)
    )
    assert trained.seeds == pytest.approx(np.sqrt(seeds - of_one))


@pytest.mark.parametrize("n_seeds", [5, 25])
def test_intervals_cover_and_tests_keep_their_level(n_seeds):
    """200 draws: the standard error of a rate of .95 is .015."""
    rng, covered, rejected = np.random.default_rng(7), 0, 0
    for number in range(200):
        table = drawn(rng, n_seeds, 1.0, 0.5, 0.3)
        low, high = interval_over_seeds(mean_over_seeds(replicates(table), f"{number}"))
        covered += low <= 0 <= high
        # The same documents and seeds, and an own deviation of each seed that is equally likely.
        other = table + rng.normal(0, 0.5, (n_seeds, 1)) + rng.normal(0, 1, table.shape)
        found = difference_over_seeds(
            replicates(table), replicates(other), f"{number} apart", paired=True
        )
        rejected += p_values_over_seeds([found])[0] < 0.05
    assert 0.92 <= covered / 200 <= 0.99
    assert rejected / 200 <= 0.08


def test_intervals_of_two_seeds_end_where_the_metric_does():
    """Scores of .9 and .66: 12.7 standard errors of .12 reach far beyond 0 and 1."""
    low, high = np.array([0.9, 0.66])[:, None] + np.zeros((2, 60))
    seeds, others = (replicates(x) for x in ((low, high), (1 - low, 1 - high)))
    assert interval_over_seeds(mean_over_seeds(seeds, "a")) == (0, 1)
    apart = difference_over_seeds(seeds, others, "a", paired=True)
    assert interval_over_seeds(apart) == (-1, 1)
    unbounded = [replace(x, metric=replace(METRIC, bounds=(-np.inf, np.inf))) for x in seeds]
    reach = 12.7 * 0.12  # Student's t with one degree of freedom
    found = interval_over_seeds(mean_over_seeds(unbounded, "a"))
    assert found == pytest.approx((0.78 - reach, 0.78 + reach), abs=0.3)


def test_more_than_one_difference_is_corrected_for():
    table = drawn(np.random.default_rng(5), 5, 1.0, 0.5, 0.3)
    shift = np.linspace(1, 1.4, 5)[:, None]
    found = [
        difference_over_seeds(replicates(table), replicates(table + x), name, paired=True)
        for name, x in (("a", shift), ("b", shift[::-1]))
    ]
    assert found[0].scores == pytest.approx([1.2])
    alone = p_values_over_seeds(found[:1])[0]
    together = p_values_over_seeds(found)
    # t = 1.2 / (.158 / √5) = 17 with 4 degrees of freedom: p = .00007, and at least 1 / 2001.
    assert 1 / 2001 <= alone <= together[0] < 0.003
    assert p_values_over_seeds([]) == []
