"""Explainable variance and participation ratio against scikit-learn's PCA."""

import numpy as np
import pytest
from sklearn.decomposition import PCA

from probes.families.geometry.layer import explainable_variance, participation_ratio


def cloud(n, dimensions, seed=0):
    rng = np.random.default_rng(seed)
    scales = np.geomspace(1, 0.05, dimensions)
    return (rng.normal(0.7, 1, (n, dimensions)) * scales).astype(np.float32)


@pytest.mark.parametrize("shape", [(5, 30), (30, 30), (300, 12)])
def test_explainable_variance_is_that_of_the_first_principal_component(shape):
    rows = cloud(*shape)
    ratio = PCA().fit(rows.astype(float)).explained_variance_ratio_
    assert explainable_variance(rows) == pytest.approx(ratio[0], rel=1e-9)


def test_what_vectors_have_in_common_is_not_explained_variance():
    """Two pairs around (10, 0), which uncentred would have 400 of 402.5 along the first axis."""
    rows = np.array([[10, 1], [10, -1], [10.5, 0], [9.5, 0]], dtype=np.float32)
    assert explainable_variance(rows) == pytest.approx(2 / 2.5)
    assert explainable_variance(rows + 100) == pytest.approx(2 / 2.5)


def test_one_direction_explains_everything_of_its_multiples_and_of_equal_vectors():
    line = np.outer([1, -2, 5, 3], [0.2, 0.4, -0.1]).astype(np.float32)
    assert explainable_variance(line) == pytest.approx(1, abs=1e-6)
    assert participation_ratio(line) == pytest.approx(1, abs=1e-5)
    same = np.random.default_rng(0).normal(3, 1, (1, 40)).repeat(7, axis=0)
    assert explainable_variance(same.astype(np.float32)) == 1
    assert explainable_variance(np.zeros((5, 3), dtype=np.float32)) == 1


def test_orthogonal_vectors_share_it():
    """In n unit vectors at right angles, n − 1 directions have the same variance."""
    assert explainable_variance(np.eye(5, dtype=np.float32)) == pytest.approx(1 / 4)


@pytest.mark.parametrize("shape", [(8, 30), (5_000, 12)])
def test_the_participation_ratio_is_that_of_the_eigenvalues(shape):
    rows = cloud(*shape)
    values = PCA().fit(rows.astype(float)).explained_variance_
    assert participation_ratio(rows) == pytest.approx(
        values.sum() ** 2 / (values**2).sum(), rel=1e-5
    )


def test_of_an_isotropic_sample_it_is_the_number_of_dimensions_less_what_sampling_costs():
    """E (tr S)² / E ‖S‖² of a Wishart matrix of n degrees of freedom."""
    n, d = 2_000, 60
    rows = np.random.default_rng(1).normal(3, 1, (n, d)).astype(np.float32)
    assert participation_ratio(rows) == pytest.approx(n * d / (n + d + 1), rel=0.01)


def test_it_counts_equal_directions_and_ignores_mean_rotation_and_scale():
    rows = np.concatenate([np.eye(4), -np.eye(4)]).astype(np.float32)
    padded = np.pad(rows, ((0, 0), (0, 3)))
    rotation = np.linalg.qr(np.random.default_rng(2).normal(size=(7, 7)))[0]
    moved = (5 * padded @ rotation + 11).astype(np.float32)
    assert participation_ratio(padded) == pytest.approx(4)
    assert participation_ratio(moved) == pytest.approx(4, rel=1e-4)


def test_vectors_that_are_the_same_have_none():
    assert participation_ratio(np.full((6, 3), 0.1, dtype=np.float32)) is None
    assert participation_ratio(np.ones((1, 3), dtype=np.float32)) is None
