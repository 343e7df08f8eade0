"""Whole runs on a tiny model: what is written, what is reused, what never changes."""

import json
import re
import subprocess
import sys
import time
import weakref
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

import probes
from probes.__main__ import main as sub_command
from probes.boards.leaderboard_csv import COLUMNS
from probes.cli.run import run_models
from probes.common.errors import UserError
from probes.data.find import find_corpus
from probes.engines.config import validate
from probes.engines.inputs import Subject, find_models
from probes.extraction import layer_files
from probes.extraction.collectors import WordVectors
from probes.extraction.encoder import Encoder
from probes.extraction.loading import load_encoder
from probes.extraction.model_files import find_model
from probes.measurements.probing import stored_types
from probes.records.files import read_result
from probes.records.probe_spec import PROBES
from probes.records.result import SCHEMA_VERSION
from probes.training.features import standard_scale

ROOT = Path(__file__).parents[2]
TASKS = ("pos", "chunking", "depth", "agreement", "srl")


pytestmark = pytest.mark.usefixtures("short_schedule")


def run(model, tmp_path, **settings):
    settings = {
        "limit": 60,
        "quick": True,
        "cache_dir": tmp_path / "cache",
        "output": tmp_path / "results",
        "device": "cpu",
        **settings,
    }
    return probes.run_probes(str(model), **settings)


def scores(results):
    return {
        (r.task.name, r.probe.family, layer.layer): (r.score(layer), r.score(layer, "dev"))
        for r in results
        for layer in r.layers
    }


def close(ours, theirs):
    """Within 0.1 point or two test examples of about 100."""
    assert ours.keys() == theirs.keys()
    for key, pair in ours.items():
        assert pair == pytest.approx(theirs[key], abs=0.021), key


def test_a_run_writes_json_tables_heat_map_and_leaderboard(tiny_bert, tmp_path):
    results = run(tiny_bert, tmp_path)
    folder = next((tmp_path / "results").glob("tiny-bert-*/sample"))
    assert len(list(folder.glob("*.json"))) == 10
    table = results.table("mlp")
    assert list(table.index) == [0, 1, 2]
    assert sorted(table.columns) == sorted(TASKS)

    board = pd.read_csv(tmp_path / "results" / "leaderboard.csv")
    assert tuple(board.columns) == COLUMNS
    assert len(board) == 5 * 2 * 3
    assert board.groupby(["task", "probe"]).best.sum().tolist() == [1] * 10
    row = board[(board.task == "pos") & (board.probe == "mlp") & (board.layer == 2)].iloc[0]
    assert row.score == pytest.approx(table.loc[2, "pos"], abs=1e-6)
    assert (row["view"], row.model, row.limited) == ("plain", "tiny-bert", True)
    assert set(board[board.task == "agreement"]["view"]) == {"masked"}

    wide = pd.read_csv(folder / "layers.csv", index_col="layer")
    assert wide.loc[2, "pos (mlp)"] == pytest.approx(table.loc[2, "pos"], abs=1e-6)
    assert "| **" in (folder / "layers.md").read_text()
    assert Image.open(folder / "layers.png").size[0] > 1000


def test_stored_predictions_give_the_stored_scores(tiny_bert, tmp_path):
    (result,) = run(tiny_bert, tmp_path, tasks=("pos",), probes=("linear",), seeds=2)
    (path,) = (tmp_path / "results").rglob("pos-linear-*.json")
    arrays = np.load(path.with_suffix(".npz"), allow_pickle=False)
    assert arrays["predicted"].shape == (3, 2, result.examples.n["test"])
    for i, layer in enumerate(result.layers):
        for j, cell in enumerate(layer.cells):
            right = (arrays["predicted"][i, j] == arrays["gold"]).mean()
            assert cell.test["accuracy"] == pytest.approx(right)
    # Seed 1 is a bootstrap sample: another probe.
    assert (arrays["predicted"][:, 0] != arrays["predicted"][:, 1]).any()


def test_indices_of_very_many_classes_are_stored_whole():
    for n_classes, integer in ((2, np.int16), (2**15, np.int16), (2**15 + 1, np.int32)):
        assert stored_types("classification", n_classes) == (integer, integer)
        assert np.iinfo(integer).max >= n_classes - 1
    assert stored_types("multi-label", 2**16) == (np.int32, np.uint8)


