"""`export --sums`, results that are copied into one another, and published results."""

import json
import shutil
from pathlib import Path

import pytest
from board_by_hand import put

import probes
from probes.__main__ import main
from probes.frames.frame import load
from probes.frames.joined_results import find_results, read_result, results_with_evidence


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
        for name in ("rows", "key", "provenance"):
            assert getattr(there, name) == getattr(result, name)
        assert there.evidence_rows("training_variance") == result.evidence_rows("training_variance")
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
        return sorted((x.model.name, x.task.name) for x in loaded.results), ranked.out

    whole = shown(copy)
    assert whole[0] == [("m", "pos"), ("m", "srl"), ("other", "pos"), ("third", "pos")]
    assert shown(copy, results) == whole
    shutil.copytree(results, copy / "theirs")
    assert shown(copy) == whole
    shutil.copytree(copy, results, dirs_exist_ok=True)
    assert shown(results) == whole


@pytest.fixture
def mixed_results(tmp_path):
    """Models of the user's own, and published ones, of which one is a model that both have."""
    results = tmp_path / "results"
    for model in ("own", "both"):
        put(results, model, "pos", 40, predictions=False)
    for model in ("both", "shipped"):
        put(results / "published", model, "pos", 4)
    return results


def models(found):
    return sorted(result.model.name for result in found.values())


def scores(found):
    return {r.model.name: r.scores_of(r.layers[-1])["accuracy"] for r in found.values()}


def test_a_search_leaves_published_results_alone(mixed_results, monkeypatch):
    assert models(find_results(mixed_results)) == ["both", "own"]
    assert models(find_results(mixed_results.parent)) == ["both", "own"]
    monkeypatch.chdir(mixed_results)
    assert models(find_results(Path())) == ["both", "own"]


@pytest.mark.parametrize("own_first", [True, False])
@pytest.mark.parametrize("fields", [{}, {"p_best": False}])
def test_own_results_come_before_published_ones_of_the_same_key(
    mixed_results, capsys, own_first, fields
):
    put(mixed_results, "both", "pos", 40, predictions=False, **fields)
    named = [mixed_results, mixed_results / "published"]
    found = results_with_evidence(load(*named if own_first else reversed(named)).records())
    assert scores(found) == {"own": 0.9, "both": 0.9, "shipped": 0.99}
    # The scores, and the evidence of the published ones.
    said = "left out 2 duplicate results with other content; -v says which\n"
    assert capsys.readouterr().err == said


def test_compare_finds_published_models_where_they_are_named(mixed_results, capsys):
    here = ["--results", str(mixed_results)]
    assert main(["compare", "own", "shipped", *here]) == 2
    assert f"shipped: no results in {mixed_results}, or name {mixed_results}/published." in (
        capsys.readouterr().err
    )
    assert main(["compare", "own", str(mixed_results / "published" / "shipped"), *here]) == 0
    # Its measurement is the user's too, which is taken.
    assert main(["compare", "own", str(mixed_results / "published" / "both"), *here]) == 0
    assert "90.0" in capsys.readouterr().out


@pytest.mark.parametrize(
    "command", [("leaderboard",), ("report",), ("show",), ("claims",), ("figure", "curves")]
)
def test_where_there_are_none_but_published_ones_these_are_named(tmp_path, capsys, command):
    put(tmp_path / "published", "shipped", "pos", 4)
    rest = ["-o", str(tmp_path / "x.pdf")] if command[0] == "figure" else []
    assert main([*command, str(tmp_path), *rest]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith(f", or name {tmp_path}/published.")


def test_the_results_that_ship_are_where_the_docs_say():
    shipped = Path(__file__).parents[3] / "results" / "published"
    found = [json.loads(p.read_text()) for p in shipped.glob("*/ewt/pos-*.json")]
    assert {"all-MiniLM-L6-v2", "random:all-MiniLM-L6-v2"} <= {x["model"]["name"] for x in found}
