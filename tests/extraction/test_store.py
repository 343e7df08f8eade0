"""Stores of tiny readings: the same bytes however they are made; shards that are lost."""

from __future__ import annotations

import json
import shutil
import threading
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from tiny_models import build
from tiny_readings import (
    collected,
    files_below,
    random_view,
    reading_of,
    shards_of_store,
    small_shards,
    vectors_by_layer,
)

from probes.common.errors import UserError
from probes.extraction.models.loading import load_encoder
from probes.extraction.models.model_files import find_model
from probes.extraction.reading.collectors import WordVectors
from probes.extraction.reading.encoder import Encoder
from probes.extraction.reading.encoding import StoreRequest, begin_store, collect, vectors_of
from probes.extraction.reading.shard_files import write_shard
from probes.extraction.reading.shards import Shard
from probes.extraction.reading.store import REPLACED, StoreKey, require_room, store_folder
from probes.extraction.reading.vectors import StoredVectors
from probes.extraction.reading.views import Text, View

VIEW = random_view(60)
SHORT_VIEW = random_view(30)
LAYERS = (0, 1, 2)


@pytest.fixture(scope="module", autouse=True)
def _small_shards():
    with pytest.MonkeyPatch.context() as patch:
        small_shards(patch, 64)
        yield


@pytest.fixture(scope="module")
def reference(encoder, tmp_path_factory):
    """The folder of a store that one process made in order, which tests only read."""
    folder = tmp_path_factory.mktemp("reference")
    collect(reading_of(folder, encoder, VIEW), encoder, 64)
    return folder


def arrays_in(files: dict[str, bytes]) -> dict[tuple[str, str], bytes]:
    """The content of arrays, by number of the shard and name of the file."""
    places = {name: Path(name) for name in files if name.endswith(".npy")}
    return {(p.parent.name[:5], p.name): files[name] for name, p in places.items()}


# -- what is stored -----------------------------------------------------------------------


def test_rows_of_a_text_are_its_words_vectors(encoder, tmp_path):
    vectors = vectors_of(reading_of(tmp_path, encoder, VIEW), encoder, 64)
    assert vectors.n_shards >= 4
    assert vectors.n_layers == 3
    layers = [vectors.layer(layer) for layer in LAYERS]
    for text, start in zip(VIEW.texts, vectors.starts, strict=True):
        rows = start + np.arange(text.kept_span[1] - text.kept_span[0])
        for layer, alone in zip(layers, vectors_by_layer(encoder, [text]), strict=True):
            assert layer[rows].dtype == np.float16
            np.testing.assert_allclose(layer[rows], alone, rtol=2e-3, atol=2e-3)
    pieces = encoder.split(VIEW.texts)
    assert vectors.count("subwords") == sum(len(p.ids) for p in pieces)
    assert vectors.count("unknown_words") == sum(p.unknown for p in pieces)
    long = sum(len(p.ids) > encoder.capacity for p in pieces)
    told = {"unknown_words": 0, "texts_in_several_windows": long, "batch_tokens": 64, "chats": ""}
    assert vectors.encoding.model_dump() == {"storage": "float16", **told}
    assert long > 0
    with pytest.raises(ValueError, match="read-only"):
        layers[0].arrays[0][:] = 0


def test_bytes_do_not_depend_on_the_order_and_lost_shards_are_made_again(
    encoder, reference, tmp_path
):
    reading = reading_of(tmp_path / "lost", encoder, VIEW)
    collect(reading, encoder, 64)
    shards = shards_of_store(reading)
    lost = [0, len(shards) - 1]
    for number in lost:
        shutil.rmtree(reading.folder / f"{number:05d}-layer-00")
    assert [shard.number for shard in reading.missing()] == lost
    collect(reading, encoder, 64)
    assert files_below(tmp_path / "lost") == files_below(reference)
    folder = Path(store_folder(Path(), reading.key))
    names = {str(Path(name).relative_to(folder)) for name in files_below(reference)}
    files = ["manifest.json", *(f"layer-0{layer}.npy" for layer in LAYERS)]
    parts = {f"{shard.number:05d}-layer-00/{name}" for shard in shards for name in files}
    assert names == {"manifest.json", *parts}


