"""Disks that fill, files that rot, memory that ends: named, and nothing wrong is computed."""

import json
import os
import random
import subprocess
from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch
from killing import logged, written
from tiny_readings import small_shards
from tiny_runs import run

from probes.common.errors import UserError
from probes.extraction.reading.encoder import Encoder
from probes.extraction.reading.store import Store, StoreKey
from probes.frames.joined_results import find_results
from probes.measurements import context as task_context
from probes.records.record_files import read_arrays

FLIPS = 400


pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("short_schedule")]


run_pos = partial(run, tasks="pos", probes="linear", limit=30)


@pytest.fixture
def done(tiny_bert, tmp_path):
    """A folder with a run's cache and results."""
    run_pos(tiny_bert, tmp_path)
    return tmp_path


def damaged_copies(content, n, seed=0):
    """The content with a bit flipped, at each of the first bytes and at random ones, or cut."""
    numbers = random.Random(seed)
    places = [*range(min(64, len(content))), *(numbers.randrange(len(content)) for _ in range(n))]
    for place in places:
        changed = bytearray(content)
        changed[place] ^= 1 << numbers.randrange(8)
        yield bytes(changed)
    for length in {0, 1, len(content) // 2, len(content) - 1}:
        yield content[:length]


def test_any_flipped_bit_of_a_store_is_found(tiny_bert, tmp_path, monkeypatch):
    small_shards(monkeypatch, 800, 14)
    run_pos(tiny_bert, tmp_path)
    (folder,) = (path for path in (tmp_path / "cache" / "vectors").iterdir() if path.is_dir())
    key = StoreKey(**json.loads((folder / "manifest.json").read_bytes())["key"])
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    assert len(paths) == 1 + 2 * (1 + 3)

    def read():
        store = Store(tmp_path / "cache", key)
        for layer in range(3):
            store.arrays(f"layer-0{layer}")

    said = set()
    for path in paths:
        sound = path.read_bytes()
        for content in damaged_copies(sound, FLIPS // len(paths)):
            path.write_bytes(content)
            with pytest.raises(UserError) as caught:
                read()
            assert str(caught.value).startswith(f"{path}: ")
            assert str(caught.value).endswith(f"; delete {path.parent} and run again.")
            said.add(str(caught.value).removeprefix(f"{path}: ").partition(";")[0])
        path.write_bytes(sound)
    assert {"its content changed on disk", "missing or of the wrong size"} <= said
    read()


def test_a_read_only_cache_can_be_used(done, tiny_bert):
    before = written(done / "results")
    vectors = done / "cache" / "vectors"
    if os.geteuid() == 0:
        mount = ["mount", "--bind", str(vectors), str(vectors)]
        if subprocess.run(mount, capture_output=True, check=False).returncode:
            pytest.skip("root can write everywhere, and no folder can be mounted here")
        subprocess.run(["mount", "-o", "remount,ro,bind", str(vectors)], check=True)
    else:
        vectors.chmod(0o500)
    try:
        run_pos(tiny_bert, done, overwrite="always")
        assert written(done / "results") == before
        with pytest.raises(UserError, match=r"vectors/\.writable: cannot be written"):
            run_pos(tiny_bert, done, limit=31)
    finally:
        if os.geteuid() == 0:
            subprocess.run(["umount", str(vectors)], check=True)
        else:
            vectors.chmod(0o700)


@pytest.fixture
def small_disk(tmp_path):
    """Mounts a file system of so many kilobytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = []

    def mount(kilobytes):
        size = f"size={kilobytes}k"
        line = ["mount", "-t", "tmpfs", "-o", size, "tmpfs", str(folder)]
        if os.geteuid() != 0 or subprocess.run(line, capture_output=True, check=False).returncode:
            pytest.skip("no file system can be mounted here, so that no disk can be filled")
        mounted.append(folder)
        return folder

    yield mount
    for place in mounted:
        subprocess.run(["umount", str(place)], check=True)


@pytest.mark.parametrize(
    "kilobytes", [4, *(pytest.param(x, marks=pytest.mark.slow) for x in (80, 160)), 240]
)
def test_a_full_disk_is_reported_and_the_run_continues_when_there_is_room(
    small_disk, tiny_bert, tmp_path, kilobytes
):
    disk = small_disk(kilobytes)
    settings = {"tasks": ("pos", "depth"), "probes": ("linear", "mlp")}
    with pytest.raises(UserError, match=r"free some space|are free; choose another"):
        run_pos(tiny_bert, disk, **settings)
    for path, result in find_results(disk).items():
        assert read_arrays(path)["predicted"].shape[-1] == result.examples.n["test"]
    subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
    run_pos(tiny_bert, disk, **settings)
    run_pos(tiny_bert, tmp_path / "ample", **settings)
    assert written(disk) == written(tmp_path / "ample")


def test_too_little_memory_for_a_batch_makes_the_passes_smaller(tiny_bert, tmp_path, monkeypatch):
    usual = run_pos(tiny_bert, tmp_path / "ample", batch_tokens=1024)
    forward, sizes, room = Encoder._forward, [], 130

    def short_of_memory(self, inputs, *arguments):
        sizes.append(inputs["input_ids"].numel())
        if sizes[-1] > room:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB.")
        return forward(self, inputs, *arguments)

    monkeypatch.setattr(Encoder, "_forward", short_of_memory)
    tight = run_pos(tiny_bert, tmp_path / "tight", batch_tokens=1024)
    (line, *_) = logged(tmp_path / "tight", "smaller passes")
    # The longest text, which is read first, takes three windows of 64.
    assert (max(sizes), line["tokens"]) == (192, 96)
    for layer in range(3):
        caches = (tmp_path / name / "cache" for name in ("ample", "tight"))
        one, other = (np.load(next(x.rglob(f"layer-0{layer}.npy"))) for x in caches)
        np.testing.assert_allclose(one, other, rtol=1e-2, atol=1e-3)
    for a, b in zip(usual.results, tight.results, strict=True):
        assert a.score(a.best_layer) == pytest.approx(b.score(b.best_layer), abs=0.011)


def test_too_little_memory_for_one_text_is_an_error_that_says_what_to_do(
    tiny_bert, tmp_path, monkeypatch
):
    forward = Encoder._forward

    def none(self, inputs, *arguments):
        if inputs["input_ids"].shape[1] > 12:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate")
        return forward(self, inputs, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Encoder, "_forward", none)
        said = r"not enough memory on cpu for .* Use --dtype bfloat16"
        with pytest.raises(UserError, match=said):
            run_pos(tiny_bert, tmp_path)
    assert run_pos(tiny_bert, tmp_path).results


def test_too_little_memory_for_a_fit_takes_fewer_layers_at_once(tiny_bert, tmp_path, monkeypatch):
    usual = run_pos(tiny_bert, tmp_path / "ample", memory="1GB")
    fit, sizes = task_context.fit, []

    def short_of_memory(train, *rest):
        sizes.append(train.features.shape[0])
        if sizes[-1] > 1:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB.")
        return fit(train, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(task_context, "fit", short_of_memory)
        tight = run_pos(tiny_bert, tmp_path / "tight", memory="1GB")
    assert (sizes[0], sizes[-3:]) == (3, [1, 1, 1])
    # How many layers share a product may change its rounding, and so an example or two.
    pd.testing.assert_frame_equal(usual.table(), tight.table(), rtol=0, atol=0.011)

    def none(*arguments, **settings):
        raise MemoryError

    monkeypatch.setattr(task_context, "fit", none)
    with pytest.raises(UserError, match=r"Out of memory while measuring depth · linear; "):
        run_pos(tiny_bert, tmp_path / "tight", memory="1GB", tasks=("depth",))
