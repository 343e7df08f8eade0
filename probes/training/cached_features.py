"""Features that are computed once, when they are first read: in memory, or in a scratch file.

Reading and standardising blocks takes up to half as long as the products on them, and rotating them
longer. Features of as many layers as fit the budget are kept in memory. What does not fit, such as
one very large layer or all layers for a mix, is written to a file in the order in which training
has its examples, so that every batch is one stretch of it per layer.
"""

from __future__ import annotations

import math
import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from probes.common.files import writing
from probes.training.batches import READERS, evaluation_slices
from probes.training.features import Features, InAxes, principal_axes
from probes.training.standardisation import mapped_tensor


class Memory:
    """Memory of one device for features, which several tasks and measurements read.

    Where there is no room for more, those that were read longest ago are dropped. They are
    computed again if somebody reads them.

    Attributes:
        room: bytes that they may take together.
    """

    def __init__(self, room: int = 0) -> None:
        self.room = room
        self._values: WeakKeyDictionary[CachedOnce, Tensor] = WeakKeyDictionary()

    def values(self, features: CachedOnce) -> Tensor:
        """All blocks of some features. Shape (L, N, H)."""
        values = self._values.pop(features, None)
        if values is None:
            n_bytes = math.prod(features.shape) * torch.float32.itemsize
            while self._values and n_bytes + self.n_bytes > self.room:
                del self._values[next(iter(self._values))]
            values = features.computed()
        self._values[features] = values  # the last one in order was read last
        return values

    @property
    def n_bytes(self) -> int:
        """Bytes that are taken."""
        return sum(values.nbytes for values in self._values.values())


class CachedOnce(Features):
    """Other features, computed once and read many times.

    On a CPU only `kept_block` keeps what it reads. On other devices `block` does too, since files
    are slow beside them.

    Args:
        storage: memory, or the folder of a scratch file on a CPU, which has no name and
            disappears with the process.
    """

    def __init__(self, source: Features, storage: Memory | Path) -> None:
        self._source, self._storage, self.device = source, storage, source.device

    @property
    def shape(self) -> tuple[int, int, int]:
        """L layers, N examples, H features."""
        return self._source.shape

    def block(self, part: slice) -> Tensor:
        """Consecutive examples, float32. Shape (L, n, H)."""
        return self._source.block(part) if self.device.type == "cpu" else self.kept_block(part)

    def kept_block(self, part: slice) -> Tensor:
        """`block` for repeated reading."""
        return self.held[:, part]

    def kept_rows(self, part: slice, rows: Tensor) -> Tensor:
        """`kept_block` for some examples of `part`."""
        n_layers, n_examples, n_features = self.shape
        first, _, _ = part.indices(n_examples)
        # As rows of one table: along the second dimension torch copies them one by one.
        index = torch.arange(n_layers, device=self.device)[:, None] * n_examples + first + rows
        vectors = self.held.flatten(0, 1).index_select(0, index.flatten())
        return vectors.view(n_layers, -1, n_features)

    @cached_property
    def in_principal_axes(self) -> InAxes:
        """Features with each layer in the principal axes of its own features."""
        # Of the source: features in their own axes need not be kept for this.
        axes = principal_axes(self._source)
        return InAxes(self.rotated(axes), axes)

    def rotated(self, axes: Tensor) -> Features:
        """Features in other axes, kept too."""
        return CachedOnce(self._source.rotated(axes), self._storage)

    @property
    def held(self) -> Tensor:
        """All blocks. Shape (L, N, H)."""
        return (
            self._storage.values(self) if isinstance(self._storage, Memory) else self._file_values
        )

    def computed(self) -> Tensor:
        """All blocks, computed now. Shape (L, N, H)."""
        values = torch.empty(self.shape, device=self.device)

        def compute(part: slice) -> None:
            values[:, part] = self._source.kept_block(part)

        with ThreadPoolExecutor(READERS) as pool:
            list(pool.map(compute, evaluation_slices(self.shape[1])))
        return values

    @cached_property
    def _file_values(self) -> Tensor:
        """All blocks in a mapped file, so that memory does not grow."""
        assert isinstance(self._storage, Path)
        _, n_examples, _ = self.shape
        with writing(self._storage), tempfile.TemporaryFile(dir=self._storage) as file:

            def write(part: slice) -> None:
                values = self._source.kept_block(part).contiguous().numpy()
                for layer, rows in enumerate(values):
                    first_row = layer * n_examples + part.start
                    _write_at(file.fileno(), memoryview(rows).cast("B"), first_row * rows[0].nbytes)

            with ThreadPoolExecutor(READERS) as pool:
                list(pool.map(write, evaluation_slices(n_examples)))
            return mapped_tensor(np.memmap(file, dtype=np.float32, mode="c", shape=self.shape))


def _write_at(file: int, data: memoryview, offset: int) -> None:
    """Write all of `data`, however little the system accepts at once."""
    while data:
        n_written = os.pwrite(file, data, offset)
        data, offset = data[n_written:], offset + n_written