def test_the_same_run_again_computes_nothing_and_changes_nothing(tiny_bert, tmp_path, monkeypatch):
    first = run(tiny_bert, tmp_path)
    before = {p: p.read_bytes() for p in (tmp_path / "results").rglob("*") if p.is_file()}

    def never(*args, **kwargs):
        raise AssertionError("the model was loaded, or the corpus read")

    monkeypatch.setattr("probes.extraction.loading.load_encoder", never)
    monkeypatch.setattr("probes.data.sources.Source.load", never)
    assert scores(run(tiny_bert, tmp_path)) == scores(first)
    after = {p: p.read_bytes() for p in (tmp_path / "results").rglob("*") if p.is_file()}
    kept = (".csv", ".json", ".md", ".npz")
    assert {p: b for p, b in after.items() if p.suffix in kept} == {
        p: b for p, b in before.items() if p.suffix in kept
    }


def test_recomputing_gives_identical_numbers(tiny_bert, tmp_path):
    first = run(tiny_bert, tmp_path, cache_dir=tmp_path / "one")
    second = run(tiny_bert, tmp_path, cache_dir=tmp_path / "two", overwrite="always")
    assert scores(first) == scores(second)


def test_vectors_are_reused_without_a_forward_pass(tiny_bert, tmp_path, monkeypatch):
    first = run(tiny_bert, tmp_path, probes=("linear",))
    monkeypatch.setattr("probes.extraction.encoder.Encoder.encode", None)
    again = run(tiny_bert, tmp_path, probes=("linear",), overwrite="always")
    assert scores(first) == scores(again)


def test_features_are_standardised_once_for_all_that_reads_them(tiny_bert, tmp_path, monkeypatch):
    standardised, scale = [], standard_scale

    def counted(*given):
        standardised.append(given)
        return scale(*given)

    monkeypatch.setattr("probes.training.dataset.standard_scale", counted)
    run(tiny_bert, tmp_path, tasks=("pos", "depth"))
    assert len(standardised) == 3  # layers; the words of both tasks and families are the same
    run(tiny_bert, tmp_path, tasks=("pos", "srl"), probes=("linear",), overwrite="always")
    assert len(standardised) == 3 + 2 * 3


@pytest.mark.parametrize("batch_tokens", [16, 4096])
def test_scores_do_not_depend_on_batch_size(tiny_bert, tmp_path, batch_tokens):
    settings = {"probes": ("linear",), "limit": 100}
    usual = run(tiny_bert, tmp_path / "a", **settings)
    other = run(tiny_bert, tmp_path / "b", batch_tokens=batch_tokens, **settings)
    close(scores(usual), scores(other))


def test_scores_do_not_depend_on_the_tasks_run_beside(tiny_bert, tmp_path):
    together = scores(run(tiny_bert, tmp_path / "a", probes=("linear",)))
    for task in ("pos", "agreement"):
        alone = scores(run(tiny_bert, tmp_path / task, tasks=(task,), probes=("linear",)))
        close(alone, {key: value for key, value in together.items() if key[0] == task})


def test_more_layers_and_seeds_extend_a_result(tiny_bert, tmp_path):
    settings = {"tasks": ("pos",), "probes": ("linear",)}
    (one,) = run(tiny_bert, tmp_path, layers=(1,), **settings)
    (two,) = run(tiny_bert, tmp_path, layers=(2,), seeds=2, **settings)
    assert [layer.layer for layer in two.layers] == [1, 2]
    assert [cell.seed for cell in two.layers[0].cells] == [0, 1]
    known = {key: value for key, value in scores([two]).items() if key[-1] == 1}
    close(scores([one]), known)
    assert len(list((tmp_path / "results").rglob("pos-linear-*.json"))) == 1


def test_overwrite_never_leaves_what_is_there(tiny_bert, tmp_path):
    settings = {"tasks": ("pos",), "probes": ("linear",)}
    run(tiny_bert, tmp_path, **settings)
    with pytest.raises(UserError, match=r"is there already, and --overwrite is 'never'"):
        run(tiny_bert, tmp_path, overwrite="never", **settings)


def test_models_in_one_cache_do_not_serve_each_others_vectors(tiny_bert, tmp_path):
    settings = {"tasks": ("pos",), "probes": ("linear",)}
    own = scores(run(tiny_bert, tmp_path, **settings))
    twin = scores(run(f"random:{tiny_bert}", tmp_path, **settings))
    assert own != twin
    board = pd.read_csv(tmp_path / "results" / "leaderboard.csv")
    assert set(board.model) == {"tiny-bert", "random:tiny-bert"}


