"""One run of a tiny model: what it writes, prints, shows, and what is read back from it."""

import csv
import json
import re
import shutil
from contextlib import redirect_stdout
from io import StringIO
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from drawn import png_size
from tiny_runs import files_of, of_all_layers, run, shortened_schedule

import probes
from probes.__main__ import main
from probes.boards.leaderboard_csv import COLUMNS
from probes.data.find import find_corpus
from probes.frames.joined_results import find_results

TASKS = ("pos", "chunking", "depth", "agreement", "srl")
EVIDENCE = ("training_variance", "selectivity", "localisation")

pytestmark = pytest.mark.usefixtures("short_schedule")


@pytest.fixture(scope="module")
def one_run(tiny_bert, tmp_path_factory):
    """A run of all tasks, its results and what it printed; tests work on copies of its folder.

    There is a random twin; linear probes have evidence, and the model's geometry is measured.
    """
    folder = tmp_path_factory.mktemp("run")
    measured = {"measurements": "probes,geometry", "evidence": EVIDENCE, "probes": "linear"}
    with shortened_schedule(), redirect_stdout(StringIO()) as printed:
        results = run(tiny_bert, folder, twins=1, **measured)
    (beside,) = (folder / "results").glob("tiny-bert-*/sample")
    return SimpleNamespace(
        folder=folder, results=results, beside=beside,
        printed=" ".join(printed.getvalue().split()),  # titles are as wide as their tables
    )  # fmt: skip


@pytest.fixture(scope="module")
def shared(one_run, tmp_path_factory):
    """The same results as they may be passed on: with sums instead of predictions."""
    there = tmp_path_factory.mktemp("shared") / "results"
    with shortened_schedule():
        assert main(["export", str(one_run.folder / "results"), str(there), "--sums"]) == 0
    return there


def of_model(one_run):
    """The results of the model itself, by task."""
    return {r.task.name: r for r in one_run.results.results if r.model.random_seed is None}


def printed_by(capsys, *arguments):
    capsys.readouterr()
    assert main(list(map(str, arguments))) == 0
    return capsys.readouterr().out


def test_a_run_writes_json_tables_heat_map_and_leaderboard(one_run):
    results, folder = one_run.results, one_run.beside
    assert len(list(folder.glob("*-scores-*.json"))) == len(TASKS)
    table = results.table("linear")
    assert list(table.index) == [0, 1, 2]
    assert sorted(table.columns) == sorted(TASKS)

    board = pd.read_csv(one_run.folder / "results" / "leaderboard.csv")
    assert tuple(board.columns) == COLUMNS
    assert len(board) == 2 * len(TASKS) * 3
    assert board.groupby(["task", "model"]).best.sum().tolist() == [1] * 10
    row = board[(board.task == "pos") & (board.model == "tiny-bert") & (board.layer == 2)].iloc[0]
    assert row.score == pytest.approx(table.loc[2, "pos"], abs=1e-6)
    assert (row["view"], row.limited) == ("plain", True)
    assert set(board[board.task == "agreement"]["view"]) == {"masked"}

    wide = pd.read_csv(folder / "layers.csv", index_col="layer")
    assert wide.loc[2, "pos (linear)"] == pytest.approx(table.loc[2, "pos"], abs=1e-6)
    ends = wide.loc[2, ["pos (linear) low", "pos (linear) high"]]
    assert ends.tolist() == pytest.approx([row.low, row.high], abs=1e-6)
    assert ends.iloc[0] < wide.loc[2, "pos (linear)"] < ends.iloc[1]
    assert "| **" in (folder / "layers.md").read_text()
    assert png_size((folder / "layers.png").read_bytes())[0] > 700


def test_it_has_evidence_a_twin_and_a_comparison(one_run):
    found = one_run.results.results
    names = [(r.model.name, r.task.name, r.model.random_seed) for r in found]
    twins = [("random:tiny-bert", task, 0) for task in TASKS]
    assert names == [*(("tiny-bert", task, None) for task in TASKS), *twins]
    assert [set(r.evidence) for r in found] == 5 * [{*EVIDENCE}] + 5 * [{"training_variance"}]
    twin = found[5].score(found[5].best_layer)
    assert f"| random twin | {100 * twin:.1f} |" in (one_run.beside / "layers.md").read_text()
    assert "models at their best layers · linear probe" in one_run.printed
    # Once before the evidence, and once at the end; the twin has no table of its own. Evidence that
    # is named has one, too.
    assert one_run.printed.count("tiny-bert · sample, limit 60 · linear probe · test") == 2
    assert one_run.printed.count("tiny-bert · sample, limit 60 · linear probe · selectivity") == 1


