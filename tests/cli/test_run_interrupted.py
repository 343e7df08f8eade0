"""Encodings that stop half-way, and how they are continued."""

import json

import pytest
import torch
from tiny_runs import run

from probes.common.errors import UserError
from probes.extraction import layer_files
from probes.extraction.collectors import WordVectors
from probes.extraction.encoder import Encoder

pytestmark = pytest.mark.usefixtures("short_schedule")


@pytest.mark.parametrize("stretch", [1 << 16, 100], ids=["one stretch", "several"])
def test_a_stopped_encoding_continues_with_the_same_batches(
    stretch, tiny_bert, tmp_path, monkeypatch
):
    monkeypatch.setattr("probes.extraction.batching._STRETCH", stretch)
    monkeypatch.setattr("probes.extraction.batching._STRETCH_BATCHES", 1)
    settings = {"tasks": ("pos",), "probes": ("linear",)}
    whole = run(tiny_bert, tmp_path / "whole", batch_tokens=64, **settings)
    monkeypatch.setattr("probes.extraction.layer_files._SYNC_BYTES", 1)
    encoded = []
    write = layer_files.LayerFiles._write

    def third_fails(self, layers, texts):
        encoded.append(layers)
        if len(encoded) % 3 == 0:
            raise KeyboardInterrupt
        write(self, layers, texts)

    for stop in (1, 2):
        with monkeypatch.context() as patch:
            patch.setattr(layer_files.LayerFiles, "_write", third_fails)
            with pytest.raises(KeyboardInterrupt):
                run(tiny_bert, tmp_path, batch_tokens=64, **settings)
        (partial,) = (tmp_path / "cache" / "vectors").glob("*.partial")
        assert json.loads((partial / "journal.json").read_text())["batches"] == 2 * stop
    with (partial / "layer-01.npy").open("ab") as file:
        file.write(b"half a batch")
    resumed = run(tiny_bert, tmp_path, batch_tokens=4096, **settings)
    assert not partial.exists()
    for name in ("layer-01.npy", "starts.npy"):
        (one,) = (tmp_path / "whole" / "cache").rglob(name)
        (other,) = (tmp_path / "cache").rglob(name)
        assert one.read_bytes() == other.read_bytes()
    assert resumed.table().equals(whole.table())


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), RuntimeError("broken"), torch.OutOfMemoryError("out of memory")]
)
@pytest.mark.parametrize("threaded", [False, True])
def test_batches_before_an_error_in_the_model_are_kept(
    error, threaded, tiny_bert, tmp_path, capsys, monkeypatch
):
    """Far fewer bytes than are synced at a time."""
    settings = {"tasks": ("pos",), "probes": ("linear",), "batch_tokens": 64}
    run(tiny_bert, tmp_path / "whole", **settings)
    if threaded:  # as what a device gives is

        def append(self, layers, texts):
            self.wait()
            stored = [layer_files._Stored(vectors, self._storage) for vectors in layers]
            self._pending = self._thread.submit(self._write_and_sync, stored, texts)

        monkeypatch.setattr(layer_files.LayerFiles, "append", append)
    start, begun = WordVectors.start, []

    def noted(self, texts, n_words):
        begun.append(texts)
        start(self, texts, n_words)

    def fourth_stops(self, inputs, arguments):
        if len(begun) > 3:
            raise error
        return forward(self, inputs, arguments)

    forward = Encoder._forward
    with monkeypatch.context() as patch:
        patch.setattr(WordVectors, "start", noted)
        patch.setattr(Encoder, "_forward", fourth_stops)
        with pytest.raises((type(error), UserError)):
            run(tiny_bert, tmp_path, **settings)
    capsys.readouterr()
    run(tiny_bert, tmp_path, **settings)
    assert "resumes after 3 batches, with 64 tokens per batch as before" in capsys.readouterr().err
    for layer in range(3):
        one, other = (
            next((tmp_path / name).rglob(f"layer-0{layer}.npy")).read_bytes()
            for name in ("whole", "cache")
        )
        assert one == other


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(28, "No space left on device")])
def test_a_half_written_batch_is_written_again(error, tiny_bert, tmp_path, monkeypatch):
    """After a write that failed nothing is vouched for; after Ctrl-C in it, what was complete."""
    settings = {"tasks": ("pos",), "probes": ("linear",), "batch_tokens": 64}
    run(tiny_bert, tmp_path / "whole", **settings)
    write, written = layer_files.LayerFiles._write_layer, []

    def stops(self, layer, stored):
        written.append(layer)
        if len(written) == 3 * 3 + 2:
            raise error
        return write(self, layer, stored)

    with monkeypatch.context() as patch:
        patch.setattr(layer_files.LayerFiles, "_write_layer", stops)
        with pytest.raises((KeyboardInterrupt, UserError)):
            run(tiny_bert, tmp_path, **settings)
    found = [json.loads(path.read_text()) for path in tmp_path.rglob("journal.json")]
    kept = isinstance(error, KeyboardInterrupt)
    assert [journal["batches"] for journal in found] == ([3] if kept else [])
    run(tiny_bert, tmp_path, **settings)
    for layer in range(3):
        one, other = (
            next((tmp_path / name).rglob(f"layer-0{layer}.npy")).read_bytes()
            for name in ("whole", "cache")
        )
        assert one == other


