"""What a pass of training reads against the features it was made from."""

import pytest
import torch

from probes.features import Held, Part
from probes.scratch import Scratch


@pytest.fixture(params=[torch.bfloat16, torch.float32], autouse=True)
def dtype(request, monkeypatch):
    for place in ("features", "scratch"):
        monkeypatch.setattr(f"probes.{place}.product_dtype", lambda device: request.param)
    return request.param


@pytest.fixture
def whole():
    return Held(torch.randn(3, 2100, 5, generator=torch.Generator().manual_seed(0)))


def require_the_same(scratch, whole, dtype):
    for part in (slice(0, 7), slice(1000, 1100), slice(2090, 2100), slice(None)):
        exact = whole.values[:, part]
        assert torch.equal(scratch.block(part), exact)
        assert torch.equal(scratch.rounded(part), exact.to(dtype))
    assert torch.equal(Part(scratch, slice(50, 90)).rounded(slice(3, 9)), exact_part(whole, dtype))


def exact_part(whole, dtype):
    return whole.values[:, 53:59].to(dtype)


def test_what_was_written_is_the_features_rounded(whole, dtype, tmp_path):
    scratch = Scratch(whole, tmp_path)
    require_the_same(scratch, whole, dtype)
    assert scratch._written is not None
    assert not list(tmp_path.iterdir())  # the file has no name


def test_features_are_made_once(whole, tmp_path, monkeypatch):
    scratch = Scratch(whole, tmp_path)
    expected = scratch.rounded(slice(0, 5))
    monkeypatch.setattr(whole, "values", None)
    assert torch.equal(scratch.rounded(slice(0, 5)), expected)


@pytest.mark.parametrize("reason", ["no room on disk", "no memory", "not writable"])
def test_without_a_file_the_blocks_are_the_same(whole, dtype, tmp_path, monkeypatch, reason):
    if reason == "no room on disk":
        monkeypatch.setattr("probes.scratch._DISK", 0)
    elif reason == "no memory":
        monkeypatch.setattr("probes.scratch.free_memory", lambda: 1000)
    else:

        def refuse(**settings):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr("probes.scratch.tempfile.TemporaryFile", refuse)
    scratch = Scratch(whole, tmp_path)
    require_the_same(scratch, whole, dtype)
    assert scratch._written is None
