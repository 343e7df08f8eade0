"""Results with sums instead of predictions: what they hold, and what can be computed from them."""

import zipfile

import numpy as np
import pytest
from board_by_hand import N, put
from stored_replicates import of_all_layers

from probes.__main__ import main
from probes.common.errors import UserError
from probes.measurements.joined_results import find_results, read_result
from probes.measurements.resampled import _named
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
    found = of_all_layers(read_result(path), path)
    assert found.values[1] == pytest.approx(draws[:, 20:].sum(1) / N)


def test_resamples_of_documents_are_the_same_from_sums_and_from_predictions(tmp_path):
    documents = np.arange(N) % 37 % 29  # of 10 to 22 sentences
    put(tmp_path / "results", "m", "pos", 20, documents=documents)
    exported(tmp_path / "results", tmp_path / "shared")
    found = []
    for folder in ("results", "shared"):
        (path,) = (tmp_path / folder).glob("m*/c/*-scores-*.json")
        found.append(of_all_layers(read_result(path), path))
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
        assert "| .001 |" in said[0]


def test_predictions_and_labels_are_not_in_the_folder(shared):
    held = [zipfile.ZipFile(path).namelist() for path in shared.rglob("*.npz")]
    assert len(held) == 3
    assert {name for names in held for name in names} == {
        "layers.npy",
        "sums.npy",
    }


def test_what_was_shared_can_be_passed_on(shared, tmp_path):
    again = exported(shared, tmp_path / "again")
    first, second = (
        {x.relative_to(folder): x.read_bytes() for x in folder.rglob("*.*")}
        for folder in (shared, again)
    )
    assert first == second


@pytest.mark.parametrize(
    "change",
    [
        lambda a: a.update(sums=a["sums"] + 1),
        lambda a: a.update(sums=a["sums"][:1]),
        lambda a: a.update(sums=a["sums"][:, 1:]),
        lambda a: a.update(sums=a["sums"][:, :, 0]),
        lambda a: a.update(sums=a["sums"][:, :, :1]),
        lambda a: a.update(sums=a["sums"].astype(str)),
        lambda a: a.update(sums=np.array(3.0)),
        lambda a: a.update(layers=a["layers"] + 1),
        lambda a: a.pop("layers"),
    ],
)
def test_inconsistent_sums_are_named(shared, change):
    (path,) = shared.glob("first*/c/*-scores-*.json")
    arrays = dict(read_arrays(path))
    change(arrays)
    np.savez(path.with_suffix(".npz"), **arrays)
    with pytest.raises(UserError, match=r"\.npz: .*[Dd]elete"):
        of_all_layers(find_results(shared)[path], path)


def test_a_command_is_shared_without_the_folders_of_local_paths():
    command = "p --model /home/me/m org/x --corpus '../my data/c' --output=~/r 'vectors:/a b/y.npz'"
    assert _named(command) == "p --model m org/x --corpus c --output=r vectors:y.npz"
