"""The type that a model runs in, and which layers `--layers` means."""

import json
import shutil

import pandas as pd
import pytest
from tiny_runs import run
from transformers import AutoModel, AutoTokenizer

from probes import run_probes
from probes.cli.main import main
from probes.common.errors import UserError
from probes.extraction.models.model_files import n_configured_layers
from probes.extraction.models.model_folders import read_json
from probes.run.inputs import find_models
from probes.run.jobs import layers_of
from probes.run.settings import validate

pytestmark = pytest.mark.usefixtures("short_schedule")

GPU, NONE = True, False


@pytest.fixture(scope="module")
def stored(tiny_bert, tmp_path_factory):
    """Folders of the tiny model by the type that it is stored in."""
    folders = {"float32": tiny_bert}
    for dtype in ("bfloat16", "float16"):
        folders[dtype] = tmp_path_factory.mktemp(dtype) / "narrow"
        shutil.copytree(tiny_bert, folders[dtype])
        AutoModel.from_pretrained(tiny_bert, dtype=dtype).save_pretrained(folders[dtype])
    return folders


def model(folder, prefix="", **settings):
    (found,) = find_models([f"{prefix}{folder}"], validate({"twins": 0, **settings}))
    return found


@pytest.mark.parametrize(
    ("kept", "settings", "gpu", "expected"),
    [
        ("bfloat16", {}, GPU, "bfloat16"),
        ("float16", {}, GPU, "float16"),
        ("float32", {}, GPU, "float32"),
        ("bfloat16", {}, NONE, "float32"),
        ("bfloat16", {"device": "map"}, GPU, "bfloat16"),
        ("bfloat16", {"device": "map"}, NONE, "float32"),
        # A named device is taken at its word: results of a GPU can be read where there is none.
        ("bfloat16", {"device": "cuda"}, NONE, "bfloat16"),
        ("float16", {"device": "cuda:1"}, NONE, "float16"),
        ("bfloat16", {"device": "cpu"}, GPU, "float32"),
        ("float16", {"device": "mps"}, GPU, "float32"),
        ("bfloat16", {"dtype": "auto"}, GPU, "bfloat16"),
        ("bfloat16", {"dtype": "float32"}, GPU, "float32"),
        ("bfloat16", {"dtype": "float16"}, GPU, "float16"),
        ("float32", {"dtype": "bfloat16"}, NONE, "bfloat16"),
    ],
)
def test_what_a_model_and_its_twin_run_in(stored, monkeypatch, kept, settings, gpu, expected):
    monkeypatch.setattr("torch.cuda.is_available", lambda: gpu)
    assert model(stored[kept], **settings).dtype == expected
    assert model(stored[kept], "random-2:", **settings).dtype == expected


def test_a_run_in_another_type_has_results_and_tables_of_its_own(
    stored, tmp_path, monkeypatch, capsys
):
    settings = {"tasks": ("pos",), "probes": ("linear",), "limit": 40, "twins": 1}
    (plain, _) = run(stored["bfloat16"], tmp_path, **settings).results
    folder = tmp_path / "results"
    before = {path: path.read_bytes() for path in folder.rglob("pos-*")}
    (table,) = folder.glob("narrow-*/sample/layers.md")
    assert (plain.dtype, len(before)) == ("float32", 4)
    assert table.read_text().startswith("# narrow on sample")
    # As on a machine with a GPU, but for where it computes.
    monkeypatch.setattr("probes.run.inputs.uses_cuda", lambda device: True)
    capsys.readouterr()
    (own, twin) = run(stored["bfloat16"], tmp_path, **settings).results
    assert (own.dtype, twin.dtype) == ("bfloat16", "bfloat16")
    # Tiny differences of vectors move no prediction here; other losses show that they are there.
    assert own.at("dev_loss", 2, "dev") != plain.at("dev_loss", 2, "dev")
    assert {path: path.read_bytes() for path in before} == before
    assert len(list(folder.rglob("pos-*"))) == 8
    assert table.read_text().startswith("# narrow (bfloat16) on sample")
    said = " ".join(capsys.readouterr().out.split())
    assert "narrow (bfloat16) · sample, limit 40 · linear probe · test" in said
    rows = pd.read_csv(folder / "leaderboard.csv")
    assert rows.groupby("dtype").size().to_dict() == {"float32": 6, "bfloat16": 6}
    views = sorted((tmp_path / "cache" / "vectors").glob("*/manifest.json"))
    assert len(views) == 4  # of two models in two types


def test_a_model_in_memory_runs_in_the_type_that_it_has(stored, tmp_path):
    model = AutoModel.from_pretrained(stored["bfloat16"], dtype="bfloat16")
    pair = model, AutoTokenizer.from_pretrained(stored["bfloat16"])
    settings = {"tasks": ("pos",), "probes": ("linear",), "limit": 40, "quick": True}
    settings |= {"device": "cpu", "cache_dir": tmp_path / "c", "output": tmp_path / "r"}
    for dtype in ({}, {"dtype": "auto"}, {"dtype": "bfloat16"}):
        (result,) = run_probes(pair, **settings, **dtype).results
        assert result.dtype == "bfloat16"
    with pytest.raises(UserError, match=r"^dtype=float32: the model in memory is in bfloat16"):
        run_probes(pair, **settings, dtype="float32")


@pytest.mark.parametrize(
    ("given", "n_layers", "layers"),
    [
        ("all", 3, (0, 1, 2, 3)),
        ("0,6,12", 12, (0, 6, 12)),
        ("-1", 12, (12,)),
        ("0,-1,-12,12", 12, (0, 1, 12)),
        ([-1, -3], 2, (0, 2)),
        ("every:4", 12, (0, 4, 8, 12)),
        ("every:4", 6, (0, 4, 6)),
        ("every:1", 2, (0, 1, 2)),
        ("every:99", 2, (0, 2)),
    ],
)
def test_layers_by_number_or_by_step(given, n_layers, layers):
    assert layers_of(validate({"layers": given}), n_layers, "m") == layers


@pytest.mark.parametrize(
    ("config", "n_layers"),
    [
        ('{"n_layer": 3}', 3),
        ('{"n_layers": 4}', 4),
        ('{"text_config": {"num_hidden_layers": 5}}', 5),
        ('{"num_hidden_layers": "6"}', None),
        ("{}", None),
        ("[]", None),
        ("{", None),
    ],
)
def test_what_configurations_call_layers(config, n_layers, tmp_path):
    (tmp_path / "config.json").write_text(config)
    assert n_configured_layers(read_json(tmp_path / "config.json")) == n_layers


@pytest.mark.parametrize("flags", [(), ("--dry-run",)])
def test_a_layer_that_one_of_several_models_lacks_is_refused_before_any_is_loaded(
    flags, tiny_bert, tmp_path, capsys
):
    config = shutil.copytree(tiny_bert, tmp_path / "deep") / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "num_hidden_layers": 9}))
    models = [str(config.parent), str(tiny_bert)]
    output = ["--output", str(tmp_path / "results"), "--cache-dir", str(tmp_path / "cache")]
    assert main(["--model", *models, "--layers", "0,3", "--limit", "9", *output, *flags]) == 2
    (line,) = capsys.readouterr().err.strip().split("\n")[-1:]
    assert line == "error: --layers 3: tiny-bert has layers 0 to 2."
