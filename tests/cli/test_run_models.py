"""Sources of models and their twins, and how long they stay in memory."""

import shutil
import subprocess
import sys
import weakref
from pathlib import Path

import pandas as pd
import pytest
from safetensors.torch import load_file, save_file
from tiny_runs import run

from probes.boards.shown_together import all_groups
from probes.cli.run import run_models
from probes.data.find import find_corpus
from probes.extraction.models.loading import load_encoder
from probes.frames.joined_results import find_results
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

    monkeypatch.setattr("probes.extraction.models.loading.load_encoder", loading)
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
    usual = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "OMP_NUM_THREADS": "1"}
    line = [sys.executable, str(ROOT / "run_probes.py"), *map(str, arguments)]
    settings = {"capture_output": True, "text": True, "check": False, "cwd": ROOT}
    return subprocess.run(line, env={**usual, **environment}, **settings)


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
    first, second = "bert-base-uncased@step1000", "bert-base-uncased@step2000"
    settings = {"offline": True, "tasks": "pos", "probes": "linear", "limit": 30, "twins": 1}
    results = run(first, tmp_path, beside=[second], **settings)
    named = [(result.model.name, result.model.revision) for result in results.results]
    assert named == [
        ("bert-base-uncased@step1000", "1" * 40),
        ("bert-base-uncased@step2000", "2" * 40),
        ("random:bert-base-uncased", "1" * 40),
    ]
    tables = sorted((tmp_path / "results").glob("bert-base-uncased-step?000-*/sample/layers.md"))
    assert len(tables) == 2
    # Each has the twin among its baselines, and the twin has no table of its own on the screen.
    assert all("random twin" in table.read_text() for table in tables)
    assert "random:bert-base-uncased · sample" not in capsys.readouterr().out


def test_without_network_and_cache_one_line_says_what_to_do(tmp_path):
    places = {"HF_HUB_CACHE": str(tmp_path), "HF_ENDPOINT": "http://127.0.0.1:9"}
    done = command("--model", "bert-base-uncased", **places)
    assert done.returncode == 2
    (line,) = done.stderr.strip().splitlines()
    assert "--model a local folder, or the packaged model all-MiniLM-L6-v2" in line


def test_twins_2_runs_two_different_twins(tiny_bert, tmp_path):
    found = run(tiny_bert, tmp_path, tasks="depth", probes="linear", limit=30, twins=2)
    assert [r.model.random_seed for r in found.results] == [None, 0, 1]
    assert found.results[1].headline != found.results[2].headline
    (table,) = (tmp_path / "results").glob("tiny-bert-*/sample/layers.md")
    assert "random twin 1" in table.read_text()
    board = pd.read_csv(tmp_path / "results" / "leaderboard.csv")
    assert set(board.random_seed.dropna()) == {0, 1}
    assert board[board.model == "tiny-bert"].random_seed.isna().all()


@pytest.fixture
def checkpoints(tiny_bert, tmp_path):
    """Two checkpoints of one model, and one of a model of another configuration."""
    folders = [tmp_path / name for name in ("early", "late", "other")]
    for times, folder in enumerate(folders, start=1):
        shutil.copytree(tiny_bert, folder)
        weights = folder / "model.safetensors"
        scaled = {name: times * x for name, x in load_file(weights).items()}
        save_file(scaled, weights, metadata={"format": "pt"})
    config = folders[2] / "config.json"
    another = config.read_text().replace('"initializer_range": 0.02', '"initializer_range": 0.5')
    config.write_text(another)
    return folders


@pytest.mark.slow
def test_checkpoints_of_one_configuration_share_a_twin_which_is_measured_once(
    checkpoints, tmp_path, capsys
):
    settings = {"tasks": ("depth",), "probes": ("linear",), "twins": 1}
    early, *beside = checkpoints
    found = run(early, tmp_path, beside=beside, **settings)
    twins = {"early": "random:early", "late": "random:early", "other": "random:other"}
    models = [result.model.name for result in found.results]
    assert models == ["early", "late", "other", "random:early", "random:other"]
    # At the best layer on test: a floor is what can be reached without training.
    scores = {x.model.name: x.scores_of(max(x.layers, key=x.score)) for x in found.results}
    assert abs(scores["random:early"]["nspr"] - scores["random:other"]["nspr"]) > 0.001
    # Beside both in their tables and on the page; once among the models that are compared.
    stored = find_results(tmp_path / "results")
    ((shown,), _) = all_groups(stored)
    for model, twin in twins.items():
        (table,) = (tmp_path / "results").glob(f"{model}-*/sample/layers.md")
        score = f"{scores[twin]['nspr']:.3f}".removeprefix("0")
        assert f"| random twin | {score} |" in table.read_text()
        assert shown.units[0].floored[model].baselines["random twin"] == scores[twin]
    assert len(stored) == len(shown.models) == 5
    compared = capsys.readouterr().out.partition("models at their best layers")[2]
    assert [compared.count(f" {model} ") for model in models] == [1] * 5
    # The order of the models decides only what the twin is called.
    again = run(checkpoints[1], tmp_path / "again", beside=[early], **settings)
    assert [x.model.name for x in again.results] == ["late", "early", "random:late"]
    assert again.results[2].model.digest == found.results[3].model.digest
    assert again.results[2].headline == found.results[3].headline
