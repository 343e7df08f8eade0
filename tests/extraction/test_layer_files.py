"""Files of layers that are interrupted and resumed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from probes.extraction.layer_files import JOURNAL, Journal, LayerFiles, layer_files, read_journal

WIDTH, ROWS = 8, 4


def encode(folder: Path, journal: Journal, batches: Iterable[int]) -> None:
    """Batches of two layers that hold their number and, in the second layer, ten more."""
    with layer_files(folder, 2, (4 * ROWS, WIDTH), journal) as writer:
        for batch in batches:
            layers = [torch.full((ROWS, WIDTH), float(batch + 10 * i)) for i in (0, 1)]
            writer.append(layers, [batch])
        writer.finish()


def stopped_after(batch: int) -> Iterator[int]:
    yield batch
    raise KeyboardInterrupt


def test_files_are_complete_after_two_interruptions(tmp_path, monkeypatch):
    """At the second interruption everything written is still in Python's buffer."""
    folder, write = tmp_path / "store", LayerFiles._write_layer

    def stops(self, layer, stored):
        if self._complete.batches == 1 and layer == 1:
            raise KeyboardInterrupt
        return write(self, layer, stored)

    with monkeypatch.context() as patch:
        patch.setattr(LayerFiles, "_write_layer", stops)
        with pytest.raises(KeyboardInterrupt):
            encode(folder, Journal(batch_tokens=64), (0, 1))
    for batch in (1, 2):
        journal = read_journal(folder, 2)
        assert journal is not None
        assert journal.batches == batch
        with pytest.raises(KeyboardInterrupt):
            encode(folder, journal, stopped_after(batch))
        assert (folder / "layer-01.npy").stat().st_size > journal.bytes
    journal = read_journal(folder, 2)
    assert journal is not None
    encode(folder, journal, (3,))
    for layer in (0, 1):
        values = np.load(folder / f"layer-0{layer}.npy")
        assert values[:, 0].tolist() == [b + 10 * layer for b in range(4) for _ in range(ROWS)]


def test_a_file_shorter_than_its_journal_says_is_not_resumed(tmp_path):
    folder = tmp_path / "store"
    encode(folder, Journal(batch_tokens=64), (0,))
    journal = read_journal(folder, 2)
    assert journal is not None
    longer = journal.model_copy(update={"bytes": journal.bytes + 1})
    (folder / JOURNAL).write_text(longer.model_dump_json())
    assert read_journal(folder, 2) is None
