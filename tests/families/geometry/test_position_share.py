"""The share of places against least squares of numpy, and values known in advance."""

import numpy as np
import pytest

from probes.families.geometry.position_share import LAST_PLACE, PlacesOfTypes


def share(rows, place, types, shuffled=()):
    shares = PlacesOfTypes(place, types).shares(rows, list(shuffled))
    return None if shares is None else shares if shuffled else shares[0]


def adjusted_share(rows, place, types):
    """1 less the ratio of residual variances of regressions on types and places, and types."""
    rows = rows.astype(float)
    of_types = np.eye(types.max() + 1)[types]
    both = np.hstack([of_types, np.eye(place.max() + 1)[place]])

    def variance(design):
        fitted = design @ np.linalg.lstsq(design, rows, rcond=None)[0]
        return ((rows - fitted) ** 2).sum() / (len(rows) - np.linalg.matrix_rank(design))

    return 1 - variance(both) / variance(of_types)


def words(n=400, n_places=9, n_types=30, seed=0):
    """Types that prefer places, so that what places explain within types is less than overall."""
    rng = np.random.default_rng(seed)
    types = rng.integers(n_types, size=n)
    place = (types + rng.integers(0, n_places // 2, size=n)) % n_places
    rows = rng.normal(size=(n_types, 5))[types] + 0.4 * rng.normal(size=(n_places, 5))[place]
    return (rows + 0.5 * rng.normal(size=(n, 5)) + 3).astype(np.float32), place, types


@pytest.mark.parametrize("seed", range(3))
def test_within_types_it_is_what_places_add_to_a_regression_on_types(seed):
    rows, place, types = words(seed=seed)
    model = PlacesOfTypes(place, types)
    shuffled = model.shuffled(np.random.default_rng(seed))
    expected = [adjusted_share(rows, x, types) for x in (place, shuffled)]
    assert model.shares(rows, [shuffled]) == pytest.approx(expected, abs=1e-5)
    assert expected[0] > 0.2 > abs(expected[1])


def test_of_one_type_it_is_one_way_analysis_of_variance():
    rows, place, _ = words()
    within = sum(((rows[place == x] - rows[place == x].mean(0)) ** 2).sum() for x in range(9))
    total = ((rows - rows.mean(0)) ** 2).sum()
    expected = 1 - (within / (400 - 9)) / (total / 399)
    assert share(rows, place, np.zeros(400, dtype=int)) == pytest.approx(expected, abs=1e-5)


def test_vectors_of_the_place_alone_are_explained_by_it():
    _, place, types = words()
    rows = np.random.default_rng(1).normal(size=(9, 4))[place].astype(np.float32)
    assert share(rows, place, types) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize(
    ("rows", "place", "types"),
    [
        (np.eye(9, dtype=np.float32)[words()[2] % 9], *words()[1:]),  # of the type alone
        (words(3)[0], np.arange(3), np.zeros(3, int)),  # as many places as words
        (words(40)[0], np.arange(40) % 4 + 3, np.arange(40) % 4),  # each type in one place
        (words(1)[0], np.zeros(1, int), np.zeros(1, int)),
    ],
)
def test_without_variation_within_types_there_is_no_share(rows, place, types):
    assert share(rows, place, types) is None


def test_shuffled_places_stay_with_their_type():
    _, place, types = words()
    shuffled = PlacesOfTypes(place, types).shuffled(np.random.default_rng(0))
    assert sum(shuffled != place) > 200
    for one in range(30):
        assert sorted(shuffled[types == one]) == sorted(place[types == one])


def test_if_places_make_no_difference_the_share_is_zero_on_average_and_p_is_uniform():
    """The share is an unbiased contrast, and the true order is one of the possible ones."""
    shares, p_values = [], []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        _, place, types = words(120, seed=seed)
        rows = rng.normal(size=(120, 3)).astype(np.float32)
        model = PlacesOfTypes(place, types)
        found = model.shares(rows, [model.shuffled(rng) for _ in range(19)])
        shares.append(found[0])
        p_values.append((1 + sum(found[1:] >= found[0])) / 20)
    assert abs(np.mean(shares)) < 3 * np.std(shares) / np.sqrt(200)
    # 5 % expected; the binomial's 99.9 % point of 200 is 22.
    assert np.mean(np.array(p_values) <= 0.05) <= 0.11
    assert 0.4 < np.mean(p_values) < 0.65


def test_far_places_are_one():
    rng = np.random.default_rng(5)
    place = np.tile(np.arange(3 * LAST_PLACE), 2)
    rows = (rng.normal(size=(len(place), 4)) + (place[:, None] < 20)).astype(np.float32)
    types = rng.integers(30, size=len(place))
    expected = adjusted_share(rows, np.minimum(place, LAST_PLACE), types)
    assert share(rows, place, types) == pytest.approx(expected, abs=1e-5)
