"""The layer files of an unfinished store, written while the next batch is computed.

``journal.json`` (`JOURNAL`) in the same folder records what is safely on disk.
"""

from __future__ import annotations

import io
import os
import shutil
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from probes.common.errors import UserError
from probes.common.files import published
from probes.compute.transfers import ToHost
from probes.extraction.store import checksum, layer_name
from probes.records.base import Frozen

JOURNAL = "journal.json"

_FP16_MAX = float(np.finfo(np.float16).max)

_SYNC_BYTES = 64 << 20
"""Bytes written between two updates of the journal."""


class Journal(Frozen):
    """The progress of an encoding."""

    batch_tokens: int
    """Tokens per batch; the same when the encoding is resumed."""
    storage: Literal["float16", "float32"] = "float16"
    batches: int = 0
    """Batches that are on disk."""
    order: int = 0
    """CRC-32 of the indices of their texts (`order_checksum`), which checks the order."""
    bytes: int = 0
    """Length of each layer's file up to and including them."""
    crc32: tuple[int, ...] = ()
    """CRC-32 of these bytes of each layer's file."""


def order_checksum(texts: Sequence[int], before: int = 0) -> int:
    """CRC-32 of the indices of a batch's texts, continued from that of earlier batches."""
    return zlib.crc32(np.asarray(texts, dtype="<i8").tobytes(), before)


class NotFiniteError(Exception):
    """A vector is not finite, so that the whole encoding is useless.

    Attributes:
        layer, batch, row: where; rows count from the batch's first word.
        word: the word, as text.
    """

    def __init__(self, layer: int, batch: int, row: int) -> None:
        self.layer, self.batch, self.row = layer, batch, row
        self.word = f"row {row} of batch {batch}"

    def __str__(self) -> str:
        return (
            f"layer {self.layer} gives a vector that is not finite (NaN or infinite) for "
            f"{self.word}; the model is broken, or --dtype is too narrow for it (try --dtype "
            "float32)."
        )


class OutOfRangeError(Exception):
    """A value is beyond the range of fp16."""


class _Stored:
    """One layer's vectors of a batch in the storage type, and their largest magnitude."""

    def __init__(self, vectors: torch.Tensor, storage: torch.dtype) -> None:
        low, high = torch.aminmax(vectors)
        self._sent = ToHost(torch.maximum(-low, high), vectors.to(storage))

    def content(self, layer: int, batch: int) -> Any:
        """The bytes, in host memory.

        Raises:
            NotFiniteError: a value is not finite.
            OutOfRangeError: one is too large for the storage type.
        """
        peak, vectors = self._sent.wait()
        largest = float(peak)
        if not np.isfinite(largest):
            odd = vectors.isnan() if np.isnan(largest) else vectors.isinf()
            raise NotFiniteError(layer, batch, int(odd.any(dim=1).nonzero()[0]))
        if vectors.dtype == torch.float16 and largest > _FP16_MAX:
            raise OutOfRangeError(
                f"layer {layer} reaches {largest:.0f}, beyond fp16's range: stored in fp32"
            )
        return vectors.numpy().reshape(-1).view(np.uint8)


