"""Random twins in a run and in the tables of their models."""

import pandas as pd
import pytest
from tiny_runs import run

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


def test_a_run_that_stops_before_the_twin_keeps_earlier_scores_of_the_twin_in_the_table(
    tiny_bert, tmp_path, monkeypatch
):
    from probes.engines.local import LocalEngine

    settings = {"probes": ("linear",), "twins": 1}
    run(tiny_bert, tmp_path, tasks=("pos",), **settings)
    prepared = LocalEngine.prepared

    def stops_before_twin(self, run):
        if run.model.source.seed is not None:
            raise KeyboardInterrupt
        return prepared(self, run)

    monkeypatch.setattr(LocalEngine, "prepared", stops_before_twin)
    with pytest.raises(KeyboardInterrupt):
        run(tiny_bert, tmp_path, tasks=("depth",), **settings)
    (path,) = (tmp_path / "results").glob("tiny-bert-*/sample/layers.md")
    assert len([line for line in path.read_text().splitlines() if "random twin" in line]) == 1