def test_results_are_shown_as_tables_and_say_what_they_are(one_run):
    assert repr(one_run.results) == (
        "<Results: tiny-bert and random:tiny-bert on sample · pos, chunking, depth, agreement, srl · "
        "geometry, model_similarity>"
    )
    html = one_run.results._repr_html_()
    title = "tiny-bert · sample, limit 60 · linear probe · test"
    assert f"<caption><span>{title}</span></caption>" in html
    assert "random twin" in html
    assert "▽ not significantly above the floor" in html
    assert "<caption><span>random:" not in html.split("geometry")[0]
    assert f"{100 * max(one_run.results.table()['pos']):.1f}" in html


def test_tables_are_of_the_one_pretrained_model(one_run):
    results = one_run.results
    assert results.table()["pos"].to_dict() == of_model(one_run)["pos"].headline
    latex = results.to_latex()
    assert rf"\begin{{tabular}}{{@{{}}l{5 * 'r@{}l'}@{{}}}}" in latex
    assert r"\begin{table*}" in results.to_latex(wide=True)
    assert r"\scriptsize random &" in latex  # twin, in the next line
    with pytest.raises(probes.UserError, match=r"model='x': no results\. Known: "):
        results.table(model="x")
    with pytest.raises(probes.UserError, match=r"probe='mpl': no results\. Known: linear"):
        results.table("mpl")
    with pytest.raises(probes.UserError, match="corpus='ewt': no results"):
        results.to_latex(corpus="ewt")


def test_figures_and_the_page_are_those_of_the_commands(one_run, tmp_path, capsys):
    results = one_run.results
    figure, its = results.plot("curves"), tmp_path / "its.svg"
    printed_by(capsys, "figure", "curves", one_run.folder / "results", "--wide", "-o", its)
    assert figure._repr_mimebundle_()["image/svg+xml"].startswith("<svg")
    assert figure.save(tmp_path / "ours.svg").read_text() == its.read_text()
    assert figure.save(tmp_path / "ours.pdf").read_bytes().startswith(b"%PDF")
    png = [figure.save(tmp_path / "a.png", ppi=x).read_bytes() for x in (144, 72)]
    assert png_size(png[0]) == pytest.approx([2 * x for x in png_size(png[1])], abs=1)
    assert "<svg" in results.plot("cka").svg
    wide = results.plot("curves", path=tmp_path / "named.svg").properties(title="mine")
    assert (tmp_path / "named.svg").read_bytes() == its.read_bytes()
    assert wide.to_dict()["title"] == "mine"
    large = wide.configure_axis(labelFontSize=31).svg
    assert ("mine" in large, "31px" in large, "mine" in figure.svg) == (True, True, False)
    assert "Liberation Sans" in large  # the rest of the look stays
    assert len(results.plot("curves", task="pos").to_dict()["datasets"]) == 1
    one = results.plot("curves", task="pos").svg
    assert ("pos" in one, "depth" in one, "depth" in figure.svg) == (True, False, True)
    assert results.plot("curves", task=["pos"], model=None).svg == one
    assert results.plot("curves", task=TASKS).svg == figure.svg
    for name in ("task", "model", "corpus"):
        with pytest.raises(probes.UserError, match=f"--{name} nonsense: no results. Known: "):
            results.plot("curves", **{name: "nonsense"})
    for nothing in (",", []):
        with pytest.raises(probes.UserError, match=r"task=.*: names nothing; give names"):
            results.plot("curves", task=nothing)
    with pytest.raises(probes.UserError, match=r"No figure is called 'curve'\. Did you mean"):
        results.plot("curve")
    with pytest.raises(probes.UserError, match=r"x\.jpg: the name must end in one of \.pdf"):
        figure.save(tmp_path / "x.jpg")
    with pytest.raises(probes.UserError, match=r"x\.jpg: the name must end in one of \.pdf"):
        results.plot(path=tmp_path / "x.jpg")
    assert "tiny-bert" in results.report(tmp_path / "page.html").read_text()
    with pytest.raises(probes.UserError, match="not written, since there are no results"):
        probes.Results().report(tmp_path / "none.html")


def test_what_is_loaded_is_shown_as_what_was_found(one_run):
    both = one_run.results, probes.load_results(one_run.folder / "results")
    assert both[0].table().equals(both[1].table())
    assert both[0].to_latex() == both[1].to_latex()
    drawn = [re.sub(r"gradient_\d+", "", x.plot("heatmap").svg) for x in both]
    assert drawn[0] == drawn[1]


