"""Stored results in a notebook: `probes.load_results`."""

import re

import numpy as np
import pandas as pd
import pytest
from board_by_hand import put
from corpus_records import geometry, store_record

import probes
from probes.__main__ import main
from probes.boards.leaderboard_csv import write_leaderboard
from probes.records.header import PlugIn


@pytest.fixture
def stored_results(tmp_path):
    put(tmp_path, "m", "pos", 9)
    put(tmp_path, "other", "pos", 99)
    store_record(tmp_path, geometry([0.25, 0.5, 0.75]))
    return tmp_path


def test_what_is_loaded_is_what_is_stored(stored_results):
    found = probes.load_results(stored_results)
    assert {result.model.name for result in found.results} == {"m", "other"}
    assert [record.measurement for record in found.others] == ["geometry"]
    write_leaderboard(stored_results)
    stored = pd.read_csv(stored_results / "leaderboard.csv")
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


def test_results_are_by_task(tmp_path):
    for model, task in (("m", "pos"), ("m", "chunking"), ("other", "pos")):
        put(tmp_path, model, task, 9)
    found = probes.load_results(tmp_path)
    assert [*found] == ["pos", "chunking"]
    assert (len(found), len(found.results)) == (2, 3)
    assert ("pos" in found, "depth" in found, found.get("depth")) == (True, False, None)
    of_pos = found["pos"]
    assert {x.model.name: x.task.name for x in of_pos.results} == {"m": "pos", "other": "pos"}
    assert dict(found.items())["pos"] == of_pos == of_pos["pos"]
    assert of_pos.table(model="m").equals(found.table(model="m")[["pos"]])
    with pytest.raises(KeyError) as raised:
        found["poss"]
    assert isinstance(raised.value, probes.UserError)
    said = "poss: no results of this task. Did you mean 'pos'? Known: pos, chunking."
    assert str(raised.value) == said
    with pytest.raises(
        probes.UserError, match=r"^0: no results of this task. Known: pos, chunking"
    ):
        found[0]


def test_best_layers_are_those_chosen_on_dev(tmp_path):
    """The floor of `pos` is the rule, and that of `chunking` the random twin at its best layer."""
    rules = {"majority": np.arange(400) < 120}
    put(tmp_path, "m", "pos", 40, rules=rules)
    put(tmp_path, "m", "chunking", 20)
    put(tmp_path, "random:m", "chunking", 100, random_seed=0, model__digest="m None")
    found = probes.load_results(tmp_path)
    chosen = found.frame[found.frame["best"]].set_index(["model", "task"])
    best = found.best
    assert [*best] == [
        *("model", "corpus", "task", "probe", "layer", "score", "low", "high", "floor", "gain")
    ]
    assert best[["model", "task", "probe"]].values.tolist() == [
        ["m", "pos", "linear"],
        ["m", "chunking", "linear"],
    ]
    for row in best.itertuples():
        other = chosen.loc[row.model, row.task]
        for name in ("corpus", "layer", "score", "low", "high"):
            assert getattr(row, name) == other[name]
    assert best["score"].tolist() == pytest.approx([0.9, 0.95])
    assert best["floor"].tolist() == pytest.approx([0.3, 0.75])
    assert best["gain"].tolist() == pytest.approx([0.6, 0.2])
    alone = probes.load_results(tmp_path / "random*").best
    assert alone["model"].tolist() == ["random:m"]
    assert probes.Results().best.empty


def test_predictions_are_those_stored(stored_results):
    found = probes.load_results(stored_results)
    frame = found.predictions("pos", -1, model="other")
    assert frame["sentence"].tolist() == list(range(400))
    assert set(frame["gold"]) == {"a"}
    assert frame["predicted"].tolist() == ["b"] * 99 + ["a"] * 301
    assert set(frame["split"]) == {"test"}
    assert found["pos"].predictions(layer=1, model="other").equals(frame)
    with pytest.raises(probes.UserError, match="There are results of several; give model="):
        found.predictions("pos")
    with pytest.raises(probes.UserError, match=r"task='poss': no results\. Did you mean 'pos'"):
        found.predictions("poss")
    put(stored_results, "m", "pos", 9, model__digest="z")
    with pytest.raises(
        probes.UserError, match=r"pos: several results \(.*; load the folder of one"
    ):
        probes.load_results(stored_results).predictions("pos", model="m")
    path = put(stored_results / "bare", "m", "pos", 9, predictions=False)
    with pytest.raises(probes.UserError, match=rf"{path.name}: no predictions are stored"):
        probes.load_results(stored_results / "bare").predictions("pos")


def test_patterns_name_folders(stored_results):
    found = probes.load_results(str(stored_results / "oth*"), stored_results / "m")
    assert {result.model.name for result in found.results} == {"m", "other"}
    assert {r.model.name for r in probes.load_results(stored_results / "m").results} == {"m"}
    with pytest.raises(probes.UserError, match=r"x\*: there is no such folder"):
        probes.load_results(stored_results / "x*")
    (stored_results / "empty").mkdir()
    with pytest.raises(probes.UserError, match="empty: no results"):
        probes.load_results(stored_results / "empty")


def put_definition(folder, wrong, sha256, written, model="m", **fields):
    plug_in = PlugIn(kind="task", name="mine", source="x", distribution="", sha256=sha256 * 64)
    made = {"plug_ins": (plug_in,), "provenance": {"written": written}, **fields}
    return put(folder, model, "mine", wrong, **made)


@pytest.mark.parametrize(("first", "second"), ["ab", "ba"])
def test_a_task_counts_as_it_was_defined_last(tmp_path, capsys, first, second):
    """40 of 400 words are wrong by the newer definition, and 200 by the older, loaded or not."""
    put_definition(tmp_path, 200, first, "2026-01-01T00:00:00.5+00:00")
    put_definition(tmp_path, 200, first, "2026-01-01T00:00:01+00:00", "other", family="mlp")
    put_definition(tmp_path, 40, second, "2026-01-02T00:00:00+00:00")
    found = probes.load_results(tmp_path)
    said = capsys.readouterr().err
    # With the training variance of each.
    assert (
        "left out 4 records that this version would compute differently (another source of the task mine); "
        in said
    )
    assert found.table()["mine"].tolist() == pytest.approx([0.25, 0.9])
    rows = found.rows[(found.rows["metric"] == "accuracy") & (found.rows["split"] == "test")]
    means = rows[rows["layer"].notna()].pivot_table(index="layer", columns="task", values="value")
    assert means["mine"].tolist() == pytest.approx([0.25, 0.9])
    write_leaderboard(tmp_path)
    assert pd.read_csv(tmp_path / "leaderboard.csv")["score"].tolist() == pytest.approx([0.25, 0.9])
    for command in ("show", "leaderboard"):
        assert main([command, str(tmp_path), "--format", "md"]) == 0
        assert set(re.findall(r"90\.0|50\.0", capsys.readouterr().out)) == {"90.0"}
