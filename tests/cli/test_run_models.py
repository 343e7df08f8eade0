"""Where models come from, and how long they stay in memory."""

import subprocess
import sys
import time
import weakref
from pathlib import Path

import pandas as pd
import pytest

import probes
from probes.cli.run import run_models
from probes.data.find import find_corpus
from probes.extraction.loading import load_encoder
from probes.run.inputs import find_models
from probes.run.settings import validate

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.usefixtures("short_schedule")


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
    settings = {"corpus": "sample", "limit": 30, "quick": True, "tasks": ("pos",)}
    settings |= {"cache_dir": tmp_path / "cache", "output": tmp_path / "results"}
    config = validate({**settings, "probes": ("linear",), "device": "cpu"})
    models = find_models(names, config)
    corpus = find_corpus(*config.corpus, **config.corpus_request)
    assert len(run_models(config, corpus, models).results) == 3
    assert most == [1, 1, 1]
    assert not alive
    # Whoever needs it later has it loaded again.
    again = models[0].encoder
    assert again is models[0].encoder
    assert (again.info.name, len(alive)) == ("tiny-bert", 1)


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


@pytest.mark.slow
def test_the_command_works_offline_from_a_hub_cache(hub_cache, tmp_path):
    line = "--model bert-base-uncased --offline --tasks depth --probes linear --quick --limit 30"
    places = ["--output", tmp_path / "r", "--cache-dir", tmp_path / "c"]
    done = command(*line.split(), *places, HF_HUB_CACHE=str(hub_cache))
    assert done.returncode == 0, done.stderr
    assert "depth" in done.stdout
    assert "linear probe · test" in done.stdout
    board = pd.read_csv(tmp_path / "r" / "leaderboard.csv")
    assert set(board.revision) == {"0123456789abcdef0123456789abcdef01234567"}


def test_two_revisions_of_a_model_are_two_models_with_one_twin(revisions, tmp_path, capsys):
    found = probes.run_probes(
        ["bert-base-uncased@step1000", "bert-base-uncased@step2000"],
        offline=True,
        tasks=("pos",),
        probes=("linear",),
        evidence="none",
        limit=30,
        cache_dir=tmp_path / "c",
        output=tmp_path / "r",
        device="cpu",
    )
    named = [(result.model.name, result.model.revision) for result in found]
    assert named == [
        ("bert-base-uncased@step1000", "1" * 40),
        ("bert-base-uncased@step2000", "2" * 40),
        ("random:bert-base-uncased", "1" * 40),
    ]
    tables = sorted((tmp_path / "r").glob("bert-base-uncased-step?000-*/sample/layers.md"))
    assert len(tables) == 2
    # Each has the twin among its baselines, and the twin has no table of its own on the screen.
    assert all("random twin" in table.read_text() for table in tables)
    assert "random:bert-base-uncased · sample" not in capsys.readouterr().out


@pytest.mark.parametrize("offline", [["--offline"], []], ids=["offline", "no network"])
def test_without_network_and_cache_one_line_says_what_to_do(tmp_path, offline):
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
