"""Which layers `--layers` means."""

import json

import pytest
import tiny_models
from tiny_models import FAMILIES

from probes.cli.main import main
from probes.common.errors import UserError
from probes.extraction.loading import load_encoder
from probes.extraction.model_files import find_model, stored_layers
from probes.run.jobs import layers_of
from probes.run.settings import validate


@pytest.mark.parametrize(
    ("given", "n_layers", "layers"),
    [
        ("all", 3, (0, 1, 2, 3)),
        ("0,6,12", 12, (0, 6, 12)),
        ("every:4", 12, (0, 4, 8, 12)),
        ("every:4", 6, (0, 4, 6)),
        ("every:1", 2, (0, 1, 2)),
        ("every:99", 2, (0, 2)),
    ],
)
def test_layers_by_number_or_by_step(given, n_layers, layers):
    assert layers_of(validate({"layers": given}), n_layers, "m") == layers


def test_a_layer_that_there_is_not():
    with pytest.raises(UserError, match=r"^--layers 7: m has layers 0 to 6\.$"):
        layers_of(validate({"layers": "0,7"}), 6, "m")


@pytest.mark.parametrize("name", FAMILIES)
def test_configurations_count_the_layers_that_there_are(name, tmp_path):
    tiny_models.save(name, tmp_path)
    found = load_encoder(find_model(str(tmp_path)), device="cpu").info.n_layers
    assert stored_layers(tmp_path) in (found, None)
    plain = json.loads((tmp_path / "config.json").read_text()).get("num_hidden_layers")
    assert plain is None or stored_layers(tmp_path) == found


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
    assert stored_layers(tmp_path) == n_layers


@pytest.mark.parametrize("flags", [(), ("--dry-run",)])
def test_a_layer_that_one_of_several_models_lacks_is_refused_before_any_is_loaded(
    flags, tiny_bert, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr("probes.extraction.loading.load_encoder", lambda *_, **__: 1 / 0)
    (tmp_path / "deep").mkdir()
    for file in tiny_bert.iterdir():
        (tmp_path / "deep" / file.name).write_bytes(file.read_bytes())
    config = json.loads((tiny_bert / "config.json").read_text())
    deep = json.dumps({**config, "num_hidden_layers": 9})
    (tmp_path / "deep" / "config.json").write_text(deep)
    models = [str(tmp_path / "deep"), str(tiny_bert)]
    output = ["--output", str(tmp_path / "results"), "--cache-dir", str(tmp_path / "cache")]
    assert main(["--model", *models, "--layers", "0,3", "--limit", "9", *output, *flags]) == 2
    (line,) = capsys.readouterr().err.strip().split("\n")[-1:]
    assert line == "error: --layers 3: tiny-bert has layers 0 to 2."