def test_bytes_do_not_depend_on_layers_that_were_asked_for_before(encoder, reference, tmp_path):
    cache = tmp_path / "layers"
    collect(reading_of(cache, encoder, VIEW, [1]), encoder, 64)
    assert {name for _, name in arrays_in(files_below(cache))} == {"layer-01.npy"}
    before = files_below(cache)
    # A batch size that is asked for later does not count.
    collect(reading_of(cache, encoder, VIEW), encoder, 512)
    found = files_below(cache)
    assert before.items() < found.items()
    assert arrays_in(found) == arrays_in(files_below(reference))
    reading = reading_of(cache, encoder, VIEW, [2, 0])
    assert reading.missing() == []
    vectors = StoredVectors(cache, reading.key, VIEW)
    other = StoredVectors(reference, reading.key, VIEW)
    rows = np.arange(vectors.manifest["rows"])
    for layer in LAYERS:
        assert np.array_equal(vectors.layer(layer)[rows], other.layer(layer)[rows])
    assert vectors.count("subwords") == other.count("subwords")


def encode_alone(reading: StoreRequest, encoder: Encoder) -> None:
    torch.set_num_threads(1)
    collect(reading, encoder, 64)


@pytest.mark.parametrize("kind", ["threads", "processes"])
@pytest.mark.parametrize("n", [2, 4])
def test_bytes_do_not_depend_on_how_many_encode_at_once(n, kind, tiny_bert, reference, tmp_path):
    start: Any = threading.Thread if kind == "threads" else get_context("fork").Process
    encoders = [load_encoder(find_model(str(tiny_bert)), device="cpu") for _ in range(n)]
    given = [(reading_of(tmp_path / "shared", each, VIEW), each) for each in encoders]
    workers = [start(target=encode_alone, args=each) for each in given]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    if kind == "processes":
        assert [worker.exitcode for worker in workers] == [0] * n
    assert files_below(tmp_path / "shared") == files_below(reference)


# -- room on disk -------------------------------------------------------------------------


def test_files_are_the_same_however_many_are_written_at_once(tmp_path):
    arrays = {f"layer-{i:02d}": np.full((50, 8), i, np.float16) for i in range(6)}
    folders = [tmp_path / "one", tmp_path / "four"]
    for folder, at_once in zip(folders, (1, 4), strict=True):
        folder.mkdir()
        write_shard(folder, Shard(0, np.arange(0), []), arrays, {}, [], 1, at_once)
    one, four = ({p.name: p.read_bytes() for p in f.rglob("*") if p.is_file()} for f in folders)
    assert one == four
    assert len(one) == 7


def test_the_estimate_is_what_is_written(encoder, tmp_path, monkeypatch):
    free, cache = [], tmp_path / "cache"
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=free[-1]))

    def written() -> int:
        return sum(np.load(path).nbytes for path in cache.rglob("*.npy"))

    reading, some = (reading_of(cache, encoder, VIEW, layers) for layers in (LAYERS, [1]))
    total = reading.bytes_missing()
    n_words = sum(text.kept_span[1] - text.kept_span[0] for text in VIEW.texts)
    assert (total, some.bytes_missing()) == (3 * n_words * 16 * 2, n_words * 16 * 2)
    for step in (some, reading):
        left = reading.bytes_missing()
        free.append(left)
        require_room(reading.cache, left)
        free.append(left - 1)
        with pytest.raises(UserError, match=r"vectors need 0\.0 MB, 0\.0 MB are free; choose"):
            require_room(reading.cache, left)
        before = written()
        collect(step, encoder)
        assert left - reading.bytes_missing() == written() - before > 0
    assert (written(), reading.bytes_missing()) == (total, 0)
    free.append(0)
    require_room(reading.cache, 0)


# -- beyond fp16, and not finite ----------------------------------------------------------

LOUD = Text(("she", "counts", "zzz", "boats", "the", "boats"), (0, 6))


@pytest.fixture
def loud():
    """A view, and encoders for which "zzz", a space and three z, is beyond fp16 at layer 0."""
    texts = [text for text in VIEW.texts if text != LOUD]
    view = View("plain", (*texts[:20], LOUD, *texts[20:]))

    def make(value: float = 1e5) -> Encoder:
        model, tokenizer = build("gpt2", "GPT2Model")
        (piece,) = {int(i) for i in tokenizer("zzz").input_ids}
        with torch.no_grad():
            model.wte.weight[piece, 3] = value
        return Encoder(model, tokenizer, name="loud", device="cpu")

    return view, make


def where(reading: StoreRequest, text: Text) -> int:
    (number,) = (x.number for x in shards_of_store(reading) if text in x.texts)
    return number