def test_predictions_have_the_scores(one_run, shared):
    results = one_run.results
    for task, result in of_model(one_run).items():
        for layer in (0, result.best_layer):
            frame = results.predictions(task, layer)
            assert list(frame) == ["sentence", "gold", "predicted", "split"]
            assert len(frame) == result.examples.n["test"]
            score = result.at("mae" if task == "depth" else "accuracy", layer)
            wrong = (frame.gold - frame.predicted).abs() if task == "depth" else None
            mean = (frame.gold == frame.predicted).mean() if wrong is None else wrong.mean()
            assert mean == pytest.approx(score.value, abs=1e-6), task
        assert frame.equals(results.predictions(task))
        assert results.predictions(task, -1).equals(results.predictions(task, 2))
    counts = results.predictions("pos").groupby("sentence").size()
    words = [len(x) for x in find_corpus("sample", limit=60).load().splits["test"]]
    assert counts.tolist() == words
    with pytest.raises(probes.UserError, match="layer='1' is text; give a whole number"):
        results.predictions("pos", "1")
    with pytest.raises(probes.UserError, match=r"pos: layer 3 was not probed; give one of 0, 1, 2"):
        results.predictions("pos", 3)
    with pytest.raises(probes.UserError, match="has sums instead of predictions"):
        probes.load_results(shared).predictions("pos")


def test_sums_give_the_replicates_that_predictions_give(one_run, shared):
    from_sums, results = find_results(shared), one_run.folder / "results"
    assert len(from_sums) == 2 * len(TASKS)
    for path, result in find_results(results).items():
        there = shared / path.relative_to(results)
        ours, theirs = of_all_layers(result), of_all_layers(from_sums[there])
        assert ours.noise is not None
        for what in ("scores", "values", "influence", "noise", "training"):
            np.testing.assert_array_equal(getattr(ours, what), getattr(theirs, what))


def test_breakdowns_are_in_the_results(one_run):
    by_task = of_model(one_run)
    pos = by_task["pos"]
    groups = pos.examples.groups
    assert groups["word of one piece"] + groups["word of several pieces"] == pos.examples.n["test"]
    assert "word of one piece" not in by_task["agreement"].examples.groups
    depth = by_task["depth"].examples.groups
    assert sum(n for name, n in depth.items() if name.startswith("depth")) == pos.examples.n["test"]
    between = [n for name, n in by_task["srl"].examples.groups.items() if "between" in name]
    assert sum(between) == by_task["srl"].examples.n["test"]
    for layer in pos.layers:
        counts = {name: test for name, (_, _, test) in pos.examples.labels.items() if test}
        of_labels = labels(pos, layer)
        assert {name: s.n for name, s in of_labels.items() if s.n} == counts
        macro = np.mean([s.value for s in of_labels.values() if s.n])
        assert pos.at("macro_f1", layer).value == pytest.approx(macro)
    assert set(labels(by_task["chunking"], 0)) >= {"NP", "PP", "SBAR", "VP"}
    assert labels(by_task["depth"], 0) == {}


def labels(result, layer):
    """The F1 of each label."""
    found = [x for x in result.rows.along("label") if (x.metric, x.layer) == ("f1", layer)]
    return {x.axes["label"]: x for x in found}


def verdicts(capsys, *folders):
    """By claim, the verdict on the model itself."""
    rows = json.loads(printed_by(capsys, "claims", *folders, "--format", "json"))
    assert {row["probe"] for row in rows if row["model"] == "tiny-bert"} == {"linear"}
    return {row["claim"]: row["verdict"] for row in rows if row["model"] == "tiny-bert"}


def test_claims_are_printed(one_run, capsys):
    folder = one_run.folder / "results"
    said = " ".join(printed_by(capsys, "claims", folder).split())
    assert "A model need not use what can be decoded from it." in said
    found = verdicts(capsys, folder)
    # Of two layers the first is the middle; 7.5/12 to 9.5/12 of them is none.
    assert found["agreement-late-middle"] == "not tested"
    assert found["syntax-middle"] != "not tested"


def test_several_folders_are_read_together(one_run, tmp_path, capsys):
    whole, one, other = (tmp_path / name for name in ("whole", "one", "other"))
    for path in one_run.beside.glob("*-linear-*"):
        for folder in (whole, one if path.name.startswith("pos-") else other):
            (folder / "m" / "sample").mkdir(parents=True, exist_ok=True)
            shutil.copy(path, folder / "m" / "sample")
    assert verdicts(capsys, one, other) == verdicts(capsys, whole) != verdicts(capsys, one)
    numbers = re.compile(r"[\d.]+±[\d.]+")
    tables = [
        numbers.findall(printed_by(capsys, "show", *folders, "--by", "selectivity"))
        for folders in ((one, other), (whole,))
    ]
    assert len(tables[0]) >= len(TASKS)
    assert sorted(tables[0]) == sorted(tables[1])
    page = tmp_path / "page.html"
    assert printed_by(capsys, "report", one, other, "-o", page).strip() == str(page)
    text = page.read_text("utf-8")
    assert "one · other" in text
    assert all(f'"{task}"' in text for task in TASKS)