def test_a_renamed_folder_keeps_its_vectors_but_not_its_old_name(tiny_bert, tmp_path):
    import shutil

    renamed = tmp_path / "renamed"
    shutil.copytree(tiny_bert, renamed)
    settings = {"tasks": ("pos",), "probes": ("linear",)}
    run(tiny_bert, tmp_path, **settings)
    (result,) = run(renamed, tmp_path, **settings)
    assert result.model.name == "renamed"
    assert len(list((tmp_path / "cache" / "vectors").glob("*/manifest.json"))) == 1


def test_a_model_in_memory_gives_what_its_folder_gives(tiny_bert, tmp_path):
    from transformers import AutoModel, AutoTokenizer

    settings = {"tasks": ("pos", "agreement"), "probes": ("linear",), "limit": 60, "device": "cpu"}
    loaded = AutoModel.from_pretrained(tiny_bert), AutoTokenizer.from_pretrained(tiny_bert)
    memory = probes.run_probes(
        loaded, name="mine", cache_dir=tmp_path / "c", output=tmp_path / "r", **settings
    )
    close(scores(memory), scores(run(tiny_bert, tmp_path, **settings)))
    assert list((tmp_path / "r").glob("mine-*/sample"))


def test_layer_0_of_the_masked_view_knows_no_more_than_position(tiny_bert, tmp_path):
    (result,) = run(tiny_bert, tmp_path, tasks=("agreement",), probes=("linear",), limit=400)
    assert result.score(result.layers[0]) == pytest.approx(0.5, abs=0.12)
    assert result.references["subject's Number"]["balanced_accuracy"] > 0.95
    assert {"0 attractors", "1+ attractors"} < set(result.examples.groups)


def test_a_flipped_byte_in_the_store_is_an_error(tiny_bert, tmp_path):
    settings = {"tasks": ("pos",), "probes": ("linear",)}
    run(tiny_bert, tmp_path, **settings)
    (layer,) = (tmp_path / "cache").rglob("layer-01.npy")
    content = bytearray(layer.read_bytes())
    content[-3] ^= 1
    layer.write_bytes(content)
    with pytest.raises(UserError, match=r"layer-01\.npy: its content changed on disk; delete"):
        run(tiny_bert, tmp_path, overwrite="always", **settings)
    layer.write_bytes(content[:-7])
    with pytest.raises(UserError, match=r"layer-01\.npy: missing or of the wrong size"):
        run(tiny_bert, tmp_path, overwrite="always", **settings)


