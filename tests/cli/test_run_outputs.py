"""Records, tables, heat map and leaderboard of a run, and runs on exported sums."""

import re

import numpy as np
import pandas as pd
import pytest
from drawn import png_size
from tiny_runs import files_of, run

from probes.__main__ import main
from probes.__main__ import main as sub_command
from probes.boards.leaderboard_csv import COLUMNS

TASKS = ("pos", "chunking", "depth", "agreement", "srl")

pytestmark = pytest.mark.usefixtures("short_schedule")


def test_a_run_writes_json_tables_heat_map_and_leaderboard(tiny_bert, tmp_path):
    results = run(tiny_bert, tmp_path)
    folder = next((tmp_path / "results").glob("tiny-bert-*/sample"))
    assert len(list(folder.glob("*.json"))) == 10
    table = results.table("mlp")
    assert list(table.index) == [0, 1, 2]
    assert sorted(table.columns) == sorted(TASKS)

    board = pd.read_csv(tmp_path / "results" / "leaderboard.csv")
    assert tuple(board.columns) == COLUMNS
    assert len(board) == 5 * 2 * 3
    assert board.groupby(["task", "probe"]).best.sum().tolist() == [1] * 10
    row = board[(board.task == "pos") & (board.probe == "mlp") & (board.layer == 2)].iloc[0]
    assert row.score == pytest.approx(table.loc[2, "pos"], abs=1e-6)
    assert (row["view"], row.model, row.limited) == ("plain", "tiny-bert", True)
    assert set(board[board.task == "agreement"]["view"]) == {"masked"}

    wide = pd.read_csv(folder / "layers.csv", index_col="layer")
    assert wide.loc[2, "pos (mlp)"] == pytest.approx(table.loc[2, "pos"], abs=1e-6)
    ends = wide.loc[2, ["pos (mlp) low", "pos (mlp) high"]]
    assert ends.tolist() == pytest.approx([row.low, row.high], abs=1e-6)
    assert ends.iloc[0] < wide.loc[2, "pos (mlp)"] < ends.iloc[1]
    assert "| **" in (folder / "layers.md").read_text()
    assert png_size((folder / "layers.png").read_bytes())[0] > 1000


def test_stored_predictions_give_the_stored_scores(tiny_bert, tmp_path):
    (result,) = run(tiny_bert, tmp_path, tasks=("pos",), probes=("mlp",), seeds=2)
    (path,) = (tmp_path / "results").rglob("pos-mlp-scores-*.json")
    arrays = np.load(path.with_suffix(".npz"), allow_pickle=False)
    assert arrays["predicted"].shape == (3, 2, result.examples.n["test"])
    for i, layer in enumerate(result.layers):
        for j, axes in enumerate(({}, {"seed": 1})):
            right = (arrays["predicted"][i, j] == arrays["gold"]).mean()
            assert result.at("accuracy", layer, **axes).value == pytest.approx(right)
    # Another seed gives another probe, of the same training sentences.
    assert (arrays["predicted"][:, 0] != arrays["predicted"][:, 1]).any()


def test_a_full_run_has_controls_a_twin_and_a_comparison(tiny_bert, tmp_path, capsys):
    settings = {"tasks": ("pos", "depth"), "probes": ("linear",), "evidence": "selectivity"}
    found = run(tiny_bert, tmp_path, twins=1, **settings)
    names = [(r.model.name, r.task.name, r.model.random_seed) for r in found]
    assert names == [
        ("tiny-bert", "pos", None),
        ("tiny-bert", "depth", None),
        ("random:tiny-bert", "pos", 0),
        ("random:tiny-bert", "depth", 0),
    ]
    assert all("selectivity" in result.evidence for result in found.results[:2])
    assert [result.evidence for result in found.results[2:]] == [{}, {}]
    twin = found.results[2].score(found.results[2].best_layer)
    (text,) = [p.read_text() for p in (tmp_path / "results").glob("tiny-bert-*/sample/layers.md")]
    assert f"| random twin | {100 * twin:.1f} |" in text
    printed = " ".join(capsys.readouterr().out.split())  # titles are as wide as their tables
    assert "models at their best layers · linear probe" in printed
    # Once before the evidence, and once at the end; the twin has no table of its own. Evidence that
    # is named has one, too.
    assert printed.count("tiny-bert · sample, limit 60 · linear probe · test") == 2
    assert printed.count("tiny-bert · sample, limit 60 · linear probe · selectivity") == 1


