"""Stored results in a notebook: `probes.load_results`."""

import pandas as pd
import pytest
from board_by_hand import put
from corpus_records import geometry, store_record

import probes
from probes.boards.leaderboard_csv import write_leaderboard


@pytest.fixture
def folder(tmp_path):
    put(tmp_path, "m", "pos", 9)
    put(tmp_path, "other", "pos", 99)
    store_record(tmp_path, geometry([0.25, 0.5, 0.75]))
    return tmp_path


def test_what_is_loaded_is_what_is_stored(folder):
    found = probes.load_results(folder)
    assert {result.model.name for result in found} == {"m", "other"}
    assert [record.measurement for record in found.others] == ["geometry"]
    write_leaderboard(folder)
    stored = pd.read_csv(folder / "leaderboard.csv")
    assert list(found.frame) == list(stored)
    assert sorted(found.frame["score"]) == pytest.approx(sorted(stored["score"]))
    rows = found.rows
    anisotropy = rows[(rows["metric"] == "anisotropy") & (rows["split"] == "test")]
    assert anisotropy["value"].tolist() == [0.25, 0.5, 0.75]
    assert set(rows["measurement"]) == {"scores", "training_variance", "geometry"}
    scores = rows[(rows["measurement"] == "scores") & rows["baseline"].isna()]
    best = found.frame.set_index(["model", "layer"])["score"]
    of_test = scores[scores["split"] == "test"].set_index(["model", "layer"])["value"]
    assert of_test.to_dict() == pytest.approx(best.to_dict())


def test_patterns_name_folders(folder):
    found = probes.load_results(str(folder / "oth*"), folder / "m")
    assert {result.model.name for result in found} == {"m", "other"}
    assert {r.model.name for r in probes.load_results(folder / "m")} == {"m"}
    with pytest.raises(probes.UserError, match=r"x\*: there is no such folder"):
        probes.load_results(folder / "x*")
    (folder / "empty").mkdir()
    with pytest.raises(probes.UserError, match="empty: no results"):
        probes.load_results(folder / "empty")
