"""Damaged files and failing tasks: each costs as little as possible, and is named."""

import json

import pandas as pd
import pytest
from tiny_runs import run

from probes.common.errors import UserError
from probes.records.record import SCHEMA_VERSION

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("short_schedule")]


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


@pytest.mark.parametrize("damaged", [1, 2])
def test_damaged_predictions_cost_only_their_comparison(tiny_bert, tmp_path, capsys, damaged):
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


def test_a_task_without_examples_does_not_stop_the_others(tiny_bert, tmp_path, capsys):
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