def test_a_run_shows_its_own_tasks_and_those_of_earlier_runs_if_asked_to(
    tiny_bert, tmp_path, capsys
):
    run(tiny_bert, tmp_path, tasks=("pos",), probes=("linear",))
    for all_tasks in (False, True):
        capsys.readouterr()
        run(tiny_bert, tmp_path, tasks=("depth",), probes=("linear",), all_tasks=all_tasks)
        head = next(x for x in capsys.readouterr().out.splitlines() if "depth" in x)
        assert head.split() == ["pos"] * all_tasks + ["depth"]
    (table,) = (tmp_path / "results").rglob("layers.csv")
    assert {"pos (linear)", "depth (linear)"} < {*pd.read_csv(table).columns}
    run(tiny_bert, tmp_path, tasks=("pos",), probes=("mlp",))
    assert "linear probe" not in capsys.readouterr().out


def test_a_score_that_no_sentence_defines_has_no_best_layer(tiny_bert, tmp_path, capsys):
    """NSpr covers sentences of 5 to 50 words."""
    corpus = tmp_path / "c"
    corpus.mkdir()
    for split in ("train", "dev", "test"):
        words = "".join(f"{i}\tw{i}\t_\tX\t_\t_\t{i - 1}\tdep\t_\t_\n" for i in (1, 2, 3))
        (corpus / f"c-{split}.conllu").write_text(f"{words}\n" * 3)
    run(tiny_bert, tmp_path, corpus=str(corpus), tasks=("depth",), probes=("linear",))
    said = capsys.readouterr()
    assert "depth · linear · no best layer, because nspr is undefined on dev · " in said.err
    assert "nspr covers 0 test sentences" in said.err
    (table,) = (tmp_path / "results").rglob("layers.md")
    assert "| –" in table.read_text()
    assert "*" not in "".join(x for x in table.read_text().splitlines() if x.startswith("|"))
    assert "–★" not in said.out
    assert "–☆" not in said.out
    output = tmp_path / "results"
    assert not pd.read_csv(output / "leaderboard.csv").best.any()
    for name in ("leaderboard", "show", "report"):
        assert sub_command([name, str(output)]) == 0
    said = capsys.readouterr()
    assert "–/2" in said.out
    assert "–★" not in said.out
    assert "no best layer" in (output / "report.html").read_text()


@pytest.fixture
def shared(tiny_bert, tmp_path):
    """A folder with results of `pos`, which have sums instead of predictions."""
    run(tiny_bert, tmp_path, tasks=("pos",), probes="linear")
    there = tmp_path / "shared" / "results"
    assert main(["export", str(tmp_path / "results"), str(there), "--sums"]) == 0
    return tmp_path / "shared"


def names(results):
    return {r.task.name: set(r.evidence) for r in results}


def test_evidence_that_takes_predictions_is_left_out_with_the_reason(tiny_bert, shared, capsys):
    before = files_of(shared, "*.npz")
    capsys.readouterr()
    settings = {"quick": False, "probes": "linear", "evidence": "training_variance", "twins": 0}
    found = run(tiny_bert, shared, tasks=("pos", "depth"), **settings)
    said = capsys.readouterr()
    (reason,) = [line for line in said.err.splitlines() if "left out" in line]
    assert re.fullmatch(
        r"left out pos · linear · training_variance of tiny-bert: pos-linear-scores-\w+\.json has sums "
        r"instead of predictions \(from export --sums\); use --overwrite always to fit the probes again",
        reason,
    )
    # The scores stand in the table, and everything else is made.
    (pos,) = (r for r in found if r.task.name == "pos")
    assert f"{100 * pos.score(pos.best_layer):.1f}" in said.out
    assert names(found) == {"pos": set(), "depth": {"training_variance"}}
    assert before.items() <= files_of(shared, "*.npz").items()
    found = run(tiny_bert, shared, tasks=("pos",), overwrite="always", **settings)
    assert names(found) == {"pos": {"training_variance"}}
    assert "left out" not in capsys.readouterr().err