@pytest.mark.parametrize("stretch", [1 << 16, 100], ids=["one stretch", "several"])
def test_a_stopped_encoding_goes_on_with_the_same_batches(
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
def test_an_error_of_the_model_loses_no_batch_before_it(
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
def test_a_batch_that_is_half_written_is_written_again(error, tiny_bert, tmp_path, monkeypatch):
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


def test_one_model_is_in_memory_at_a_time(tiny_bert, tmp_path, monkeypatch):
    """Each is let go of when its work is done, also where nobody collects garbage."""
    alive, most = weakref.WeakSet(), []

    def loading(source, **options):
        encoder = load_encoder(source, **options)
        alive.add(encoder.model)
        most.append(len(alive))
        return encoder

    monkeypatch.setattr("probes.extraction.loading.load_encoder", loading)
    names = [f"{seed}{tiny_bert}" for seed in ("", "random:", "random-1:")]
    models = find_models(names, validate({"corpus": "sample"}))
    settings = {"corpus": "sample", "limit": 30, "quick": True, "tasks": ("pos",)}
    settings |= {"cache_dir": tmp_path / "cache", "output": tmp_path / "results"}
    config = validate({**settings, "probes": ("linear",), "device": "cpu"})
    subjects = [Subject(source, config) for source in models]
    corpus = find_corpus(*config.corpus, **config.corpus_request)
    assert len(run_models(config, corpus, subjects).results) == 3
    assert most == [1, 1, 1]
    assert not alive
    # Whoever needs it later has it loaded again.
    again = subjects[0].encoder
    assert again is subjects[0].encoder
    assert (again.info.name, len(alive)) == ("tiny-bert", 1)


def test_a_model_in_memory_is_not_let_go_of(tiny_bert, tmp_path):
    encoder = load_encoder(find_model(str(tiny_bert)), device="cpu")
    subject = Subject(find_model(str(tiny_bert)), validate({"corpus": "sample"}), loaded=encoder)
    assert subject.encoder is encoder
    subject.release()
    assert subject.encoder is encoder


@pytest.mark.parametrize("loud", [False, True], ids=["fp16", "beyond fp16"])
def test_an_encoding_begun_with_other_batches_starts_anew(
    loud, tiny_bert, tmp_path, capsys, monkeypatch
):
    settings = {"tasks": ("pos",), "probes": ("linear",), "batch_tokens": 64}
    whole = run(tiny_bert, tmp_path / "whole", **settings)
    monkeypatch.setattr("probes.extraction.layer_files._SYNC_BYTES", 1)

    def stop():
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("probes.extraction.encoding._KEEP_FOR", 2)
        patch.setattr("probes.extraction.encoding.give_back", stop)
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


def test_a_damaged_unfinished_store_is_begun_anew(tiny_bert, tmp_path):
    settings = {"tasks": ("pos",), "probes": ("linear",)}
    run(tiny_bert, tmp_path, **settings)
    (manifest,) = (tmp_path / "cache").rglob("manifest.json")
    partial = manifest.parent.with_suffix(".partial")
    manifest.parent.rename(partial)
    (partial / "manifest.json").unlink()
    (partial / "journal.json").write_text('{"batch_tokens": 64, "batches": 1, "crc32": [1, 1, 1]}')
    run(tiny_bert, tmp_path, overwrite="always", **settings)
    assert not partial.exists()


def test_values_beyond_fp16_are_stored_in_fp32(tiny_bert, tmp_path, capsys):
    from transformers import AutoModel, AutoTokenizer

    model = AutoModel.from_pretrained(tiny_bert)
    model.encoder.layer[-1].output.LayerNorm.weight.data *= 1e6
    probes.run_probes(
        (model, AutoTokenizer.from_pretrained(tiny_bert)),
        name="loud",
        tasks=("pos",),
        probes=("linear",),
        limit=40,
        cache_dir=tmp_path / "c",
        output=tmp_path / "r",
        device="cpu",
    )
    assert "beyond fp16's range: stored in fp32" in capsys.readouterr().err
    (path,) = (tmp_path / "r").rglob("pos-linear-*.json")
    assert read_result(path).encoding.storage == "float32"


def test_a_damaged_result_is_named(tiny_bert, tmp_path):
    settings = {"tasks": ("pos",), "probes": ("linear",)}
    run(tiny_bert, tmp_path, **settings)
    (path,) = (tmp_path / "results").rglob("pos-linear-*.json")
    whole = path.read_text()
    path.write_text(whole[:1000])
    with pytest.raises(UserError, match=r"pos-linear-.*\.json: not a readable result"):
        run(tiny_bert, tmp_path, **settings)
    path.write_text(json.dumps({**json.loads(whole), "schema_version": 99}))
    with pytest.raises(UserError, match=f"result schema 99, this version reads {SCHEMA_VERSION}"):
        run(tiny_bert, tmp_path, **settings)


def command(*arguments, **environment):
    return subprocess.run(
        [sys.executable, str(ROOT / "run_probes.py"), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={
            "PATH": "/usr/bin:/bin",
            "HOME": "/nonexistent",
            "OMP_NUM_THREADS": "1",
            **environment,
        },
    )


def test_the_command_works_from_a_hub_cache_offline(hub_cache, tmp_path):
    done = command(
        "--model",
        "bert-base-uncased",
        "--offline",
        "--tasks",
        "depth",
        "--probes",
        "linear",
        "--limit",
        30,
        "--output",
        tmp_path / "r",
        "--cache-dir",
        tmp_path / "c",
        HF_HUB_CACHE=str(hub_cache),
    )
    assert done.returncode == 0, done.stderr
    assert "depth" in done.stdout
    assert "★" in done.stdout
    board = pd.read_csv(tmp_path / "r" / "leaderboard.csv")
    assert set(board.revision) == {"0123456789abcdef0123456789abcdef01234567"}


@pytest.mark.parametrize("offline", [["--offline"], []], ids=["offline", "no network"])
def test_without_network_and_cache_one_line_names_the_ways_out(tmp_path, offline):
    clock = time.monotonic()
    done = command(
        "--model",
        "bert-base-uncased",
        *offline,
        HF_HUB_CACHE=str(tmp_path),
        HF_ENDPOINT="http://127.0.0.1:9",
    )
    # Without waiting for a network again and again; most of the time is torch's import.
    assert time.monotonic() - clock < 60
    assert done.returncode == 2
    (line,) = done.stderr.strip().splitlines()
    assert "--model a local folder, or the packaged model all-MiniLM-L6-v2" in line


def test_folders_of_one_name_do_not_share_results(tiny_bert, tmp_path):
    import shutil

    other = tmp_path / "elsewhere" / "tiny-bert"
    shutil.copytree(tiny_bert, other)
    (other / "config.json").write_text((other / "config.json").read_text() + "\n")
    settings = {"tasks": ("pos",), "probes": ("linear",)}
    with pytest.raises(UserError, match="different models of the same name"):
        probes.run_probes([tiny_bert, other], limit=60, output=tmp_path / "r", device="cpu")
    run(tiny_bert, tmp_path, **settings)
    run(other, tmp_path, **settings)
    board = pd.read_csv(tmp_path / "results" / "leaderboard.csv")
    assert board.revision.nunique() == 2
    assert len(list((tmp_path / "results").glob("tiny-bert-*/sample/layers.csv"))) == 2


def test_overwrite_always_keeps_the_layers_that_are_there(tiny_bert, tmp_path):
    settings = {"tasks": ("pos",), "probes": ("linear",)}
    run(tiny_bert, tmp_path, **settings)
    (again,) = run(tiny_bert, tmp_path, layers=(1,), overwrite="always", **settings)
    assert [layer.layer for layer in again.layers] == [0, 1, 2]


def test_a_column_of_an_older_task_version_is_not_shown(tiny_bert, tmp_path, monkeypatch):
    from dataclasses import replace

    from probes.tasks.builtin import tasks

    run(tiny_bert, tmp_path, tasks=("pos", "depth"), probes=("linear",))
    monkeypatch.setitem(tasks._entries, "depth", replace(tasks.get("depth"), version=99))
    run(tiny_bert, tmp_path, tasks=("pos",), probes=("linear",))
    (table,) = (tmp_path / "results").rglob("layers.csv")
    assert list(pd.read_csv(table).columns) == ["layer", "pos (linear)"]


def test_a_task_without_examples_costs_no_other(tiny_bert, tmp_path, capsys):
    settings = {"limit": 1, "probes": ("linear",)}
    for tasks in (("agreement", "depth"), ("depth", "agreement")):
        results = run(tiny_bert, tmp_path, tasks=tasks, **settings)
        assert [result.task.name for result in results] == ["depth"]
        ((what, why),) = results.failed.items()
        assert what == "tiny-bert · agreement"
        assert why.startswith("Task 'agreement' has no examples in the ")
        assert f"missing {what}: {why}" in capsys.readouterr().err
    with pytest.raises(UserError, match=r"Task 'agreement' has no examples in the \w+ split"):
        run(tiny_bert, tmp_path, tasks=("agreement",), **settings)
    assert set(pd.read_csv(tmp_path / "results" / "leaderboard.csv").task) == {"depth"}


def test_what_was_finished_is_tabulated_when_a_later_task_fails(tiny_bert, tmp_path, monkeypatch):
    from probes.engines.local import Session

    once = Session._once

    def stops_at_depth(self, unit, *rest):
        if unit.task.name == "depth":
            raise UserError("stopped")
        return once(self, unit, *rest)

    monkeypatch.setattr(Session, "_once", stops_at_depth)
    with pytest.raises(UserError, match="stopped"):
        run(tiny_bert, tmp_path, tasks=("pos", "depth"), probes=("linear",))
    assert set(pd.read_csv(tmp_path / "results" / "leaderboard.csv").task) == {"pos"}


@pytest.mark.parametrize("damaged", [1, 2])
def test_damaged_predictions_cost_their_comparison_alone(tiny_bert, tmp_path, capsys, damaged):
    settings = {"limit": 1, "probes": ("linear",), "twins": 1}
    run(tiny_bert, tmp_path, tasks=("depth",), **settings)
    paths = sorted((tmp_path / "results").rglob("depth-*.npz"))
    for path in paths[:damaged]:
        path.write_bytes(path.read_bytes()[:100])
    results = run(tiny_bert, tmp_path, tasks=("depth", "pos"), **settings)
    assert len(list(results)) == 4
    board = pd.read_csv(tmp_path / "results" / "leaderboard.csv")
    assert board.groupby("task").model.nunique().to_dict() == {"depth": 2, "pos": 2}
    assert all(what.endswith("depth · linear in the comparison") for what in results.failed)
    whys = sorted(results.failed.values())
    assert len(whys) == damaged
    for path, why in zip(paths, whys, strict=False):
        assert why.startswith(f"{path}: not readable (")
    said = capsys.readouterr()
    assert " ".join(said.out.split()).count("(predictions not readable)") == (damaged == 1)
    assert said.err.count("in the comparison: ") == damaged
    later = run(tiny_bert, tmp_path, tasks=("depth", "agreement"), **settings)
    assert set(later.failed) == {
        *results.failed,
        "tiny-bert · agreement",
        "random:tiny-bert · agreement",
    }


def test_a_score_that_no_sentence_defines_has_no_best_layer(tiny_bert, tmp_path, capsys):
    """NSpr covers sentences of 5 to 50 words."""
    corpus = tmp_path / "c"
    corpus.mkdir()
    for split in ("train", "dev", "test"):
        words = "".join(f"{i}\tw{i}\t_\tX\t_\t_\t{i - 1}\tdep\t_\t_\n" for i in (1, 2, 3))
        (corpus / f"c-{split}.conllu").write_text(f"{words}\n" * 3)
    run(tiny_bert, tmp_path, corpus=str(corpus), tasks=("depth",), probes=("linear",))
    said = capsys.readouterr()
    assert "depth · linear · no best layer, since nspr is undefined on dev · " in said.err
    assert "nspr covers 0 test sentences" in said.err
    (table,) = (tmp_path / "results").rglob("layers.md")
    assert "| –" in table.read_text()
    assert "*" not in "".join(x for x in table.read_text().splitlines() if x.startswith("|"))
    assert "–★" not in said.out
    assert "–☆" not in said.out
    output = tmp_path / "results"
    assert not pd.read_csv(output / "leaderboard.csv").best.any()
    for name in ("leaderboard", "show", "report"):
        assert sub_command([name, str(output)]) == 0
    said = capsys.readouterr()
    assert "–/2" in said.out
    assert "★" not in "".join(x for x in said.out.splitlines() if x.startswith("│"))
    assert "no best layer" in (output / "report.html").read_text()


def test_names_with_markup_and_formulas_are_only_names(tiny_bert, tmp_path):
    from transformers import AutoModel, AutoTokenizer

    loaded = AutoModel.from_pretrained(tiny_bert), AutoTokenizer.from_pretrained(tiny_bert)
    results = probes.run_probes(
        loaded,
        name="org/x [/red] $\\foo$ 模型",
        tasks=("depth",),
        probes=("linear",),
        limit=30,
        cache_dir=tmp_path / "c",
        output=tmp_path / "r",
        device="cpu",
    )
    assert results.frame.model.unique().tolist() == ["org/x [/red] $\\foo$ 模型"]


def test_a_result_without_its_arrays_is_computed_again(tiny_bert, tmp_path):
    settings = {"tasks": ("depth",), "probes": ("linear",)}
    run(tiny_bert, tmp_path, **settings)
    (arrays,) = (tmp_path / "results").rglob("*.npz")
    arrays.unlink()
    run(tiny_bert, tmp_path, **settings)
    assert arrays.exists()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"taks": ("pos",)}, "unknown setting 'taks'. Did you mean 'tasks'?"),
        ({"tasks": ("poss",)}, "Unknown task 'poss'"),
        ({"layers": (-1,)}, "--layers -1: input should be greater than or equal to 0"),
        ({"probes": ()}, "--probes"),
        ({"dtype": "float8"}, "--dtype float8"),
        ({"device": "tpu"}, "--device tpu"),
        ({"output": Path(__file__)}, "cannot be written"),
    ],
)
def test_bad_settings_from_python_are_user_errors(tiny_bert, tmp_path, settings, message):
    with pytest.raises(UserError) as caught:
        run(tiny_bert, tmp_path, **settings)
    assert message in str(caught.value)
    assert not list(tmp_path.rglob("*.npy"))


