"""Results that are valid JSON and inconsistent: they are named and left out, the others are used."""

import json

import numpy as np
import pytest
from board_by_hand import put

from probes.__main__ import main
from probes.common.errors import UserError
from probes.records.files import read_arrays, read_result, read_results
from probes.statistics.resampled import resampled_scores


def changed(path, change):
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    return path


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda r: r["layers"].clear(), "layers"),
        (lambda r: r["layers"][0]["cells"].clear(), "cells"),
        (lambda r: r["layers"][1]["cells"][0]["dev"].clear(), "layer 1 has no accuracy"),
        (lambda r: r["layers"][0]["cells"][0]["test"].clear(), "layer 0 has no accuracy"),
        (lambda r: r["layers"].reverse(), r"layers \[1, 0\] of a model of 1"),
        (lambda r: r["layers"][1].update(layer=2), r"layers \[0, 2\] of a model of 1"),
        (lambda r: r["layers"][0]["cells"][0]["test"].update(accuracy=float("nan")), "finite"),
        (lambda r: r["model"].update(n_layers=10**7), "n_layers"),
        (lambda r: r["model"].update(parameters=10**400), "parameters"),
        (lambda r: r["examples"]["labels"].update(x=[]), "labels"),
    ],
)
def test_an_inconsistent_result_is_left_out_and_named(tmp_path, capsys, change, said):
    put(tmp_path, "sound", "pos", 40)
    path = changed(put(tmp_path, "odd", "pos", 9), change)
    with pytest.raises(UserError, match=f"not a readable result .*{said}"):
        read_result(path)
    assert [result.model.name for result in read_results(tmp_path)] == ["sound"]
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
    with pytest.raises(UserError, match=r"\.npz: .*delete"):
        resampled_scores(read_result(path), path)