class LayerFiles:
    """One .npy file per layer.

    Vectors from a GPU are written in a thread while it computes the next batch. Forward passes
    on a CPU need every core: there vectors are written between two passes, by as many threads as a
    pass has, and the extra thread only waits for the disk.
    """

    def __init__(self, folder: Path, files: Sequence[Any], journal: Journal) -> None:
        self._storage: torch.dtype = getattr(torch, journal.storage)
        self._folder, self._files, self._complete = folder, files, journal
        self._crc32, self._unsynced = list(journal.crc32), 0
        self._thread = ThreadPoolExecutor(1)
        self._writers = ThreadPoolExecutor(torch.get_num_threads())
        self._pending: Future[None] | None = None

    def append(self, layers: Sequence[torch.Tensor], texts: Sequence[int]) -> None:
        """Hand over a batch, after the previous one has been written.

        Args:
            layers: vectors of each layer (words, hidden size).
            texts: the indices of the batch's texts.

        Raises:
            NotFiniteError: a value of this batch or the previous one is not finite.
            OutOfRangeError: a value is too large for the storage type.
        """
        self.wait()
        # Not before waiting: two batches would be in memory.
        stored = [_Stored(vectors, self._storage) for vectors in layers]
        if all(vectors.device.type == "cpu" for vectors in layers):
            self._write(stored, texts)
            self._pending = self._thread.submit(self._sync_if_due)
        else:
            self._pending = self._thread.submit(self._write_and_sync, stored, texts)

    def wait(self) -> None:
        """Wait until the batch that was handed over is written."""
        if self._pending is not None:
            self._pending.result()

    def finish(self) -> list[int]:
        """Wait until everything is on disk, and return the checksum of each file."""
        self.wait()
        self._sync()
        return self._crc32

    def keep(self) -> None:
        """Flush complete batches to disk, after an error that was not one of writing.

        What was written of an incomplete batch is cut off when the encoding is resumed.
        """
        self.close()
        sound = self._pending is None or self._pending.exception() is None
        if sound and self._unsynced:
            self._sync()

    def close(self) -> None:
        """Wait for the threads to finish, and end them."""
        self._thread.shutdown()
        self._writers.shutdown()

    def _write_and_sync(self, layers: Sequence[_Stored], texts: Sequence[int]) -> None:
        self._write(layers, texts)
        self._sync_if_due()

    def _write(self, layers: Sequence[_Stored], texts: Sequence[int]) -> None:
        written = sum(self._writers.map(self._write_layer, range(len(layers)), layers))
        done = {
            "batches": self._complete.batches + 1,
            "order": order_checksum(texts, self._complete.order),
            "bytes": self._files[0].tell(),
            "crc32": tuple(self._crc32),
        }
        self._complete = self._complete.model_copy(update=done)
        self._unsynced += written

    def _write_layer(self, layer: int, stored: _Stored) -> int:
        """Write a batch of one layer, and return the number of bytes."""
        content = stored.content(layer, self._complete.batches)
        self._crc32[layer] = zlib.crc32(content, self._crc32[layer])
        self._files[layer].write(content)
        return len(content)

    def _sync_if_due(self) -> None:
        if self._unsynced >= _SYNC_BYTES:
            self._sync()

    def _sync(self) -> None:
        for file in self._files:
            file.flush()
            os.fsync(file.fileno())
        with published(self._folder / JOURNAL) as temporary:
            temporary.write_text(self._complete.model_dump_json())
        self._unsynced = 0


@contextmanager
def layer_files(
    folder: Path, n_layers: int, shape: tuple[int, int], journal: Journal
) -> Iterator[LayerFiles]:
    """Open the files of all layers for appending after the bytes that the journal records.

    Args:
        shape: of each layer's array when it is complete.
    """
    folder.mkdir(exist_ok=True)
    if not journal.batches:
        descr = np.dtype(journal.storage).str
        header = io.BytesIO()
        np.lib.format.write_array_header_1_0(
            header, {"descr": descr, "fortran_order": False, "shape": shape}
        )
        content = header.getvalue()
        for layer in range(n_layers):
            (folder / layer_name(layer)).write_bytes(content)
        journal = journal.model_copy(
            update={"bytes": len(content), "crc32": (zlib.crc32(content),) * n_layers}
        )
    files = [(folder / layer_name(layer)).open("ab") for layer in range(n_layers)]
    try:
        for file in files:
            file.truncate(journal.bytes)
            file.seek(0, io.SEEK_END)  # truncating does not move the position
        writer = LayerFiles(folder, files, journal)
        try:
            yield writer
        except (OSError, NotFiniteError, OutOfRangeError):
            raise  # a write failed, or the vectors are useless
        except BaseException:
            # If the disk is full as well, the first error matters.
            with suppress(OSError, UserError):
                writer.keep()
            raise
        finally:
            writer.close()
    finally:
        for file in files:
            file.close()


def read_journal(partial: Path, n_layers: int) -> Journal | None:
    """The journal of an interrupted encoding; None if there is none that can be resumed."""
    try:
        journal = Journal.model_validate_json((partial / JOURNAL).read_bytes())
        if len(journal.crc32) != n_layers:
            raise ValueError("another number of layers")
        for layer, expected in enumerate(journal.crc32):
            path = partial / layer_name(layer)
            whole = path.stat().st_size >= journal.bytes
            if not whole or checksum(path, journal.bytes) != expected:
                raise ValueError("the file differs from what was written")
    except (OSError, ValueError):
        shutil.rmtree(partial, ignore_errors=True)
        return None
    return journal