@pytest.mark.parametrize(
    "damage", ["[]", '{"format": 2}', '{"format": 2, "layers": 3, "files": {}}']
)
def test_a_damaged_manifest_is_named(tiny_bert, tmp_path, damage):
    settings = {"tasks": ("depth",), "probes": ("linear",)}
    run(tiny_bert, tmp_path, **settings)
    (manifest,) = (tmp_path / "cache").rglob("manifest.json")
    manifest.write_text(damage)
    with pytest.raises(UserError, match="not a readable store"):
        run(tiny_bert, tmp_path, overwrite="always", **settings)


def test_a_model_spread_by_device_map_runs_whole(tiny_bert, tmp_path):
    pytest.importorskip("accelerate")
    settings = {"tasks": ("depth",), "probes": ("linear",)}
    spread = run(tiny_bert, tmp_path / "map", device="map", **settings)
    # A map puts a model on a GPU if there is one.
    close(scores(spread), scores(run(tiny_bert, tmp_path / "cpu", **settings)))


def test_a_tiny_memory_budget_changes_no_score(tiny_bert, tmp_path):
    settings = {"tasks": ("pos", "depth"), "seeds": 2, "quick": False, "twins": 0}
    ample = run(tiny_bert, tmp_path, memory="2GB", **settings)
    with pytest.raises(UserError, match=r"takes .*MB at least") as caught:
        run(tiny_bert, tmp_path, memory="1KB", overwrite="always", **settings)
    least = re.search(r"give --memory (\d+MB)", str(caught.value))[1]
    tight = run(tiny_bert, tmp_path, memory=least, overwrite="always", **settings)
    close(scores(ample), scores(tight))
    for one, other in zip(ample, tight, strict=True):
        # How many layers share a product may change its rounding, and with it which of two equally
        # good strengths is taken: what they come to is compared, the dev loss. A convex fit passes
        # on what its sums are off by, some 1e-7. An MLP's magnifies it, and moves its mixes.
        convex = one.probe.family == "linear"
        for a, b in zip(one.layers, other.layers, strict=True):
            for ours, theirs in zip(a.cells, b.cells, strict=True):
                assert ours.dev_loss == pytest.approx(theirs.dev_loss, rel=1e-4 if convex else 1e-2)
        a, b = one.localisation, other.localisation
        for ours, theirs in zip(a.mixes, b.mixes, strict=True):
            score = theirs.test[one.task.metric]
            assert ours.test[one.task.metric] == pytest.approx(score, abs=0.021)
            if convex:
                assert ours.weights == pytest.approx(theirs.weights, abs=0.02)
        assert not convex or a.kl.value == pytest.approx(b.kl.value, abs=0.02)


