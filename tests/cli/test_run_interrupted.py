"""Runs that stop half-way, and how the same command continues them."""

import json
import re
import shlex

import pytest
import torch
from changed_measurement import change_measurement
from tiny_readings import files_below, small_shards
from tiny_runs import run

from probes.__main__ import main
from probes.common.errors import UserError
from probes.extraction.encoder import Encoder

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("short_schedule")]


@pytest.mark.parametrize(
    "error",
    [
        KeyboardInterrupt(),
        pytest.param(RuntimeError("broken"), marks=pytest.mark.slow),
        pytest.param(torch.OutOfMemoryError("out of memory"), marks=pytest.mark.slow),
    ],
)
def test_a_stopped_encoding_continues_with_the_same_batches(
    error, tiny_bert, tmp_path, capsys, monkeypatch
):
    """It is stopped in every third shard, and ends with the numbers of a run that was not."""
    small_shards(monkeypatch, 64, 30)
    settings = {"tasks": ("pos",), "probes": ("linear",)}
    whole = run(tiny_bert, tmp_path / "whole", batch_tokens=64, **settings)
    encode, forward, begun = Encoder.encode, Encoder._forward, []

    def noted(self, *given):
        begun.append(given)
        return encode(self, *given)

    def third_stops(self, *given):
        if begun and len(begun) % 3 == 0:
            raise error
        return forward(self, *given)

    with monkeypatch.context() as patch:
        patch.setattr(Encoder, "encode", noted)
        patch.setattr(Encoder, "_forward", third_stops)
        for stop in (1, 2):
            begun.clear()
            with pytest.raises((type(error), UserError)):
                run(tiny_bert, tmp_path / "stopped", batch_tokens=64, **settings)
            (store,) = (tmp_path / "stopped" / "cache" / "vectors").iterdir()
            assert len(list(store.glob("*-layer-00"))) == 2 * stop
    capsys.readouterr()
    resumed = run(tiny_bert, tmp_path / "stopped", batch_tokens=4096, **settings)
    n_shards = json.loads((store / "manifest.json").read_bytes())["shards"]
    said = f"encoding continues: 4 of {n_shards} shards exist, made with 64 tokens per batch"
    assert said in capsys.readouterr().err
    stores = (files_below(tmp_path / name / "cache" / "vectors") for name in ("whole", "stopped"))
    one, other = stores
    assert one == other
    assert resumed.table().equals(whole.table())


def test_a_stop_writes_no_tables_and_says_how_to_see_them(tiny_bert, tmp_path, capsys, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    def resampled(*_):
        raise AssertionError("tables are made after a stop")

    change_measurement(monkeypatch, "selectivity", function=stop)
    with monkeypatch.context() as patch:
        for made in ("closing_tables", "write_leaderboard", "write_tables"):
            patch.setattr(f"probes.cli.run.{made}", resampled)
        with pytest.raises(KeyboardInterrupt):
            run(tiny_bert, tmp_path, tasks=("pos",), quick=False, evidence="selectivity", twins=0)
    results = tmp_path / "results"
    assert len(list(results.rglob("pos-*-scores-*.json"))) == 2
    assert not {"leaderboard.csv", "layers.md"} & {path.name for path in results.rglob("*")}
    (said,) = re.findall("tables of what is done: (.*)", capsys.readouterr().err)
    python, *arguments = shlex.split(said)
    assert (python, arguments[:3]) == ("python", ["-m", "probes", "show"])
    assert main(arguments[2:]) == 0
    assert "linear probe · test" in capsys.readouterr().out
