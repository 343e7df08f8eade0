"""Writes shards, each while the next one is computed."""

from __future__ import annotations

import io
import os
import shutil
import zlib
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch

from probes.common.files import writing
from probes.common.locks import BusyError, locked
from probes.compute.memory import ToHost
from probes.extraction.reading.shards import Shard
from probes.extraction.reading.store import MANIFEST, shard_folders, shard_lock, write_manifest

_BEGUN, _DROPPED = ".part-", ".dropped-"

_FILES_AT_ONCE = 4
"""Files of a shard from a GPU that are written at a time; one thread writes about 700 MB/s."""


class ShardWriter:
    """Writes one shard at a time in a thread of its own; the block waits for the last one."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1)
        self._pending: tuple[Future[None], ExitStack] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            self.wait()
        except Exception:
            if error is None:  # otherwise the first error matters
                raise
        finally:
            self._thread.shutdown()

    def write(
        self,
        claim: ExitStack,
        folder: Path,
        shard: Shard,
        arrays: Mapping[str, torch.Tensor],
        counts: Mapping[str, int],
        long: Sequence[int],
    ) -> None:
        """Hand over a shard, after the previous one has been written.

        Args:
            claim: holds the lock of the shard; closed when the shard is written.
            folder, shard, arrays, counts, long: see `write_shard`.
        """
        with claim:
            self.wait()
            sent = {part: ToHost(tensor) for part, tensor in arrays.items()}
            threads = torch.get_num_threads()  # the writing thread may have another number
            from_gpu = any(tensor.is_cuda for tensor in arrays.values())
            at_once = _FILES_AT_ONCE if from_gpu else 1

            def write() -> None:
                arrived = {part: x.wait()[0].numpy() for part, x in sent.items()}
                write_shard(folder, shard, arrived, counts, long, threads, at_once)

            self._pending = self._thread.submit(write), claim.pop_all()

    def wait(self) -> None:
        """Wait until the shard that was handed over is written."""
        if self._pending is not None:
            done, claim = self._pending
            with claim:
                done.result()
            self._pending = None


def write_shard(
    folder: Path,
    shard: Shard,
    arrays: Mapping[str, np.ndarray[Any, Any]],
    counts: Mapping[str, int],
    long: Sequence[int],
    threads: int,
    files_at_once: int = 1,
) -> None:
    """Write a shard under another name, and rename it when it is safely on disk.

    Args:
        folder: folder of the store.
        arrays: by part.
        counts: counts of subwords and unknown words.
        long: places of the texts that took several windows.
        threads: number of threads in the forward passes.
        files_at_once: number of files that are written at a time.
    """
    begun = folder / f"{_BEGUN}{shard.number:05d}"
    # Left by a run that was killed: the lock keeps others from writing this shard.
    shutil.rmtree(begun, ignore_errors=True)
    final = folder / f"{shard.number:05d}-{next(iter(arrays))}"
    with writing(final):
        try:
            begun.mkdir()
            paths = [begun / f"{part}.npy" for part in arrays]
            with ThreadPoolExecutor(files_at_once) as pool:
                entries = pool.map(_write_array, paths, arrays.values())
                files = dict(zip(arrays, entries, strict=True))
            about = {
                "shard": shard.number,
                "texts": len(shard.texts),
                "rows": shard.n_rows,
                "threads": threads,
                "counts": dict(counts),
                "long_texts": list(long),
                "files": files,
            }
            write_manifest(begun / MANIFEST, about)
            begun.rename(final)
        finally:
            shutil.rmtree(begun, ignore_errors=True)


def _write_array(path: Path, array: np.ndarray[Any, Any]) -> dict[str, Any]:
    """Write an array as .npy; its entry in the manifest."""
    array = np.asarray(array, order="C")
    header = io.BytesIO()
    about = np.lib.format.header_data_from_array_1_0(array)
    np.lib.format.write_array_header_1_0(header, about)
    content: list[Any] = [header.getvalue(), array.reshape(-1).view(np.uint8)]
    crc32 = 0
    with path.open("wb") as file:
        for block in content:
            file.write(block)
            crc32 = zlib.crc32(block, crc32)
        file.flush()
        os.fsync(file.fileno())
    n_bytes = sum(map(len, content))
    return {"bytes": n_bytes, "crc32": crc32, "shape": list(array.shape)}


def drop_shards(folder: Path) -> None:
    """Delete all shards of a store; what another process is writing is left to that process."""
    for path in shard_folders(folder):
        dropped = folder / f"{_DROPPED}{path.name}"
        with suppress(FileNotFoundError):  # another process was faster
            path.rename(dropped)  # at once, so that nobody finds half a shard
    for path in folder.glob(f"{_DROPPED}*"):
        shutil.rmtree(path, ignore_errors=True)
    for path in folder.glob(f"{_BEGUN}[0-9]*"):
        lock = shard_lock(folder, int(path.name.removeprefix(_BEGUN)))
        with suppress(BusyError), locked(lock, wait=False):
            shutil.rmtree(path, ignore_errors=True)
