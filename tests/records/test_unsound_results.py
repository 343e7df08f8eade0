"""Results that are valid JSON and inconsistent: they are named and left out, the others are used."""

import json

import numpy as np
import pytest
from board_by_hand import put
from stored_replicates import of_all_layers

from probes.__main__ import main
from probes.common.errors import UserError
from probes.measurements.joined_results import find_results, read_result
from probes.records.record_files import read_arrays


def changed(path, change):
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    return path


def row(content, metric, layer, split="test"):
    """The place of a row of the scores."""
    rows = content["rows"]
    splits = rows.get("split") or ["test"] * len(rows["metric"])
    return [*zip(rows["metric"], rows["layer"], splits, strict=True)].index((metric, layer, split))


def renamed(content, *place):
    """Without the row at a place, for which there is one of another metric."""
    content["rows"]["metric"][row(content, *place)] = "nspr"


def scored(content, value, *place):
    content["rows"]["value"][row(content, *place)] = value


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda r: r.pop("rows"), "layer 0 has no accuracy"),
        (lambda r: r["rows"]["value"].pop(), "columns of different lengths"),
        (lambda r: renamed(r, "accuracy", 1, "dev"), "layer 1 has no accuracy on dev"),
        (lambda r: renamed(r, "accuracy", 0), "layer 0 has no accuracy on test"),
        (lambda r: r.update(extent={"1": 1, "0": 1}), r"layers \[1, 0\]"),
        (lambda r: r["extent"].update({"2": 1}), "of a model of 1 layers"),
        (lambda r: r["extent"].update({"1": 0}), "of a model of 1 layers"),
        (lambda r: r["extent"].clear(), "extent"),
        (lambda r: scored(r, float("nan"), "accuracy", 0), "finite"),
        (lambda r: r["model"].update(n_layers=10**7), "n_layers"),
        (lambda r: r["model"].update(parameters=10**400), "parameters"),
        (lambda r: r.update(quick=False), "quick: Extra inputs"),
        (lambda r: r.update(task=None), "a task without a probe, or a probe without a task"),
        (lambda r: r["examples"]["labels"].update(x=[]), "labels"),
    ],
)
def test_an_inconsistent_result_is_left_out_and_named(tmp_path, capsys, change, said):
    put(tmp_path, "sound", "pos", 40)
    path = changed(put(tmp_path, "odd", "pos", 9), change)
    with pytest.raises(UserError, match=f"not a readable result .*{said}"):
        read_result(path)
    assert [r.model.name for r in find_results(tmp_path).values()] == ["sound"]
    capsys.readouterr()
    for command in ("leaderboard", "claims", "report", "show"):
        assert main([command, str(tmp_path)]) == 0
        assert f"left out {path}: not a readable result" in capsys.readouterr().err


def test_a_name_that_cannot_be_printed_is_escaped(tmp_path, capsys):
    put(tmp_path, "a\x1b[31m\nb", "pos", 9)
    assert main(["claims", str(tmp_path)]) == 0
    assert main(["leaderboard", str(tmp_path), "--format", "md"]) == 0
    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert r"a\\x1b[31m\\nb" in said


@pytest.mark.parametrize(
    "change",
    [
        lambda a: a.update(predicted=a["predicted"][0, 0]),
        lambda a: a.update(predicted=a["predicted"][:1]),
        lambda a: a.update(gold=a["gold"][:9]),
        lambda a: a.update(sentence=a["sentence"].astype(str)),
        lambda a: a.update(gold=a["gold"] + 30000),
    ],
)
def test_inconsistent_predictions_are_named(tmp_path, change):
    path = put(tmp_path, "odd", "pos", 9)
    arrays = dict(read_arrays(path))
    change(arrays)
    np.savez(path.with_suffix(".npz"), **arrays)
    with pytest.raises(UserError, match=r"\.npz: .*[Dd]elete"):
        of_all_layers(read_result(path), path)
