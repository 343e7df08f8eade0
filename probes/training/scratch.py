"""Features that are written to a scratch file when a pass first reads them.

Reading and standardising blocks takes up to half as long as the products on them, and longer if
spans are averaged. The blocks of the first pass are written to a file next to the store. It has no
name, is mapped, and disappears with the process; main memory does not grow.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import IO

import numpy as np
import torch
from torch import Tensor

from probes.compute.memory import free_memory
from probes.training.batches import READERS, blocks
from probes.training.features import Features
from probes.training.streamed import mapped_tensor

_DISK, _MEMORY = 0.25, 0.5
"""The shares of the free disk, and of the free memory to cache it, that a file may take."""


class Scratch(Features):
    """Other features, whose blocks are written to a file.

    If there is no room for the file, blocks are computed each time, with the same numbers.

    Args:
        folder: the folder of the file.
    """

    def __init__(self, whole: Features, folder: Path) -> None:
        self._whole, self._folder, self.device = whole, folder, whole.device

    @property
    def shape(self) -> tuple[int, int, int]:
        """See `Features`."""
        return self._whole.shape

    def block(self, part: slice) -> Tensor:
        """See `Features`."""
        return self._whole.block(part)

    def kept_block(self, part: slice) -> Tensor:
        """See `Features`."""
        return self._whole.kept_block(part) if self.written is None else self.written[:, part]

    def kept_rows(self, part: slice, rows: Tensor) -> Tensor:
        """See `Features`."""
        if self.written is None:
            return self._whole.kept_rows(part, rows)
        n_layers, n_examples, n_features = self.written.shape
        first, _, _ = part.indices(n_examples)
        # As rows of one table: along the second dimension torch copies them one by one.
        index = torch.arange(n_layers)[:, None] * n_examples + first + rows
        found = self.written.flatten(0, 1).index_select(0, index.flatten())
        return found.view(n_layers, -1, n_features)

    def rotated(self, axes: Tensor) -> Features:
        """See `Features`; written to a file of its own."""
        return Scratch(self._whole.rotated(axes), self._folder)

    @cached_property
    def written(self) -> Tensor | None:
        """The blocks, mapped, shape (L, N, H); None if there is no room for them."""
        n_layers, n_examples, n_features = self.shape
        size = n_layers * n_examples * n_features * torch.float32.itemsize
        if size > _MEMORY * free_memory() or size > _DISK * shutil.disk_usage(self._folder).free:
            return None
        try:
            with tempfile.TemporaryFile(dir=self._folder) as file:
                return self._write(file)
        except OSError:  # A read-only cache, or a disk that has filled up meanwhile.
            return None

    def _write(self, file: IO[bytes]) -> Tensor:
        n_layers, n_examples, n_features = self.shape

        def write(part: slice) -> None:
            values = self._whole.kept_block(part).contiguous().numpy()
            for layer, rows in enumerate(values):
                first_row = layer * n_examples + part.start
                _write_at(file.fileno(), memoryview(rows).cast("B"), first_row * rows[0].nbytes)

        with ThreadPoolExecutor(READERS) as pool:
            list(pool.map(write, blocks(n_examples)))
        shape = (n_layers, n_examples, n_features)
        return mapped_tensor(np.memmap(file, dtype=np.float32, mode="c", shape=shape))


def _write_at(file: int, data: memoryview, offset: int) -> None:
    """Write all of `data`, however little the system accepts at once."""
    while data:
        written = os.pwrite(file, data, offset)
        data, offset = data[written:], offset + written
