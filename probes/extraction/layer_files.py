"""The files of an unfinished store, brought to disk while the next batch is computed.

``journal.json`` (`JOURNAL`) beside them says what is safely on disk.
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
"""How much is written between two entries in the journal."""


class Journal(Frozen):
    """How far an encoding has come."""

    batch_tokens: int
    """Tokens of a batch; kept when the encoding goes on."""
    storage: Literal["float16", "float32"] = "float16"
    batches: int = 0
    """Batches that are on disk."""
    order: int = 0
    """CRC-32 of which texts they hold (`order_checksum`), without which they have no order."""
    bytes: int = 0
    """Length of each layer's file with them."""
    crc32: tuple[int, ...] = ()
    """Of each layer's file up to there."""


def order_checksum(texts: Sequence[int], before: int = 0) -> int:
    """CRC-32 of which texts a batch holds, going on from that of the batches before."""
    return zlib.crc32(np.asarray(texts, dtype="<i8").tobytes(), before)


class NotFiniteError(Exception):
    """A vector that is not finite: what was encoded so far is of no use either.

    Attributes:
        layer, batch, row: where; the row counts from the batch's first word.
        word: which word it is, as text.
    """

    def __init__(self, layer: int, batch: int, row: int) -> None:
        self.layer, self.batch, self.row = layer, batch, row
        self.word = f"row {row} of batch {batch}"

    def __str__(self) -> str:
        return (
            f"layer {self.layer} gives a vector that is not finite (NaN or infinite) for "
            f"{self.word}, so that nothing can be learnt from it; the model is broken, or --dtype "
            "is too narrow for it (try --dtype float32)."
        )


class OutOfRangeError(Exception):
    """A value beyond what fp16 can hold."""


class _Stored:
    """One layer's vectors of a batch as they will lie on disk, and their largest magnitude."""

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

    What a device gives is written in a thread while it computes the next batch. A CPU's passes
    need every core: there it is written between two of them, by as many threads as the passes
    have, and the one thread waits for the disk.
    """

    def __init__(self, folder: Path, files: Sequence[Any], journal: Journal) -> None:
        self._storage: torch.dtype = getattr(torch, journal.storage)
        self._folder, self._files, self._complete = folder, files, journal
        self._crc32, self._unsynced = list(journal.crc32), 0
        self._thread = ThreadPoolExecutor(1)
        self._writers = ThreadPoolExecutor(torch.get_num_threads())
        self._pending: Future[None] | None = None

    def append(self, layers: Sequence[torch.Tensor], texts: Sequence[int]) -> None:
        """Hand a batch over, once the one before it is written.

        Args:
            texts: which ones it holds.

        Raises:
            NotFiniteError: a value is not finite, of this batch or the one before.
            OutOfRangeError: one is too large for the storage type.
        """
        self.wait()
        # Not sooner: two batches would be in memory.
        stored = [_Stored(vectors, self._storage) for vectors in layers]
        if all(vectors.device.type == "cpu" for vectors in layers):
            self._write(stored, texts)
            self._pending = self._thread.submit(self._sync_if_due)
        else:
            self._pending = self._thread.submit(self._write_and_sync, stored, texts)

    def wait(self) -> None:
        """Wait until what was handed over is written."""
        if self._pending is not None:
            self._pending.result()

    def finish(self) -> list[int]:
        """Wait until everything is on disk; the checksum of each file."""
        self.wait()
        self._sync()
        return self._crc32

    def keep(self) -> None:
        """Bring to disk what is complete, after an error that was not one of writing.

        What was written of a further batch is cut off when the encoding goes on.
        """
        self.close()
        sound = self._pending is None or self._pending.exception() is None
        if sound and self._unsynced:
            self._sync()

    def close(self) -> None:
        """End the threads, when they have done what was handed over."""
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
        """Write a batch of one layer; how many bytes that are."""
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
    """Open the files of all layers behind what the journal vouches for.

    Args:
        shape: of each layer's array, when it is complete.
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
            file.seek(0, io.SEEK_END)  # where it is taken to be is still the old end
        writer = LayerFiles(folder, files, journal)
        try:
            yield writer
        except (OSError, NotFiniteError, OutOfRangeError):
            raise  # a write failed, or what is there is of no use
        except BaseException:
            # If the disk is full besides, the first error is the one to tell.
            with suppress(OSError, UserError):
                writer.keep()
            raise
        finally:
            writer.close()
    finally:
        for file in files:
            file.close()


def read_journal(partial: Path, n_layers: int) -> Journal | None:
    """The journal of an encoding that was stopped; None if there is none to go on with."""
    try:
        journal = Journal.model_validate_json((partial / JOURNAL).read_bytes())
        if len(journal.crc32) != n_layers:
            raise ValueError("another number of layers")
        for layer, expected in enumerate(journal.crc32):
            path = partial / layer_name(layer)
            whole = path.stat().st_size >= journal.bytes
            if not whole or checksum(path, journal.bytes) != expected:
                raise ValueError("what is there is not what was written")
    except (OSError, ValueError):
        shutil.rmtree(partial, ignore_errors=True)
        return None
    return journal
