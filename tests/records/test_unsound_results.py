"""Results that are valid JSON and inconsistent: they are named and left out, the others are used."""

import json

import numpy as np
import pytest
from board_by_hand import put
from stored_replicates import of_all_layers

from probes.__main__ import main
from probes.common.errors import UserError
from probes.measurements.results import find_results, read_result
from probes.records.files import read_arrays


def changed(path, change):
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    return path


def layers(content):
    return content["payload"]["layers"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda r: layers(r).clear(), "layers"),
        (lambda r: layers(r)[0]["fits"].clear(), "fits"),
        (lambda r: layers(r)[1]["fits"][0]["dev"].clear(), "layer 1 has no accuracy"),
        (lambda r: layers(r)[0]["fits"][0]["test"].clear(), "layer 0 has no accuracy"),
        (lambda r: layers(r).reverse(), r"layers \[1, 0\]"),
        (lambda r: layers(r)[1].update(layer=2), "not those of the extent"),
        (lambda r: r["extent"].update({"2": 1}), "of a model of 1 layers"),
        (lambda r: r["extent"].update({"1": 0}), "of a model of 1 layers"),
        (lambda r: r["extent"].clear(), "extent"),
        (lambda r: layers(r)[0]["fits"][0]["test"].update(accuracy=float("nan")), "finite"),
        (lambda r: r["model"].update(n_layers=10**7), "n_layers"),
        (lambda r: r["model"].update(parameters=10**400), "parameters"),
        (lambda r: r.update(quick=False), "quick: Extra inputs"),
        (lambda r: r.update(task=None), "a task without a probe, or a probe without a task"),
        (lambda r: r["payload"]["examples"]["labels"].update(x=[]), "labels"),
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
    with pytest.raises(UserError, match=r"\.npz: .*delete"):
        of_all_layers(read_result(path), path)
