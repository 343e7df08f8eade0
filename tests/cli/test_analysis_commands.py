"""Results of a run, read back: resampled predictions, claims, breakdowns."""

import csv
import json
import re

import numpy as np
import pytest
from tiny_runs import of_all_layers, run, shortened_schedule

from probes.__main__ import main
from probes.frames.frame import load
from probes.frames.joined_results import find_results

TASKS = ("pos", "chunking", "depth", "agreement", "srl")
EVIDENCE = ("training_variance", "selectivity", "localisation")


@pytest.fixture(scope="module")
def run_results(tiny_bert, tmp_path_factory):
    """Results of all tasks on a part of the sample, with probes that stop early."""
    folder = tmp_path_factory.mktemp("run")
    with shortened_schedule():
        run(tiny_bert, folder, quick=False, probes="linear", twins=0, evidence=EVIDENCE)
        yield folder / "results"


@pytest.fixture(scope="module")
def shared(run_results, tmp_path_factory):
    """The same results as they may be passed on: with sums instead of predictions."""
    there = tmp_path_factory.mktemp("shared")
    assert main(["export", str(run_results), str(there / "results"), "--sums"]) == 0
    return there / "results"


def test_sums_give_the_replicates_that_predictions_give(run_results, shared):
    from_sums = find_results(shared)
    assert len(from_sums) == len(TASKS)
    for path, result in find_results(run_results).items():
        there = shared / path.relative_to(run_results)
        ours, theirs = of_all_layers(result), of_all_layers(from_sums[there])
        assert ours.noise is not None
        for what in ("scores", "values", "influence", "noise", "training"):
            np.testing.assert_array_equal(getattr(ours, what), getattr(theirs, what))


def test_breakdowns_are_in_the_results(run_results):
    by_task = {r.task.name: r for r in find_results(run_results).values()}
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


def test_claims_are_printed(run_results, capsys):
    assert main(["claims", str(run_results)]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "A model need not use what can be decoded from it." in printed
    assert main(["claims", str(run_results), "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {(row["model"], row["probe"]) for row in rows} == {("tiny-bert", "linear")}
    verdicts = {row["claim"]: row["verdict"] for row in rows}
    # Of two layers the first is the middle; 7.5/12 to 9.5/12 of them is none.
    assert verdicts["agreement-late-middle"] == "not tested"
    assert verdicts["syntax-middle"] != "not tested"


def test_several_folders_are_read_together(run_results, shared, tmp_path, capsys):
    one, other = tmp_path / "one", tmp_path / "other"
    for path in load(run_results).records():
        task = path.name.partition("-")[0]
        for part in (path, path.with_suffix(".npz")):
            if part.exists():
                place = (one if task == "pos" else other) / part.relative_to(run_results)
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(part.read_bytes())

    def printed(*arguments):
        assert main(list(arguments)) == 0
        return capsys.readouterr().out

    both = str(one), str(other)
    assert len(load(one).records()) < len(load(run_results).records())

    def verdicts(*folders):
        rows = json.loads(printed("claims", *folders, "--format", "json"))
        return {row["claim"]: row["verdict"] for row in rows}

    assert verdicts(*both) == verdicts(str(run_results)) != verdicts(str(one))
    tables = printed("show", *both, "--by", "selectivity")
    whole = printed("show", str(run_results), "--by", "selectivity")
    numbers = re.compile(r"[\d.]+±[\d.]+")
    assert len(numbers.findall(whole)) >= len(TASKS)
    assert sorted(numbers.findall(tables)) == sorted(numbers.findall(whole))
    page = tmp_path / "page.html"
    assert printed("report", *both, "-o", str(page)).strip() == str(page)
    text = page.read_text("utf-8")
    assert "one · other" in text
    assert all(f'"{task}"' in text for task in TASKS)


def test_show_of_some_tasks(run_results, capsys):
    assert main(["show", str(run_results), "--task", "srl,pos", "--format", "csv"]) == 0
    columns = next(csv.reader(capsys.readouterr().out.splitlines()))
    assert [x for x in columns if x.endswith(" low")] == [
        "pos (accuracy) low",
        "srl (accuracy) low",
    ]
    assert main(["show", str(run_results), "--task", "poss"]) == 2
    assert "--task poss: no results. Did you mean 'pos'?" in capsys.readouterr().err
