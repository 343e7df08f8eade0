"""Erasers against the package of LEACE's authors, and against what defines them."""

import numpy as np
import pytest
import torch
from concept_erasure import LeaceFitter
from sklearn.linear_model import LinearRegression, LogisticRegression

from probes.families.interventions.controls import random_subspace
from probes.families.interventions.erasers import Moments, leace

N, WIDTH, CLASSES = 3000, 12, 4


@pytest.fixture(scope="module")
def data():
    """Vectors whose features are correlated, labels that shift them, and the labels' moments."""
    rng = np.random.default_rng(0)
    y = rng.choice(CLASSES, N, p=[0.6, 0.3, 0.098, 0.002])
    x = rng.standard_normal((N, WIDTH)) @ rng.standard_normal((WIDTH, WIDTH)) + 5
    x += 3 * rng.standard_normal((CLASSES, WIDTH))[y]
    return x, y, moments_of(x, np.eye(CLASSES)[y])


def moments_of(x, z, size=700):
    parts = (slice(i, i + size) for i in range(0, len(x), size))
    return Moments.of((x[part, None], z[part]) for part in parts)


def covariance(x, z):
    return (x - x.mean(0)).T @ (z - z.mean(0)) / len(x)


def test_moments_are_those_of_all_examples(data):
    x, y, moments = data
    assert moments.mean == pytest.approx(x.mean(0), abs=1e-12)
    assert moments.xx == pytest.approx(np.cov(x.T, bias=True), abs=1e-11)
    assert moments.xz[0] == pytest.approx(covariance(x, np.eye(CLASSES)[y]), abs=1e-12)


def test_leace_is_that_of_its_authors(data):
    x, y, moments = data
    eraser = leace(moments)
    theirs = LeaceFitter(WIDTH, CLASSES, dtype=torch.float64, svd_tol=1e-10)
    theirs.update(torch.from_numpy(x), torch.from_numpy(np.eye(CLASSES)[y]))
    assert eraser(x) == pytest.approx(theirs.eraser(torch.from_numpy(x)).numpy(), abs=5e-12)
    assert eraser.rank == CLASSES - 1


def test_no_linear_probe_is_above_the_majority(data):
    x, y, moments = data
    left = leace(moments)(x)
    assert LogisticRegression(C=np.inf, max_iter=2000).fit(x, y).score(x, y) > 0.75
    probe = LogisticRegression(C=np.inf, max_iter=2000).fit(left, y)
    assert probe.score(left, y) <= (y == 0).mean()
    assert abs(covariance(left, np.eye(CLASSES)[y])).max() < 1e-12


def test_it_is_the_least_change_of_such_maps(data):
    x, y, moments = data
    least = leace(moments)
    changed = np.square(least(x) - x).sum(1).mean()
    assert least.change(moments) == pytest.approx(changed / x.var(0).sum(), rel=0.01)
    # Orthogonal projections that leave no covariance either: off its range.
    basis = np.linalg.qr(moments.xz[0][:, : CLASSES - 1])[0]
    projected = x - (x - x.mean(0)) @ basis @ basis.T
    assert abs(covariance(projected, np.eye(CLASSES)[y])).max() < 1e-10
    assert changed < 0.999 * np.square(projected - x).sum(1).mean()


def test_both_spans_of_pairs_are_erased():
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, N)
    x = rng.standard_normal((N, 2, WIDTH))
    x[:, 0, 0] += 2 * y
    x[:, 1, 1] -= 3 * y
    z = np.eye(2)[y]
    eraser = leace(Moments.of([(x, z)]))
    assert eraser.rank == 2
    for span in (0, 1):
        assert abs(covariance(x[:, span], z)).max() > 0.4
        assert abs(covariance(eraser(x[:, span]), z)).max() < 1e-12


def test_a_number_is_erased_too():
    rng = np.random.default_rng(2)
    x = rng.standard_normal((N, WIDTH))
    y = x[:, 0] - x[:, 3] + rng.standard_normal(N)
    eraser = leace(moments_of(x, y[:, None]))
    assert eraser.rank == 1
    assert LinearRegression().fit(x, y).score(x, y) > 0.5
    assert LinearRegression().fit(eraser(x), y).score(eraser(x), y) == pytest.approx(0, abs=1e-12)


def test_random_directions_change_as_much(data):
    x, y, moments = data
    for change in (0.05, 0.4, 0.9):
        eraser = random_subspace(moments, change)
        assert eraser.change(moments) == pytest.approx(change)
        found = np.square(eraser(x) - x).sum(1).mean() / x.var(0).sum()
        assert found == pytest.approx(change, rel=0.03)
    probe = LogisticRegression(C=np.inf, max_iter=2000).fit(random_subspace(moments, 0.05)(x), y)
    assert probe.score(random_subspace(moments, 0.05)(x), y) > 0.75


def test_where_nothing_varies_nothing_is_erased():
    z = np.eye(2)[np.arange(50) % 2]
    moments = moments_of(np.full((50, 3), 0.1), z)
    eraser = leace(moments)
    assert eraser.rank == 0
    assert eraser.change(moments) == 0
    assert random_subspace(moments, 0.0).rank == 0


def test_labels_that_nothing_tells_are_not_erased():
    x = np.repeat(np.eye(3), 2, axis=0)
    z = np.eye(2)[[0, 1] * 3]
    assert leace(moments_of(x, z)).rank == 0


def test_few_vectors_do_not_throw_others_far_away():
    """Fitted to fewer vectors than features, it still changes others by no more than they vary."""
    rng = np.random.default_rng(4)
    scales = 10 ** np.linspace(0, -3, 64)
    turned = np.linalg.qr(rng.standard_normal((64, 64)))[0]
    x, others = (rng.standard_normal((n, 64)) * scales @ turned for n in (50, 5000))
    y = rng.integers(0, 2, 50)
    eraser = leace(moments_of(x, np.eye(2)[y]))
    assert abs(covariance(eraser(x), np.eye(2)[y])).max() < 1e-12
    changed = np.square(eraser(others) - others).sum(1).mean() / others.var(0).sum()
    assert changed < 0.2


def test_random_directions_leave_features_alone_that_hardly_vary():
    x = np.random.default_rng(5).standard_normal((N, 16))
    x[:, 3] *= 1e-8
    moments = moments_of(x, np.eye(2)[np.arange(N) % 2])
    eraser = random_subspace(moments, 0.3)
    assert eraser.change(moments) == pytest.approx(0.3)
    assert np.array_equal(eraser(x)[:, 3], x[:, 3])
