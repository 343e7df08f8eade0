"""Results that ship in the folder that users write to: left alone unless they are named."""

import json
import re
from pathlib import Path

import pytest
from board_by_hand import put

from probes.__main__ import main
from probes.measurements.frame import load
from probes.measurements.joined_results import find_results, joined


@pytest.fixture
def folder(tmp_path):
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


def test_a_search_leaves_published_results_alone(folder, monkeypatch):
    assert models(find_results(folder)) == ["both", "own"]
    assert models(find_results(folder.parent)) == ["both", "own"]
    monkeypatch.chdir(folder)
    assert models(find_results(Path())) == ["both", "own"]


def test_they_are_read_where_they_are_named(folder, monkeypatch):
    assert models(find_results(folder / "published")) == ["both", "shipped"]
    assert models(find_results(folder / "published" / "shipped")) == ["shipped"]
    monkeypatch.chdir(folder / "published")
    assert models(find_results(Path())) == ["both", "shipped"]


def test_a_model_or_corpus_may_be_called_like_their_folder(tmp_path):
    put(tmp_path, "published", "pos", 4)
    put(tmp_path, "m", "srl", 4, corpus__name="published")
    assert models(find_results(tmp_path)) == ["m", "published"]


@pytest.mark.parametrize("own_first", [True, False])
@pytest.mark.parametrize("fields", [{}, {"p_best": False}])
def test_own_results_come_before_published_ones_of_the_same_key(folder, capsys, own_first, fields):
    put(folder, "both", "pos", 40, predictions=False, **fields)
    named = [folder, folder / "published"]
    found = joined(load(*named if own_first else reversed(named)).records())
    assert scores(found) == {"own": 0.9, "both": 0.9, "shipped": 0.99}
    # The scores, and the evidence of the published ones.
    assert (
        capsys.readouterr().err
        == "left out 2 duplicate results with other content; -v says which\n"
    )


def test_what_was_left_out_is_listed_for_those_who_ask(folder, capsys):
    command = ["leaderboard", str(folder), str(folder / "published"), "--format", "csv"]
    assert main(command) == 0
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert main([*command, "-v"]) == 0
    _, *lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2  # the scores and their evidence
    for line in lines:
        assert re.search(r"published/both/.*: .*results/both/.* has the same key", line)


@pytest.mark.parametrize(
    "command",
    [
        ("leaderboard", "{}", "--format", "md"),
        ("show", "{}", "--by", "label"),
        ("claims", "{}", "--format", "md"),
        ("claims", "{}", "--format", "json"),
    ],
)
def test_commands_tell_of_the_users_own_results(folder, capsys, command):
    assert main([part.format(folder) for part in command]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    if command[0] != "show":
        assert "own" in said.out
        assert "shipped" not in said.out
    assert main([part.format(folder / "published") for part in command]) == 0
    assert command[0] == "show" or "shipped" in capsys.readouterr().out


def test_the_report_is_of_the_users_own_results(folder, capsys):
    assert main(["report", str(folder)]) == 0
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert '<th scope="row">own</th>' in page
    assert "shipped" not in page
    assert "left out" not in page
    assert capsys.readouterr().err == ""


def test_compare_finds_published_models_where_they_are_named(folder, capsys):
    here = ["--results", str(folder)]
    assert main(["compare", "own", "shipped", *here]) == 2
    assert f"shipped: no results in {folder}, or name {folder}/published." in (
        capsys.readouterr().err
    )
    assert main(["compare", "own", str(folder / "published" / "shipped"), *here]) == 0
    # Its measurement is the user's too, which is taken.
    assert main(["compare", "own", str(folder / "published" / "both"), *here]) == 0
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
    assert {
        json.loads(p.read_text())["model"]["name"] for p in shipped.glob("*/ewt/pos-*.json")
    } == {
        "all-MiniLM-L6-v2",
        "random:all-MiniLM-L6-v2",
    }