def test_localisation_is_written_where_all_layers_are_fitted(tiny_bert, tmp_path, monkeypatch):
    # Long enough for the probe on layer 0 to end where that of the first mix does.
    long = PROBES["linear"].model_copy(update={"min_steps": 1200})
    monkeypatch.setitem(PROBES, "linear", long)
    settings = {"tasks": ("pos", "depth"), "probes": ("linear",), "seeds": 2}
    settings |= {"quick": False, "twins": 0}
    whole = run(tiny_bert, tmp_path, **settings)
    some = run(tiny_bert, tmp_path, layers=(0, 2), output=tmp_path / "some", **settings)
    for result in whole:
        found = result.localisation
        assert [len(mix.weights) for mix in found.mixes] == [1, 2, 3]
        assert all(sum(mix.weights) == pytest.approx(1) for mix in found.mixes)
        first = found.mixes[0].test[result.task.metric]
        assert first == pytest.approx(result.score(result.layers[0]), abs=0.021)
        assert len(found.seed_weights) == 2
        assert found.kl.interval is not None
        assert result.seconds["mix"] > 0
    assert [result.localisation for result in some] == [None, None]
    paths = sorted((tmp_path / "results").rglob("*-linear-*.json"))
    assert all(read_result(path) in whole for path in paths)
    with np.load(paths[0].with_suffix(".npz")) as arrays:
        assert arrays["predicted_cumulative"].shape == arrays["predicted"][:, 0].shape