@pytest.mark.parametrize("loud", [False, True], ids=["fp16", "beyond fp16"])
def test_an_encoding_begun_with_other_batches_starts_over(
    loud, tiny_bert, tmp_path, capsys, monkeypatch
):
    settings = {"tasks": ("pos",), "probes": ("linear",), "batch_tokens": 64}
    whole = run(tiny_bert, tmp_path / "whole", **settings)
    monkeypatch.setattr("probes.extraction.layer_files._SYNC_BYTES", 1)

    append, batches = layer_files.LayerFiles.append, []

    def stop_after_two(files, *batch):
        append(files, *batch)
        batches.append(batch)
        if len(batches) == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(layer_files.LayerFiles, "append", stop_after_two)
        with pytest.raises(KeyboardInterrupt):
            run(tiny_bert, tmp_path, **settings)
    (path,) = (tmp_path / "cache").rglob("journal.json")
    begun = json.loads(path.read_text())
    assert begun["batches"] > 0
    path.write_text(json.dumps({**begun, "order": begun["order"] ^ 1}))
    if loud:
        monkeypatch.setattr("probes.extraction.layer_files._FP16_MAX", 0.1)
    found = run(tiny_bert, tmp_path, **settings)
    said = capsys.readouterr().err
    assert "starts again: it was begun with other batches" in said
    assert ("stored in fp32" in said) == loud
    (manifest,) = (tmp_path / "cache").rglob("manifest.json")
    assert json.loads(manifest.read_text())["storage"] == ("float32" if loud else "float16")
    assert loud or found.table().equals(whole.table())


def test_a_damaged_unfinished_store_is_started_over(tiny_bert, tmp_path):
    settings = {"tasks": ("pos",), "probes": ("linear",)}
    run(tiny_bert, tmp_path, **settings)
    (manifest,) = (tmp_path / "cache").rglob("manifest.json")
    partial = manifest.parent.with_suffix(".partial")
    manifest.parent.rename(partial)
    (partial / "manifest.json").unlink()
    (partial / "journal.json").write_text('{"batch_tokens": 64, "batches": 1, "crc32": [1, 1, 1]}')
    run(tiny_bert, tmp_path, overwrite="always", **settings)
    assert not partial.exists()


def test_a_stop_while_the_first_tables_are_drawn_is_a_stop(
    tiny_bert, tmp_path, capsys, monkeypatch
):
    """What was interrupted while it was imported fails when the tables are written once more."""
    failures = [KeyboardInterrupt(), AttributeError("module 'x' has no attribute 'y'")]

    def draw(path, results):
        raise failures.pop(0)

    monkeypatch.setattr("probes.rendering.heatmap.draw_heat_map", draw)
    with pytest.raises(KeyboardInterrupt):
        run(tiny_bert, tmp_path, tasks=("pos",), quick=False, evidence="selectivity", twins=0)
    assert failures == []
    assert "the tables are not written (AttributeError: module 'x'" in capsys.readouterr().err
    assert len(list((tmp_path / "results").rglob("pos-*-scores-*.json"))) == 2
