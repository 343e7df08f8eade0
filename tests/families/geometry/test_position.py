"""The share of places against least squares of numpy, and values known in advance."""

import time

import numpy as np
import pytest

from probes.families.geometry.position_share import PLACES, position_share


def adjusted_share(rows, position, types):
    """1 less the ratio of residual variances of regressions on types and places, and types."""
    rows = rows.astype(float)
    of_types = np.eye(types.max() + 1)[types]
    both = np.hstack([of_types, np.eye(position.max() + 1)[position]])

    def variance(design):
        fitted = design @ np.linalg.lstsq(design, rows, rcond=None)[0]
        return ((rows - fitted) ** 2).sum() / (len(rows) - np.linalg.matrix_rank(design))

    return 1 - variance(both) / variance(of_types)


def words(n=400, n_places=9, n_types=30, seed=0):
    """Types that prefer places, so that what places explain within types is less than overall."""
    rng = np.random.default_rng(seed)
    types = rng.integers(n_types, size=n)
    position = (types + rng.integers(0, n_places // 2, size=n)) % n_places
    rows = rng.normal(size=(n_types, 5))[types] + 0.4 * rng.normal(size=(n_places, 5))[position]
    return (rows + 0.5 * rng.normal(size=(n, 5)) + 3).astype(np.float32), position, types


@pytest.mark.parametrize("seed", range(3))
def test_within_types_it_is_what_places_add_to_a_regression_on_types(seed):
    rows, position, types = words(seed=seed)
    expected = adjusted_share(rows, position, types)
    assert position_share(rows, position, types) == pytest.approx(expected, abs=1e-5)


def test_of_one_type_it_is_one_way_analysis_of_variance():
    rows, position, _ = words()
    within = sum(((rows[position == x] - rows[position == x].mean(0)) ** 2).sum() for x in range(9))
    total = ((rows - rows.mean(0)) ** 2).sum()
    expected = 1 - (within / (400 - 9)) / (total / 399)
    found = position_share(rows, position, np.zeros(400, dtype=int))
    assert found == pytest.approx(expected, abs=1e-5)


def test_places_and_types_that_never_occur_change_nothing():
    rows, position, types = words()
    found = position_share(rows, position, types)
    assert position_share(rows, 2 * position, 3 * types) == pytest.approx(found, abs=1e-9)


def test_vectors_of_the_place_alone_are_explained_by_it():
    _, position, types = words()
    rows = np.random.default_rng(1).normal(size=(9, 4))[position].astype(np.float32)
    assert position_share(rows, position, types) == pytest.approx(1, abs=1e-5)
    assert position_share(rows, position, 0 * types) == pytest.approx(1, abs=1e-5)


def test_vectors_of_the_type_alone_have_nothing_left_to_explain():
    _, position, types = words()
    rows = np.eye(9, dtype=np.float32)[types % 9]
    assert position_share(rows, position, types) is None
    # Types prefer places, so that over all words places do explain something.
    assert position_share(rows, position, 0 * types) > 0.05


def test_too_few_words_have_no_share():
    rows = np.random.default_rng(0).normal(size=(3, 2)).astype(np.float32)
    assert position_share(rows, np.arange(3), np.zeros(3, int)) is None
    assert position_share(rows, np.zeros(3, int), np.arange(3)) is None
    assert position_share(rows[:1], np.zeros(1, int), np.zeros(1, int)) is None


def test_types_that_never_change_their_place_have_no_share():
    rows = np.random.default_rng(0).normal(size=(40, 2)).astype(np.float32)
    types = np.arange(40) % 4
    assert position_share(rows, types + 3, types) is None
    assert position_share(rows, types + 3, 0 * types) is not None


def test_far_places_are_one_and_long_sentences_take_no_longer():
    """Two sentences of 5,000 words took over 45 seconds."""
    rng = np.random.default_rng(5)
    position = np.tile(np.arange(5000), 2)
    rows = (rng.normal(size=(10_000, 4)) + (position[:, None] < 20)).astype(np.float32)
    types, began = rng.integers(30, size=10_000), time.process_time()
    found = position_share(rows, position, types)
    assert time.process_time() - began < 5
    expected = adjusted_share(rows, np.minimum(position, PLACES - 1), types)
    assert found == pytest.approx(expected, abs=1e-5)
    assert found > 0.002


def test_below_the_bound_all_places_are_told_apart():
    rng = np.random.default_rng(6)
    position = np.arange(3 * PLACES) % PLACES
    rows = (rng.normal(size=(len(position), 3)) + 5 * (position[:, None] == PLACES - 1)).astype(
        np.float32
    )
    types = np.zeros(len(position), dtype=int)
    expected = adjusted_share(rows, position, types)
    assert position_share(rows, position, types) == pytest.approx(expected, abs=1e-5)