def test_a_whole_run_has_controls_a_twin_and_a_comparison(tiny_bert, tmp_path, capsys):
    settings = {"tasks": ("pos", "depth"), "probes": ("linear",), "quick": False}
    found = run(tiny_bert, tmp_path, **settings)
    names = [(r.model.name, r.task.name, r.model.random_seed) for r in found]
    assert names == [
        ("tiny-bert", "pos", None),
        ("tiny-bert", "depth", None),
        ("random:tiny-bert", "pos", 0),
        ("random:tiny-bert", "depth", 0),
    ]
    for result in found:
        assert result.control.metric == ("accuracy" if result.task.name == "pos" else "nspr")
        by_seed = zip(*(layer.cells for layer in result.layers), strict=True)
        controls = {tuple(cell.selectivity.control for cell in cells) for cells in by_seed}
        assert len(controls) == 3  # of one layer two may agree by chance
        for layer in result.layers:
            low, high = layer.selectivity
            assert low < layer.cells[0].selectivity.value < high
    twin = found.results[2].best_layer.cells[0].test["accuracy"]
    (text,) = [p.read_text() for p in (tmp_path / "results").glob("tiny-bert-*/sample/layers.md")]
    assert f"| random twin | {100 * twin:.1f} |" in text
    printed = capsys.readouterr().out
    assert "models at their best layers · linear probe" in printed
    assert printed.count("tiny-bert · sample, limit 60 · linear probe") == 1


