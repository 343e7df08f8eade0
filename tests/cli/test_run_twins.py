"""Random twins in a run and in the tables of their models."""

import shutil

import pandas as pd
import pytest
from safetensors.torch import load_file, save_file
from tiny_runs import run

from probes.boards.groups import group
from probes.measurements.joined_results import find_results

pytestmark = pytest.mark.usefixtures("short_schedule")


def test_twins_2_runs_two_different_twins(tiny_bert, tmp_path):
    settings = {"tasks": ("depth",), "probes": ("linear",)}
    found = run(tiny_bert, tmp_path, twins=2, **settings)
    assert [r.model.random_seed for r in found] == [None, 0, 1]
    assert found.results[1].headline != found.results[2].headline
    assert (
        "random twin 1"
        in next((tmp_path / "results").glob("tiny-bert-*/sample/layers.md")).read_text()
    )
    board = pd.read_csv(tmp_path / "results" / "leaderboard.csv")
    assert set(board.random_seed.dropna()) == {0, 1}
    assert board[board.model == "tiny-bert"].random_seed.isna().all()


def test_a_later_run_of_another_task_keeps_the_scores_of_the_twin_in_the_table(tiny_bert, tmp_path):
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
    models = [result.model.name for result in found]
    assert models == ["early", "late", "other", "random:early", "random:other"]
    # At the best layer on test: a floor is what can be reached without training.
    scores = {x.model.name: x.scores_of(max(x.layers, key=x.score)) for x in found}
    assert abs(scores["random:early"]["nspr"] - scores["random:other"]["nspr"]) > 0.001
    # Beside both in their tables and on the page; once among the models that are compared.
    stored = find_results(tmp_path / "results")
    ((shown,), _) = group(stored)
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
    assert [x.model.name for x in again] == ["late", "early", "random:late"]
    assert again.results[2].model.digest == found.results[3].model.digest
    assert again.results[2].headline == found.results[3].headline
