"""Features kept in memory or in a scratch file against those that they were computed from."""

import pytest
import torch

from probes.common.errors import UserError
from probes.training.features import Held, Part
from probes.training.kept import Kept, Memory


@pytest.fixture
def whole():
    return Held(torch.randn(3, 2100, 5, generator=torch.Generator().manual_seed(0)))


def require_the_same(kept, whole):
    for part in (slice(0, 7), slice(1000, 1100), slice(2090, 2100), slice(None)):
        exact = whole.values[:, part]
        assert torch.equal(kept.block(part), exact)
        assert torch.equal(kept.kept_block(part), exact)
        rows = torch.tensor([1, 2, 5])
        assert torch.equal(kept.kept_rows(part, rows), exact[:, rows])
    inner = Part(kept, slice(50, 90)).kept_block(slice(3, 9))
    assert torch.equal(inner, whole.values[:, 53:59])


@pytest.fixture(params=["in memory", "in a file"])
def place(request, tmp_path):
    return Memory(1 << 20) if request.param == "in memory" else tmp_path


def test_features_are_the_same_wherever_they_are(whole, place, tmp_path):
    kept = Kept(whole, place)
    require_the_same(kept, whole)
    assert not list(tmp_path.iterdir())  # the file has no name


def test_features_are_computed_once(whole, place, monkeypatch):
    kept = Kept(whole, place)
    expected = kept.kept_block(slice(0, 5))
    monkeypatch.setattr(whole, "values", None)
    assert torch.equal(kept.kept_block(slice(0, 5)), expected)


def test_rotated_features_are_kept_too(whole, place, monkeypatch):
    kept = Kept(whole, place)
    rotated, axes = kept.in_principal_axes
    torch.testing.assert_close(axes, whole.in_principal_axes.axes)
    expected = whole.values[:, 40:50] @ axes
    torch.testing.assert_close(rotated.kept_block(slice(40, 50)), expected)
    monkeypatch.setattr(whole, "values", None)
    torch.testing.assert_close(rotated.kept_block(slice(40, 50)), expected)
    assert kept.in_principal_axes.features is rotated


def test_a_folder_that_cannot_be_written_to_is_named(whole, tmp_path):
    with pytest.raises(UserError, match=f"{tmp_path / 'gone'}: cannot be written"):
        Kept(whole, tmp_path / "gone").kept_block(slice(0, 5))


def test_what_was_read_longest_ago_makes_room(whole, monkeypatch):
    """Memory for two of three features of 3 × 2,100 × 5 numbers of four bytes."""
    size = 3 * 2100 * 5 * 4
    memory, computed = Memory(2 * size + 1), []
    first, second, third = (Kept(whole, memory) for _ in range(3))
    compute = Kept.computed
    monkeypatch.setattr(Kept, "computed", lambda x: computed.append(x) or compute(x))
    for features, expected in (
        (first, [first]),
        (second, [first, second]),
        (first, [first, second]),
        (third, [first, second, third]),
        (first, [first, second, third]),
        (second, [first, second, third, second]),
    ):
        require_the_same(features, whole)
        assert computed == expected
        assert memory.n_bytes == size * min(2, len(expected))
    del features, expected, first, second, third
    computed.clear()
    assert memory.n_bytes == 0