def test_a_quick_result_does_not_do_for_a_whole_run_but_a_whole_one_for_a_quick(
    tiny_bert, tmp_path
):
    settings = {"tasks": ("pos",), "probes": ("linear",), "twins": 0}
    (quick,) = run(tiny_bert, tmp_path, **settings)
    assert (quick.quick, len(quick.layers[0].cells)) == (True, 1)
    assert (quick.localisation, quick.control) == (None, None)
    (whole,) = run(tiny_bert, tmp_path, quick=False, **settings)
    assert (whole.quick, len(whole.layers[0].cells)) == (False, 3)
    # What is trained beside a probe changes no more than how its products are rounded.
    close(scores([whole]), scores([quick]))
    (again,) = run(tiny_bert, tmp_path, **settings)
    assert again == whole


def test_a_model_and_a_second_twin_can_be_asked_for(tiny_bert, tmp_path):
    settings = {"tasks": ("depth",), "probes": ("linear",)}
    found = run(tiny_bert, tmp_path, twins=2, **settings)
    assert [r.model.random_seed for r in found] == [None, 0, 1]
    assert found.results[1].layers != found.results[2].layers
    assert (
        "random twin 1"
        in next((tmp_path / "results").glob("tiny-bert-*/sample/layers.md")).read_text()
    )
    board = pd.read_csv(tmp_path / "results" / "leaderboard.csv")
    assert set(board.random_seed.dropna()) == {0, 1}
    assert board[board.model == "tiny-bert"].random_seed.isna().all()


def test_a_later_run_of_another_task_keeps_the_twin_s_scores_in_the_table(tiny_bert, tmp_path):
    def twin_s_row():
        (path,) = (tmp_path / "results").glob("tiny-bert-*/sample/layers.md")
        (row,) = (line for line in path.read_text().splitlines() if "random twin" in line)
        return [cell.strip() for cell in row.split("|")[2:-1]]

    settings = {"probes": ("linear",), "twins": 1}
    run(tiny_bert, tmp_path, tasks=("pos",), **settings)
    (before,) = twin_s_row()
    run(tiny_bert, tmp_path, tasks=("depth",), **settings)
    assert twin_s_row()[0] == before
    assert twin_s_row()[1].startswith(".")


def test_a_run_that_stops_before_the_twin_keeps_its_scores_in_the_table(
    tiny_bert, tmp_path, monkeypatch
):
    from probes.engines.local import Session

    settings = {"probes": ("linear",), "twins": 1}
    run(tiny_bert, tmp_path, tasks=("pos",), **settings)
    work_off = Session.work_off

    def not_the_twin_s(self):
        if self.subject.source.seed is not None:
            raise KeyboardInterrupt
        return work_off(self)

    monkeypatch.setattr(Session, "work_off", not_the_twin_s)
    with pytest.raises(KeyboardInterrupt):
        run(tiny_bert, tmp_path, tasks=("depth",), **settings)
    (path,) = (tmp_path / "results").glob("tiny-bert-*/sample/layers.md")
    assert len([line for line in path.read_text().splitlines() if "random twin" in line]) == 1


def test_projected_vectors_have_results_of_their_own(tiny_bert, tmp_path):
    settings = {"tasks": ("pos",), "probes": ("linear",)}
    (full,) = run(tiny_bert, tmp_path, **settings)
    (narrow,) = run(tiny_bert, tmp_path, project=4, **settings)
    # 16 or 4 features and a bias for each of 15 tags.
    assert (full.probe_parameters, narrow.probe_parameters) == (15 * 17, 15 * 5)
    assert (narrow.project, narrow.key != full.key) == (4, True)
    assert full.score(full.layers[2]) > narrow.score(narrow.layers[2])


def test_layers_are_taken_in_order_and_each_once():
    assert validate({"layers": [2, 0, 2, 10, 1]}).layers == (0, 1, 2, 10)
    assert validate({"layers": ()}).layers == ()


def test_a_memory_budget_is_given_in_bytes_or_units():
    assert validate({"memory": "2GB"}).memory == 2_000_000_000
    assert validate({"memory": "512MiB"}).memory == 512 << 20
    with pytest.raises(UserError, match="--memory"):
        validate({"memory": "lots"})