def test_show_of_some_tasks(one_run, capsys):
    folder = one_run.folder / "results"
    said = printed_by(capsys, "show", folder, "--task", "srl,pos", "--format", "csv")
    columns = next(csv.reader(said.splitlines()))
    ends = [x for x in columns if x.endswith(" low")]
    assert ends == ["pos (accuracy) low", "srl (accuracy) low"]
    assert main(["show", str(folder), "--task", "poss"]) == 2
    assert "--task poss: no results. Did you mean 'pos'?" in capsys.readouterr().err


def test_a_run_shows_its_own_tasks_and_those_of_earlier_runs_if_asked_to(
    one_run, tiny_bert, tmp_path, capsys
):
    shutil.copytree(one_run.folder, tmp_path, dirs_exist_ok=True)
    for all_tasks in (False, True):
        capsys.readouterr()
        run(tiny_bert, tmp_path, tasks="depth", probes="linear", all_tasks=all_tasks)
        head = next(x for x in capsys.readouterr().out.splitlines() if "depth" in x)
        assert ("pos" in head, "srl" in head) == (all_tasks, all_tasks)
    (table,) = (tmp_path / "results").glob("tiny-bert-*/sample/layers.csv")
    assert {"pos (linear)", "depth (linear)"} < {*pd.read_csv(table).columns}
    run(tiny_bert, tmp_path, tasks="pos", probes="mlp")
    assert "linear probe" not in capsys.readouterr().out


def test_evidence_that_takes_predictions_is_left_out_with_the_reason(
    shared, tiny_bert, tmp_path, capsys
):
    (scores,) = shared.glob("tiny-bert-*/sample/pos-linear-scores-*.json")
    place = tmp_path / "results" / scores.relative_to(shared)
    place.parent.mkdir(parents=True)
    shutil.copy(scores, place)
    sums = shutil.copy(scores.with_suffix(".npz"), place.with_suffix(".npz"))
    before = files_of(tmp_path, "*.npz")
    settings = {"probes": "linear", "evidence": "training_variance"}
    found = run(tiny_bert, tmp_path, tasks="pos,depth", **settings)
    said = capsys.readouterr()
    (reason,) = [line for line in said.err.splitlines() if "left out" in line]
    assert reason == (
        f"left out pos · linear · training_variance of tiny-bert: {place.name} has sums instead of "
        "predictions (from export --sums); use --overwrite always to fit the probes again"
    )
    # The scores stand in the table, and everything else is made.
    pos, depth = found.results
    assert f"{100 * pos.score(pos.best_layer):.1f}" in said.out
    assert (pos.evidence.keys(), depth.evidence.keys()) == (set(), {"training_variance"})
    assert before.items() <= files_of(tmp_path, "*.npz").items()
    (pos,) = run(tiny_bert, tmp_path, tasks="pos", overwrite="always", **settings).results
    assert pos.evidence.keys() == {"training_variance"}
    assert "left out" not in capsys.readouterr().err
    assert before[sums] != files_of(tmp_path, "*.npz")[sums]


def test_a_score_that_no_sentence_defines_has_no_best_layer(tiny_bert, tmp_path, capsys):
    """NSpr covers sentences of 5 to 50 words."""
    corpus = tmp_path / "c"
    corpus.mkdir()
    for split in ("train", "dev", "test"):
        words = "".join(f"{i}\tw{i}\t_\tX\t_\t_\t{i - 1}\tdep\t_\t_\n" for i in (1, 2, 3))
        (corpus / f"c-{split}.conllu").write_text(f"{words}\n" * 3)
    run(tiny_bert, tmp_path, corpus=str(corpus), tasks=("depth",), probes=("linear",))
    said = capsys.readouterr()
    assert "- depth has no best layer: no score on dev is defined." in said.out
    (table,) = (tmp_path / "results").rglob("layers.md")
    assert "| –" in table.read_text()
    assert "*" not in "".join(x for x in table.read_text().splitlines() if x.startswith("|"))
    assert "–★" not in said.out
    assert "–☆" not in said.out
    output = tmp_path / "results"
    assert not pd.read_csv(output / "leaderboard.csv").best.any()
    for name in ("leaderboard", "show", "report"):
        assert main([name, str(output)]) == 0
    said = capsys.readouterr()
    assert "–/2" in said.out
    assert "–★" not in said.out
    assert "no best layer" in (output / "report.html").read_text()
