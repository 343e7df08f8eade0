"""Principal angles of subspaces made by hand, and against scipy's."""

import numpy as np
import pytest
from scipy.linalg import subspace_angles

from probes.statistics.subspaces import (
    all_angles,
    mean_overlaps,
    overlap,
    principal_angles,
    row_basis,
)


def rotated(first, second):
    """Two axes of five dimensions, each turned by an angle in degrees towards another one."""
    a, b = np.radians([first, second])
    rows = np.zeros((2, 5))
    rows[0, [0, 2]] = np.cos(a), np.sin(a)
    rows[1, [1, 3]] = np.cos(b), np.sin(b)
    return rows


@pytest.mark.parametrize("angles", [(0, 0), (20, 70), (45, 90), (0.01, 30)])
def test_angles_by_which_axes_were_turned(angles):
    a = row_basis(rotated(0, 0) * [[3.0], [0.2]])
    b = row_basis(np.array([[1, 2], [-1, 0.5]]) @ rotated(*angles))
    assert principal_angles(a, b) == pytest.approx(angles, abs=1e-6)
    expected = np.mean(np.cos(np.radians(angles)) ** 2)
    assert overlap(a, b) == pytest.approx(expected)


def test_they_are_scipys_for_any_rows():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(4, 30)), rng.normal(size=(7, 30))
    theirs = subspace_angles(a.T, b.T)
    ours = principal_angles(row_basis(a), row_basis(b))
    assert ours == pytest.approx(np.degrees(theirs)[::-1])
    assert overlap(row_basis(a), row_basis(b)) == pytest.approx(np.mean(np.cos(theirs) ** 2))


def test_a_subspace_in_another_has_an_overlap_of_one():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(5, 12))
    whole, part = row_basis(rows), row_basis(rng.normal(size=(2, 5)) @ rows)
    assert overlap(whole, part) == overlap(part, whole) == pytest.approx(1)
    assert principal_angles(part, whole) == pytest.approx([0, 0], abs=1e-5)


@pytest.mark.parametrize(("k", "m"), [(1, 1), (3, 3), (2, 5)])
def test_random_subspaces_overlap_by_the_share_of_dimensions(k, m):
    rng, n_features = np.random.default_rng(2), 20
    found = [
        overlap(row_basis(rng.normal(size=(k, n_features))), row_basis(rng.normal(size=(m, 20))))
        for _ in range(2000)
    ]
    assert np.mean(found) == pytest.approx(max(k, m) / n_features, abs=0.005)


def test_dimensions_are_counted_as_numpy_counts_them_in_float32():
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(4, 50))
    rows[3] = rows[0] - 2 * rows[1] + 1e-7 * rng.normal(size=50)
    assert np.linalg.matrix_rank(rows) == 4
    assert np.linalg.matrix_rank(rows.astype(np.float32)) == len(row_basis(rows)) == 3
    nothing = row_basis(np.zeros((4, 50)))
    assert (len(nothing), overlap(nothing, row_basis(rows))) == (0, None)
    assert len(principal_angles(nothing, row_basis(rows))) == 0


def test_all_pairs_of_layers_both_ways():
    x, y, z = (np.eye(3)[[i]] for i in range(3))
    half = (x + y) / np.sqrt(2)
    bases = [[x, x, z], [half, y, x], [z, z, np.zeros((0, 3))]]
    # First of one with second of the other: x and y, half and x.
    expected = ((1, 0.25, 0), (0.25, 0.5, 0), (0, 0, 1))
    assert np.array(mean_overlaps(bases, [1])) == pytest.approx(np.array(expected))
    # Both others: of layers 0 and 1, x with y and x, half with x and z.
    assert mean_overlaps(bases, [1, 2])[0][1] == pytest.approx((0 + 1 + 0.5 + 0) / 4)
    assert mean_overlaps(bases, [1, 2])[2] == (None, None, None)
    angles = all_angles([[x, x], [np.concatenate([half, z]), np.concatenate([y, z])]])
    assert angles[0, 1] == pytest.approx([90, np.nan], nan_ok=True)
    assert angles[1, 0] == pytest.approx([45, np.nan], nan_ok=True)
    assert angles[1, 1] == pytest.approx([0, 45])
