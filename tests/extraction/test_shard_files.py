"""Shards are written whole or not at all: encodings that are killed, or whose disk is full."""

from __future__ import annotations

import errno
import json
import os
import signal
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from faults import Events
from killing import event_kinds
from tiny_readings import files_below, random_view, reading_of, shards_of_store, small_shards

from probes.common.errors import UserError
from probes.extraction import shard_files
from probes.extraction.encoder import Encoder
from probes.extraction.encoding import Reading, collect, vectors_of
from probes.extraction.shard_files import write_shard
from probes.extraction.shards import whole
from probes.extraction.store import checksum
from probes.extraction.views import Text, View

VIEW = random_view(30)


@pytest.fixture(autouse=True)
def _small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    small_shards(monkeypatch, 120)


# -- one shard ----------------------------------------------------------------------------

SHARD = whole(View("plain", (Text(("a", "b"), (0, 2)), Text(("c",), (0, 1)))))
COUNTS = {"subwords": 3}
ARRAYS = {
    "one": np.arange(12, dtype=np.float16).reshape(3, 4),
    "two": np.asfortranarray(np.arange(6.0).reshape(3, 2)),
    "three": np.zeros((0, 2), dtype=np.int64),
}


def test_files_of_a_shard_are_numpys_and_described(tmp_path: Path) -> None:
    write_shard(tmp_path, SHARD, ARRAYS, COUNTS, [1], threads=2)
    (folder,) = tmp_path.iterdir()
    assert folder.name == "00000-one"
    about = json.loads((folder / "manifest.json").read_bytes())
    assert sorted(files_below(folder)) == ["manifest.json", "one.npy", "three.npy", "two.npy"]
    for part, array in ARRAYS.items():
        path = folder / f"{part}.npy"
        found = np.load(path)
        assert found.dtype == array.dtype
        np.testing.assert_array_equal(found, array)
        assert about["files"][part] == {
            "bytes": path.stat().st_size,
            "crc32": checksum(path),
            "shape": list(array.shape),
        }
    assert {name: x for name, x in about.items() if name not in ("format", "crc32", "files")} == {
        "shard": 0,
        "texts": 2,
        "rows": 3,
        "counts": COUNTS,
        "long_texts": [1],
        "threads": 2,
    }


# -- encodings ----------------------------------------------------------------------------


@pytest.fixture
def reference(encoder: Encoder, tmp_path: Path) -> dict[str, bytes]:
    collect(reading_of(tmp_path / "reference", encoder, VIEW), encoder, 64)
    return files_below(tmp_path / "reference")


def encode_watched(reading: Reading, encoder: Encoder, kill_at: int | None, answer: Any) -> None:
    """Encode in a process of its own, and die at an event."""
    torch.set_num_threads(1)
    events = Events(kill_at)
    events.watch()
    collect(reading, encoder, 64)
    answer.send(events.seen)
    os._exit(0)


def encode_elsewhere(reading: Reading, encoder: Encoder, kill_at: int | None) -> Any:
    """The events of an encoding; None if it was killed."""
    fork = get_context("fork")
    receive, send = fork.Pipe(duplex=False)
    process = fork.Process(target=encode_watched, args=(reading, encoder, kill_at, send))
    process.start()
    send.close()
    try:
        return receive.recv()
    except EOFError:
        process.join(60)
        assert process.exitcode == -signal.SIGKILL
        return None


def whole_shards(reading: Reading) -> int:
    """How many shards are listed; each is read, and its checksums compared."""
    stored = reading.stored()
    if stored is None:
        return 0
    listed = [n for n in range(stored.n_shards) if not stored.missing(n, reading.collector.parts)]
    stored._files = [stored._files[n] for n in listed]
    shards = stored.shards(reading.view)
    for part in reading.collector.parts:
        for number, array in zip(listed, stored.arrays(part), strict=True):
            assert array.shape == (shards[number].n_rows, 16)
    return len(listed)


@pytest.mark.slow
def test_an_encoding_killed_at_any_write_leaves_whole_shards_and_is_continued(
    encoder: Encoder, reference: dict[str, bytes], tmp_path: Path
) -> None:
    events = encode_elsewhere(reading_of(tmp_path / "whole", encoder, VIEW), encoder, None)
    assert files_below(tmp_path / "whole") == reference
    n_shards, found = len(shards_of_store(reading_of(tmp_path / "whole", encoder, VIEW))), []
    assert n_shards >= 3
    numbers = [*event_kinds(events, tmp_path / "whole"), len(events)]
    assert len(numbers) > 15
    for number in numbers:
        cache = tmp_path / f"{number}"
        reading = reading_of(cache, encoder, VIEW)
        assert encode_elsewhere(reading, encoder, number) is None
        found.append(whole_shards(reading))
        collect(reading, encoder, 64)
        left = files_below(cache)
        # Locks and temporary files that nobody holds are swept by the next run, or in an hour.
        extra = {name for name in left if name.endswith(".lock") or ".part-" in name}
        assert {name: left[name] for name in left.keys() - extra} == reference, number
        assert len(extra) <= 2
    assert {0, n_shards} <= set(found)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(errno.ENOSPC, "No space left")])
def test_shards_before_a_failure_are_kept_and_the_others_made_later(
    error: BaseException,
    encoder: Encoder,
    reference: dict[str, bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The fifth array is in the second shard."""
    reading = reading_of(tmp_path / "stopped", encoder, VIEW)
    write, begun = shard_files._write, []

    def fifth_fails(path: Path, array: Any) -> Any:
        begun.append(path)
        if len(begun) == 5:
            path.write_bytes(b"half")
            raise error
        return write(path, array)

    with monkeypatch.context() as patch:
        patch.setattr(shard_files, "_write", fifth_fails)
        with pytest.raises((KeyboardInterrupt, UserError)) as caught:
            vectors_of(reading, encoder, 64)
    if isinstance(error, OSError):
        said = "00001-layer-00: cannot be written (No space left); free some space or name another"
        assert said in str(caught.value)
    assert whole_shards(reading) == 1
    assert sorted(path.name for path in reading.folder.iterdir()) == [
        "00000-layer-00",
        "manifest.json",
    ]
    assert not list(tmp_path.rglob("*.lock"))
    vectors_of(reading, encoder, 512)
    said = f"encoding continues: 1 of {len(shards_of_store(reading))} shards exist, made with 64 tokens per"
    assert said in capsys.readouterr().err
    assert files_below(tmp_path / "stopped") == reference


def test_a_shard_that_is_deleted_is_made_again(
    encoder: Encoder, reference: dict[str, bytes], tmp_path: Path
) -> None:
    """Also if a part that was asked for later has a folder of its own."""
    cache = tmp_path / "two"
    collect(reading_of(cache, encoder, VIEW, [0, 1]), encoder, 64)
    reading = reading_of(cache, encoder, VIEW)
    collect(reading, encoder, 64)
    before = files_below(cache)
    for name in ("00001-layer-00", "00002-layer-02"):
        for path in sorted((reading.folder / name).iterdir()):
            content = path.read_bytes()
            path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
            with pytest.raises(UserError, match=f"; delete {reading.folder / name} and run again"):
                read_all(reading)
            path.write_bytes(content)
        for path in (reading.folder / name).iterdir():
            path.unlink()
        (reading.folder / name).rmdir()
        assert [shard.number for shard in reading.missing()] == [int(name[:5])]
        vectors_of(reading, encoder, 512)
        assert files_below(cache) == before


def read_all(reading: Reading) -> None:
    stored = reading.stored()
    assert stored is not None
    for part in reading.collector.parts:
        stored.arrays(part)
