"""Results with sums instead of predictions, and results that are inconsistent."""

import numpy as np
import pytest
from board_by_hand import N, edited, place_of, put
from tiny_runs import of_all_layers

from probes.__main__ import main
from probes.common.errors import UserError
from probes.frames.joined_results import find_results, read_result
from probes.records.record_files import read_arrays
from probes.statistics.bootstrap import resample


@pytest.fixture
def results(tmp_path):
    folder = tmp_path / "results"
    for model, wrong in (("first", 20), ("second", 40), ("last", 80)):
        put(folder, model, "pos", wrong)
    return folder


def exported(folder, target):
    assert main(["export", str(folder), str(target), "--sums"]) == 0
    return target


@pytest.fixture
def shared(results, tmp_path):
    return exported(results, tmp_path / "shared")


def test_sums_by_hand(shared):
    (path,) = shared.glob("first*/c/*-scores-*.json")
    arrays = read_arrays(path)
    # By layer and sentence, of one word each: right, and 1.
    wrong = np.array([[N // 2 + 100], [20]])
    assert (arrays["sums"][:, :, 0] == (np.arange(N) >= wrong)).all()
    assert (arrays["sums"][:, :, 1] == 1).all()
    assert arrays.keys() == {"layers", "sums"}
    draws = resample(N)
    found = of_all_layers(read_result(path))
    assert found.values[1] == pytest.approx(draws[:, 20:].sum(1) / N)


def test_resamples_of_documents_are_the_same_from_sums_and_from_predictions(tmp_path):
    documents = np.arange(N) % 37 % 29  # of 10 to 22 sentences
    put(tmp_path / "results", "m", "pos", 20, documents=documents)
    exported(tmp_path / "results", tmp_path / "shared")
    found = []
    for folder in ("results", "shared"):
        (path,) = (tmp_path / folder).glob("m*/c/*-scores-*.json")
        found.append(of_all_layers(read_result(path)))
    assert set(np.load(path.with_suffix(".npz"))) == {"layers", "sums"}
    for what in ("scores", "values", "influence", "noise", "training"):
        np.testing.assert_array_equal(*(getattr(each, what) for each in found))
    # Words that are right, and words, by document and resample; the last layer errs on the first 20.
    right, n = (np.bincount(documents[first:], minlength=29) for first in (20, 0))
    draws, score = resample(29), 1 - 20 / N
    assert found[1].values[1] == pytest.approx(draws @ right / (draws @ n))
    assert found[1].influence[1] == pytest.approx((right - score * n) / N, abs=1e-6)
    assert found[1].training.tolist() == [0.01**2] * 2
    assert found[1].noise is not None


@pytest.mark.parametrize(
    "command",
    [
        ["compare", "first", "second", "last", "--results", "{}", "--format", "md"],
        ["leaderboard", "{}", "--format", "md"],
        ["leaderboard", "{}", "--format", "csv"],
    ],
    ids=["compare", "leaderboard", "csv"],
)
def test_models_are_compared_as_from_predictions(results, shared, capsys, command):
    capsys.readouterr()
    said = []
    for folder in (results, shared):
        assert main([part.format(folder) for part in command]) == 0
        said.append(capsys.readouterr().out)
    assert said[0] == said[1]
    # Not for want of tests.
    assert "intervals do not overlap" not in said[0]
    if command[0] == "compare":
        assert "| .002 |" in said[0]


def test_what_was_shared_can_be_passed_on(shared, tmp_path):
    again = exported(shared, tmp_path / "again")
    first, second = (
        {x.relative_to(folder): x.read_bytes() for x in folder.rglob("*.*")}
        for folder in (shared, again)
    )
    assert first == second


def renamed(content, *place):
    """Without the row at a place, for which there is one of another metric."""
    content["rows"]["metric"][place_of(content, *place)] = "nspr"


def scored(content, value, *place):
    content["rows"]["value"][place_of(content, *place)] = value


def in_place(content, column, value):
    """Give the test score of layer 0 another value in a column."""
    rows = content["rows"]
    rows.setdefault(column, [None] * len(rows["metric"]))
    rows[column][place_of(content, "accuracy", 0)] = value


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
        (lambda r: r["encoding"].update(unknown_words=-1), "encoding.unknown_words is -1"),
        (lambda r: r["encoding"].update(batch_tokens=2**63), "encoding.batch_tokens is 9"),
        (lambda r: r["corpus"].update(limit=0), "corpus.limit is 0"),
        (lambda r: r["model"].update(random_seed=-1), "model.random_seed is -1"),
        (lambda r: r["task"].update(version=-1), "task.version is -1"),
        (lambda r: r["probe"].update(hidden=-1), "probe.hidden is -1"),
        (lambda r: r["behind"].update({"9": 0.5}), "behind has layer 9 of 1"),
        (lambda r: r["extent"].update({"1": 2}), "its rows have fits"),
        (lambda r: r.update(facts=r["facts"] | {"unit": 1}), "unit is 1"),
        (lambda r: in_place(r, "low", 1.0), "accuracy of layer 0 is 0.25, between 1 and 0.28"),
        (lambda r: in_place(r, "high", 0.23), "accuracy of layer 0 is 0.25, between 0.22 and 0.23"),
        (lambda r: in_place(r, "p", 1.5), "has n None, p 1.5, of 1 layers"),
        (lambda r: in_place(r, "n", -1), "has n -1"),
    ],
)
def test_an_inconsistent_result_is_left_out_and_named(tmp_path, capsys, change, said):
    put(tmp_path, "sound", "pos", 40)
    path = edited(put(tmp_path, "odd", "pos", 9), change)
    with pytest.raises(UserError, match=f"not a readable result .*{said}"):
        read_result(path)
    assert [r.model.name for r in find_results(tmp_path).values()] == ["sound"]
    capsys.readouterr()
    for command in ("leaderboard", "claims", "report", "show"):
        assert main([command, str(tmp_path)]) == 0
        assert f"left out {path}: not a readable result" in capsys.readouterr().err


OF_SUMS = [
    lambda a: a.update(sums=a["sums"] + 1),
    lambda a: a.update(sums=a["sums"][:1]),
    lambda a: a.update(sums=a["sums"][:, 1:]),
    lambda a: a.update(sums=a["sums"][:, :, 0]),
    lambda a: a.update(sums=a["sums"][:, :, :1]),
    lambda a: a.update(sums=a["sums"].astype(str)),
    lambda a: a.update(sums=np.array(3.0)),
    lambda a: a.update(layers=a["layers"] + 1),
    lambda a: a.pop("layers"),
]
OF_PREDICTIONS = [
    lambda a: a.update(predicted=a["predicted"][0, 0]),
    lambda a: a.update(predicted=a["predicted"][:1]),
    lambda a: a.update(gold=a["gold"][:9]),
    lambda a: a.update(sentence=a["sentence"].astype(str)),
    lambda a: a.update(gold=a["gold"] + 30000),
]


@pytest.mark.parametrize(
    ("folder", "change"),
    [*(("shared", x) for x in OF_SUMS), *(("results", x) for x in OF_PREDICTIONS)],
)
def test_inconsistent_arrays_are_named(results, shared, folder, change):
    (path,) = {"shared": shared, "results": results}[folder].glob("first*/c/*-scores-*.json")
    arrays = dict(read_arrays(path))
    change(arrays)
    np.savez(path.with_suffix(".npz"), **arrays)
    with pytest.raises(UserError, match=r"\.npz: .*[Dd]elete"):
        of_all_layers(read_result(path))
