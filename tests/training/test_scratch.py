"""Features read from a scratch file against those that it was written from."""

import pytest
import torch

from probes.training.features import Held, Part
from probes.training.scratch import Scratch


@pytest.fixture
def whole():
    return Held(torch.randn(3, 2100, 5, generator=torch.Generator().manual_seed(0)))


def require_the_same(scratch, whole):
    for part in (slice(0, 7), slice(1000, 1100), slice(2090, 2100), slice(None)):
        exact = whole.values[:, part]
        assert torch.equal(scratch.block(part), exact)
        assert torch.equal(scratch.kept_block(part), exact)
        rows = torch.tensor([1, 2, 5])
        assert torch.equal(scratch.kept_rows(part, rows), exact[:, rows])
    inner = Part(scratch, slice(50, 90)).kept_block(slice(3, 9))
    assert torch.equal(inner, whole.values[:, 53:59])


def test_the_file_has_the_features(whole, tmp_path):
    scratch = Scratch(whole, tmp_path)
    require_the_same(scratch, whole)
    assert scratch.written is not None
    assert not list(tmp_path.iterdir())  # the file has no name


def test_features_are_computed_once(whole, tmp_path, monkeypatch):
    scratch = Scratch(whole, tmp_path)
    expected = scratch.kept_block(slice(0, 5))
    monkeypatch.setattr(whole, "values", None)
    assert torch.equal(scratch.kept_block(slice(0, 5)), expected)


def test_rotated_features_have_a_file_of_their_own(whole, tmp_path, monkeypatch):
    scratch = Scratch(whole, tmp_path)
    rotated, axes = scratch.in_principal_axes
    torch.testing.assert_close(axes, whole.in_principal_axes.axes)
    expected = whole.values[:, 40:50] @ axes
    torch.testing.assert_close(rotated.kept_block(slice(40, 50)), expected)
    monkeypatch.setattr(whole, "values", None)
    torch.testing.assert_close(rotated.kept_block(slice(40, 50)), expected)
    assert scratch.in_principal_axes.features is rotated


@pytest.mark.parametrize("reason", ["no room on disk", "no memory", "not writable"])
def test_blocks_are_the_same_without_a_file(whole, tmp_path, monkeypatch, reason):
    if reason == "no room on disk":
        monkeypatch.setattr("probes.training.scratch._DISK", 0)
    elif reason == "no memory":
        monkeypatch.setattr("probes.training.scratch.free_memory", lambda: 1000)
    else:

        def refuse(**settings):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr("probes.training.scratch.tempfile.TemporaryFile", refuse)
    scratch = Scratch(whole, tmp_path)
    require_the_same(scratch, whole)
    assert scratch.written is None
