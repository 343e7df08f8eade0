"""Shards that travel from one machine's cache to another's."""

import numpy as np
import pytest
from tiny_runs import run

from probes.common.errors import DiskError
from probes.extraction.shipped_shards import packed, unpack


@pytest.fixture
def store(tiny_bert, tmp_path):
    """The folder of a store of word vectors."""
    run(tiny_bert, tmp_path, tasks="pos", probes="linear")
    (folder,) = [x for x in (tmp_path / "cache" / "vectors").iterdir() if x.is_dir()]
    return folder


def contents(folder):
    return {str(x.relative_to(folder)): x.read_bytes() for x in folder.rglob("*") if x.is_file()}


def test_all_shards_arrive_as_they_are(store, tmp_path):
    there, shards = tmp_path / "there", sorted({int(x.name[:5]) for x in store.glob("0*-*")})
    for number in reversed(shards):
        unpack(there, packed(store, number))
    assert contents(there / store.name) == contents(store)
    assert not packed(store, len(shards))

    # What is there stays.
    before = {x: x.stat().st_mtime_ns for x in there.rglob("*")}
    unpack(there, packed(store, 0))
    assert {x: x.stat().st_mtime_ns for x in there.rglob("*")} == before


def test_a_shard_that_was_half_written_is_written_anew(store, tmp_path):
    there = tmp_path / "there"
    files = packed(store, 0)
    begun = there / store.name / ".part-00000"
    begun.mkdir(parents=True)
    (begun / "layer-00.npy").write_bytes(b"half")
    unpack(there, files)
    assert not begun.exists()
    for name, content in files.items():
        assert np.array_equal(np.fromfile(there / name, np.uint8), content)


def test_where_nothing_can_be_written_it_is_said(store, tmp_path):
    files = packed(store, 0)
    (tmp_path / "file").touch()
    with pytest.raises(DiskError):
        unpack(tmp_path / "file", files)