def test_a_vector_beyond_fp16_moves_everything_to_fp32(loud, tmp_path, capsys):
    view, make = loud
    encoder = make()
    narrow = reading_of(tmp_path, encoder, view)
    n_shards = begin_store(narrow, encoder, 64).n_shards
    assert 0 < where(narrow, LOUD) < n_shards - 1
    vectors = vectors_of(narrow, encoder, 64)
    said = capsys.readouterr().err
    assert said.count("layer 0 reaches 75000, beyond fp16's range") == 1
    assert "everything is encoded again and stored in fp32" in said
    assert sorted(path.name for path in narrow.folder.iterdir()) == ["manifest.json", REPLACED]
    why = json.loads((narrow.folder / REPLACED).read_bytes())["why"]
    assert why.startswith("layer 0 reaches 75000")
    assert vectors.encoding.storage == "float32"
    wide = reading_of(tmp_path, encoder, view)
    assert wide.key != narrow.key
    for shard in shards_of_store(wide):
        expected = collected(encoder, shard.texts, WordVectors(LAYERS, storage="float32"), 64)
        for layer in LAYERS:
            ours = vectors.layer(layer).arrays[shard.number]
            np.testing.assert_array_equal(ours, expected[f"layer-0{layer}"])
    place = vectors.starts[view.index[LOUD]] + 2
    assert vectors.layer(0)[np.array([place])][0, 3] == pytest.approx(75000, rel=1e-4)
    # From now on nothing is tried in fp16.
    shutil.rmtree(wide.folder)
    vectors_of(reading_of(tmp_path, encoder, view), encoder, 64)
    assert "fp32" not in capsys.readouterr().err
    assert not list(tmp_path.rglob("*.lock"))
    assert len(list((tmp_path / "vectors").iterdir())) == 2


def test_a_vector_that_is_not_finite_is_named_and_its_shard_is_not_kept(loud, tmp_path):
    view, make = loud
    encoder = make(float("nan"))
    reading = reading_of(tmp_path, encoder, view)
    with pytest.raises(UserError) as caught:
        vectors_of(reading, encoder, 64)
    assert str(caught.value).startswith(
        "--model loud: layer 0 gives a vector that is not finite (NaN or infinite) for 'zzz', "
        "word 3 of 6 in '… she counts zzz boats the boats …'; the model is broken"
    )
    (odd,) = (x for x in shards_of_store(reading) if any("zzz" in text.words for text in x.texts))
    assert odd.number in [shard.number for shard in reading.missing()]
    assert not list(reading.folder.glob(f"{odd.number:05d}-*"))


# -- what cannot be read ------------------------------------------------------------------


def test_a_folder_without_a_manifest_is_begun_unless_it_has_shards(encoder, reference, tmp_path):
    reading = reading_of(tmp_path / "begun", encoder, VIEW)
    reading.folder.mkdir(parents=True)
    assert [len(shard.texts) for shard in reading.missing()] == [len(VIEW.texts)]
    collect(reading, encoder, 64)
    assert files_below(tmp_path / "begun") == files_below(reference)
    (reading.folder / "manifest.json").unlink()
    with pytest.raises(UserError, match=f"delete {reading.folder} and run again"):
        reading.missing()


@pytest.mark.parametrize("why", ["", "[]", "{}", '{"why"'])
def test_a_damaged_note_of_replacement_is_named(why, encoder, tmp_path):
    reading = reading_of(tmp_path, encoder, VIEW)
    reading.folder.mkdir(parents=True)
    (reading.folder / REPLACED).write_text(why)
    with pytest.raises(UserError, match=f"{REPLACED}: not readable .*delete {reading.folder} and"):
        reading_of(tmp_path, encoder, VIEW)


def test_a_store_under_another_key_s_name_is_refused(encoder, tmp_path):
    reading = reading_of(tmp_path, encoder, VIEW)
    collect(reading, encoder, 64)
    other = StoreKey("another model", reading.key.view, "float32", "word vectors v1", {})
    shutil.copytree(reading.folder, store_folder(tmp_path, other))
    with pytest.raises(UserError, match="holds what belongs to another key; delete"):
        StoredVectors(tmp_path, other, VIEW)


def test_a_shard_that_is_deleted_is_made_again(encoder, tmp_path, capsys):
    """Also if a part that was asked for later has a folder of its own."""
    cache = tmp_path / "two"
    collect(reading_of(cache, encoder, SHORT_VIEW, [0, 1]), encoder, 64)
    reading = reading_of(cache, encoder, SHORT_VIEW)
    collect(reading, encoder, 64)
    before = files_below(cache)
    for name in ("00001-layer-00", "00002-layer-02"):
        for path in (reading.folder / name).iterdir():
            path.unlink()
        (reading.folder / name).rmdir()
        assert [shard.number for shard in reading.missing()] == [int(name[:5])]
        capsys.readouterr()
        vectors_of(reading, encoder, 512)
        n = len(shards_of_store(reading))
        said = f"encoding continues: {n - 1} of {n} shards exist, made with 64 tokens per batch"
        assert said in capsys.readouterr().err
        assert files_below(cache) == before
