"""Features that are written to a file when a pass first reads them.

Gathering and standardising blocks takes up to half as long as the products on them, and longer
where spans are averaged. What passes read is written, rounded as products round it, to a file
without a name beside the store, which is mapped and goes with the process. Main memory does not
grow by it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import IO

import numpy as np
import torch
from torch import Tensor

from probes.compute.memory import free_memory
from probes.compute.precision import rounding
from probes.compute.workers import each
from probes.training.batches import blocks
from probes.training.features import Features, mapped_tensor

_DISK, _MEMORY = 0.25, 0.5
"""Of the free disk, and of the free memory that is to hold it, the share that a file may take."""


class Scratch(Features):
    """Other features, whose rounded blocks are written to a file.

    Where the file has no room, blocks are made anew each time; no number depends on it.

    Args:
        folder: where the file goes.
    """

    def __init__(self, whole: Features, folder: Path) -> None:
        self._whole, self._folder = whole, folder
        self.device = whole.device

    @property
    def shape(self) -> tuple[int, int, int]:
        """See `Features`."""
        return self._whole.shape

    def block(self, part: slice) -> Tensor:
        """See `Features`."""
        return self._whole.block(part)

    def rounded(self, part: slice) -> Tensor:
        """See `Features`."""
        if (values := self.written) is None:
            return self._whole.rounded(part)
        if values.dtype == torch.float32:
            return values[:, part]  # Its products take rows of a map as fast as copies.
        dtype, order = rounding(self.device).multiplied, torch.contiguous_format
        return values[:, part].to(dtype, copy=True, memory_format=order)

    def rounded_rows(self, part: slice, rows: Tensor) -> Tensor:
        """See `Features`."""
        if (values := self.written) is None:
            return self._whole.rounded_rows(part, rows)
        n_layers, n_examples, n_features = values.shape
        first, _, _ = part.indices(n_examples)
        # As rows of one table: along the second dimension torch takes them one by one.
        layers = torch.arange(n_layers)[:, None] * n_examples
        found = values.flatten(0, 1).index_select(0, (layers + first + rows).flatten())
        return found.view(n_layers, -1, n_features).to(rounding(self.device).multiplied)

    def of_layers(self, layers: Sequence[int]) -> Features:
        """See `Features`."""
        return _OfLayers(self, self._whole.of_layers(layers), layers)

    @cached_property
    def written(self) -> Tensor | None:
        """The rounded blocks, mapped. Shape (L, N, H)."""
        dtype = rounding(self.device).read
        n_layers, n_examples, n_features = self.shape
        size = n_layers * n_examples * n_features * dtype.itemsize
        if size > _MEMORY * free_memory() or size > _DISK * shutil.disk_usage(self._folder).free:
            return None
        try:
            with tempfile.TemporaryFile(dir=self._folder) as file:
                return self._write(file, dtype)
        except OSError:  # A cache that is only read, or a disk that filled up meanwhile.
            return None

    def _write(self, file: IO[bytes], dtype: torch.dtype) -> Tensor:
        n_layers, n_examples, n_features = self.shape
        # numpy has no bf16: bytes are moved as integers.
        number = torch.int16 if dtype.itemsize == 2 else torch.int32

        def write(part: slice) -> None:
            values = self._whole.rounded(part).to(dtype).contiguous().view(number).numpy()
            for layer, rows in enumerate(values):
                first_row = layer * n_examples + part.start
                _write_at(file.fileno(), memoryview(rows).cast("B"), first_row * rows[0].nbytes)

        each(write, blocks(n_examples))
        shape = (n_layers, n_examples, n_features)
        mapped = np.memmap(file, dtype=f"i{dtype.itemsize}", mode="c", shape=shape)
        return mapped_tensor(mapped).view(dtype)


class _OfLayers(Features):
    """Some layers of a scratch file.

    Args:
        made: the same layers of what the file is written from.
        layers: which ones, by their place.
    """

    def __init__(self, scratch: Scratch, made: Features, layers: Sequence[int]) -> None:
        self._scratch, self._made, self._layers = scratch, made, torch.tensor(layers)
        self.device = scratch.device

    @property
    def shape(self) -> tuple[int, int, int]:
        """See `Features`."""
        return self._made.shape

    def block(self, part: slice) -> Tensor:
        """See `Features`."""
        return self._made.block(part)

    def rounded(self, part: slice) -> Tensor:
        """See `Features`."""
        if (values := self._scratch.written) is None:
            return self._made.rounded(part)
        return values[:, part].index_select(0, self._layers).to(rounding(self.device).multiplied)


def _write_at(file: int, data: memoryview, offset: int) -> None:
    """Write all of `data`, however little the system takes at once."""
    while data:
        written = os.pwrite(file, data, offset)
        data, offset = data[written:], offset + written
