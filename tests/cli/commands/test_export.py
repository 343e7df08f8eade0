"""`export --sums`, and results that are copied into one another."""

import io
import json
import re
import shutil
import zipfile

import numpy as np
import pytest
from board_by_hand import put

import probes
from probes.__main__ import main
from probes.measurements.frame import load
from probes.measurements.joined_results import find_results, read_result
from probes.records.record_files import read_arrays, write_record


@pytest.fixture
def results(tmp_path):
    folder = tmp_path / "results"
    put(folder, "m", "pos", 9)
    put(folder, "m", "srl", 9)
    put(folder, "other", "pos", 99)
    return folder


def files(folder):
    found = folder.rglob("*")
    return {str(x.relative_to(folder)): x.read_bytes() for x in found if x.is_file()}


def test_a_folder_is_written_that_has_the_records_and_no_labels(results, tmp_path, capsys):
    assert main(["export", str(results), str(tmp_path / "shared"), "--sums"]) == 0
    assert f"wrote   {tmp_path / 'shared'}: 6 records" in capsys.readouterr().err
    ours, theirs = files(results), files(tmp_path / "shared")
    assert ours.keys() == theirs.keys()
    for path, result in find_results(results).items():
        there = read_result(tmp_path / "shared" / path.relative_to(results))
        assert (there.rows, there.key, there.provenance) == (
            result.rows,
            result.key,
            result.provenance,
        )
        assert there.found("training_variance") == result.found("training_variance")
    (tmp_path / "again").mkdir()  # an empty folder will do
    assert main(["export", str(results), str(tmp_path / "again"), "--sums"]) == 0
    assert files(tmp_path / "again") == theirs


def test_a_folder_with_files_and_a_missing_flag_are_refused(results, tmp_path, capsys):
    assert main(["export", str(results), str(tmp_path / "shared")]) == 2
    assert capsys.readouterr().err == (
        "error: --sums is missing. To share results with labels and predictions, copy their folder.\n"
    )
    for place in (results, results / "leaderboard.csv"):
        before = files(results)
        (results / "leaderboard.csv").write_text("x")
        assert main(["export", str(results), str(place), "--sums"]) == 2
        said = f"error: {place} exists and is not an empty folder; name another folder.\n"
        assert capsys.readouterr().err == said
        assert files(results) == {**before, "leaderboard.csv": b"x"}


def test_published_results_are_not_exported(results, tmp_path):
    shutil.copytree(results, results / "published")
    assert main(["export", str(results), str(tmp_path / "shared"), "--sums"]) == 0
    assert len(load(tmp_path / "shared").records()) == 6


def test_two_results_of_one_name_are_not_exported_together(results, tmp_path, capsys):
    path, result = next(iter(find_results(results).items()))
    twin = result.model_copy(update={"model": result.model.model_copy(update={"name": "x"})})
    again = results / "again" / "/".join(path.parts[-3:])
    write_record(again, twin, read_arrays(path))
    assert main(["export", str(results), str(tmp_path / "shared"), "--sums"]) == 2
    assert "; export their folders one by one." in capsys.readouterr().err
    assert not (tmp_path / "shared").exists()


def archive(**arrays):
    content = io.BytesIO()
    np.savez(content, **arrays)
    return content.getvalue()


def lying_archive(name, shape):
    """An array whose header names another shape than there are numbers."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as opened, opened.open(f"{name}.npy", "w") as file:
        np.lib.format.write_array_header_1_0(
            file, {"descr": "<f8", "fortran_order": False, "shape": shape}
        )
        file.write(bytes(80))
    return content.getvalue()


def scored(content, value, split):
    """Changes the score of layer 0."""
    rows = content["rows"]
    place = [*zip(rows["metric"], rows["layer"], rows["split"], strict=True)]
    rows["value"][place.index(("accuracy", 0, split))] = value


def of_rule(content, value):
    """Changes the score of a rule without vectors."""
    rows = content["rows"]
    rows["value"][rows["layer"].index(None)] = value


UNUSABLE = {
    "no rows": (lambda c, a: c.update(rows={}), "layer 0 has no accuracy on dev"),
    "impossible": (lambda c, a: scored(c, 1e308, "test"), "accuracy of layer 0 is"),
    "negative": (lambda c, a: scored(c, -0.1, "dev"), "accuracy of layer 0 is -0.1"),
    "of a rule": (lambda c, a: of_rule(c, 2.0), "accuracy is 2"),
    "no zip": (lambda c, a: b"nothing", "not readable"),
    "half": (lambda c, a: a[: len(a) // 2], "not readable"),
    "fewer": (lambda c, a: archive(gold=np.zeros(3)), "not readable (it lacks clusters"),
    "lying": (lambda c, a: lying_archive("gold", (10**13,)), "not readable"),
    "objects": (lambda c, a: archive(gold=np.array([{}], dtype=object)), "not readable"),
}


@pytest.mark.parametrize("kind", UNUSABLE)
def test_a_record_that_cannot_be_used_is_left_out_by_name(kind, results, tmp_path, capsys):
    change, said = UNUSABLE[kind]
    path = next(path for path, r in find_results(results).items() if r.task.name == "srl")
    content, beside = json.loads(path.read_text()), path.with_suffix(".npz")
    arrays = change(content, beside.read_bytes())
    path.write_text(json.dumps(content))
    beside.write_bytes(arrays or beside.read_bytes())
    assert main(["export", str(results), str(tmp_path / "shared"), "--sums"]) == 0
    error = capsys.readouterr().err
    assert f"left out {path.with_suffix('')}" in error
    assert said in error
    assert "5 records" in error
    there = load(tmp_path / "shared").records()
    assert path.name not in {each.name for each in there}
    assert len(there) == 5


def test_the_same_record_in_several_folders_counts_once(results, tmp_path, capsys):
    """Copies beside a folder and within it, one of them with another model."""
    copy = tmp_path / "copy"
    shutil.copytree(results, copy)
    put(copy, "third", "pos", 49)

    def shown(*places):
        loaded = probes.load_results(*places)
        capsys.readouterr()
        assert main(["leaderboard", *map(str, places), "--format", "csv"]) == 0
        ranked = capsys.readouterr()
        assert "left out" not in ranked.err
        assert main(["report", *map(str, places), "-o", str(tmp_path / "page.html")]) == 0
        rows = re.findall(r"<tr.*?</tr>", (tmp_path / "page.html").read_text(), re.DOTALL)
        return sorted((x.model.name, x.task.name) for x in loaded), ranked.out, rows

    whole = shown(copy)
    assert len(whole[2]) > 20
    assert whole[0] == [("m", "pos"), ("m", "srl"), ("other", "pos"), ("third", "pos")]
    assert shown(copy, results) == whole
    shutil.copytree(results, copy / "theirs")
    assert shown(copy) == whole
    shutil.copytree(copy, results, dirs_exist_ok=True)
    assert shown(results) == whole


def test_evidence_that_is_copied_beside_its_scores_joins_them(results, tmp_path):
    (scores,) = [path for path, r in find_results(results).items() if r.model.name == "other"]
    moved = tmp_path / "scores" / "other"
    shutil.copytree(scores.parent, moved / "c")
    for path in (moved / "c").glob("*-training_variance-*"):
        path.unlink()
    there = moved / "c" / scores.name
    assert read_result(there).evidence == {}
    for path in (scores, scores.with_suffix(".npz")):
        path.unlink()
    shutil.copytree(scores.parent, moved / "c", dirs_exist_ok=True)
    assert read_result(there).row("training_variance", "training_sd").n == 4
