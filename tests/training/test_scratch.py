"""Features read from a scratch file against those that it was written from."""

import pytest
import torch

from probes.compute.precision import Rounding
from probes.training.features import Held, Part
from probes.training.scratch import Scratch

HALF, FULL = torch.bfloat16, torch.float32


@pytest.fixture(params=[(HALF, HALF), (HALF, FULL), (FULL, FULL)], autouse=True)
def types(request, monkeypatch):
    found = Rounding(*request.param)
    for module in ("features", "scratch"):
        monkeypatch.setattr(f"probes.training.{module}.rounding", lambda device: found)
    return found


def rounded(exact, types):
    return exact.to(types.read).to(types.multiplied)


@pytest.fixture
def whole():
    return Held(torch.randn(3, 2100, 5, generator=torch.Generator().manual_seed(0)))


def require_the_same(scratch, whole, types):
    for part in (slice(0, 7), slice(1000, 1100), slice(2090, 2100), slice(None)):
        exact = whole.values[:, part]
        assert torch.equal(scratch.block(part), exact)
        found = scratch.rounded(part)
        assert found.dtype == types.multiplied
        assert torch.equal(found, rounded(exact, types))
        rows = torch.tensor([1, 2, 5])
        some = scratch.rounded_rows(part, rows)
        assert some.dtype == types.multiplied
        assert torch.equal(some, rounded(exact[:, rows], types))
    layers = scratch.of_layers([2, 0])
    assert torch.equal(layers.block(slice(9)), whole.values[[2, 0], :9])
    found = layers.rounded(slice(1000, 1100))
    assert found.dtype == types.multiplied
    assert torch.equal(found, rounded(whole.values[[2, 0], 1000:1100], types))
    some = layers.rounded_rows(slice(1000, 1100), rows)
    assert torch.equal(some, rounded(whole.values[[2, 0], 1000:1100][:, rows], types))
    again = layers.of_layers([1]).rounded(slice(9))
    assert torch.equal(again, rounded(whole.values[[0], :9], types))
    inner = Part(scratch, slice(50, 90)).rounded(slice(3, 9))
    assert torch.equal(inner, rounded(whole.values[:, 53:59], types))


def test_the_file_has_the_rounded_features(whole, types, tmp_path):
    scratch = Scratch(whole, tmp_path)
    require_the_same(scratch, whole, types)
    assert scratch.written is not None
    assert not list(tmp_path.iterdir())  # the file has no name


def test_features_are_computed_once(whole, tmp_path, monkeypatch):
    scratch = Scratch(whole, tmp_path)
    expected = scratch.rounded(slice(0, 5))
    layers = scratch.of_layers([1])
    monkeypatch.setattr(whole, "values", None)
    assert torch.equal(scratch.rounded(slice(0, 5)), expected)
    assert torch.equal(layers.rounded(slice(0, 5)), expected[[1]])


@pytest.mark.parametrize("reason", ["no room on disk", "no memory", "not writable"])
def test_blocks_are_the_same_without_a_file(whole, types, tmp_path, monkeypatch, reason):
    if reason == "no room on disk":
        monkeypatch.setattr("probes.training.scratch._DISK", 0)
    elif reason == "no memory":
        monkeypatch.setattr("probes.training.scratch.free_memory", lambda: 1000)
    else:

        def refuse(**settings):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr("probes.training.scratch.tempfile.TemporaryFile", refuse)
    scratch = Scratch(whole, tmp_path)
    require_the_same(scratch, whole, types)
    assert scratch.written is None


def test_writing_to_a_block_does_not_end_the_process(whole, types, tmp_path):
    scratch = Scratch(whole, tmp_path)
    part = slice(0, 7)
    before = scratch.rounded(part).clone()
    scratch.rounded(part).add_(1)
    assert torch.equal(Scratch(whole, tmp_path).rounded(part), before)
