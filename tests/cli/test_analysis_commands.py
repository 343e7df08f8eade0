"""What is read back from a run's results: resampled predictions, claims, breakdowns."""

import json
import re

import numpy as np
import pytest
from stored_replicates import of_all_layers

import probes
from probes.__main__ import main
from probes.common.errors import UserError
from probes.measurements.frame import load
from probes.measurements.joined_results import find_results
from probes.records.probe_spec import PROBES
from probes.statistics.bootstrap import interval

TASKS = ("pos", "chunking", "depth", "agreement", "srl")
EVIDENCE = ("training_variance", "selectivity", "localisation")


@pytest.fixture(scope="module")
def folder(tiny_bert, tmp_path_factory):
    """Results of all tasks on a part of the sample, with probes that stop early."""
    spec = PROBES["linear"].model_copy(update={"epochs": 1, "min_steps": 24})
    folder = tmp_path_factory.mktemp("run")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PROBES, "linear", spec)
        probes.run_probes(
            str(tiny_bert),
            limit=60,
            probes=("linear",),
            cache_dir=folder / "cache",
            output=folder / "results",
            device="cpu",
            twins=0,
            evidence=EVIDENCE,
        )
    return folder / "results"


@pytest.fixture(autouse=True)
def short_schedule(monkeypatch):
    spec = PROBES["linear"].model_copy(update={"epochs": 1, "min_steps": 24})
    monkeypatch.setitem(PROBES, "linear", spec)


def test_stored_predictions_give_the_stored_intervals(folder):
    found = find_results(folder)
    assert sorted(r.task.name for r in found.values()) == sorted(TASKS)
    for path, result in found.items():
        bounds = interval(of_all_layers(result, path).values)
        stored = [result.interval(layer) for layer in result.layers]
        np.testing.assert_allclose(bounds, stored, atol=1e-6)


def test_missing_or_changed_predictions_are_not_used(folder, tmp_path):
    # Of a task with several predictions: a probe of two steps may say the same of all examples.
    path, result = next(
        (path, result) for path, result in find_results(folder).items() if result.task.name == "pos"
    )
    assert of_all_layers(result, tmp_path / "gone.json") is None
    arrays = dict(np.load(path.with_suffix(".npz")))
    arrays["predicted"] = np.roll(arrays["predicted"], 1, axis=-1)
    np.savez(tmp_path / "changed.npz", **arrays)
    with pytest.raises(UserError, match=r"changed\.npz: these arrays do not give"):
        of_all_layers(result, tmp_path / "changed.json")
    (tmp_path / "torn.npz").write_bytes(b"PK")
    with pytest.raises(UserError, match=r"torn\.npz: not readable"):
        of_all_layers(result, tmp_path / "torn.json")


@pytest.fixture(scope="module")
def shared(folder, tmp_path_factory):
    """The same results as they may be passed on: with sums instead of predictions."""
    there = tmp_path_factory.mktemp("shared")
    assert main(["export", str(folder), str(there / "results"), "--sums"]) == 0
    return there / "results"


def test_sums_give_the_replicates_that_predictions_give(folder, shared):
    from_sums = find_results(shared)
    assert len(from_sums) == len(TASKS)
    for path, result in find_results(folder).items():
        there = shared / path.relative_to(folder)
        ours, theirs = of_all_layers(result, path), of_all_layers(from_sums[there], there)
        assert ours.noise is not None
        for what in ("scores", "values", "influence", "noise", "training"):
            np.testing.assert_array_equal(getattr(ours, what), getattr(theirs, what))


def test_breakdowns_are_in_the_results(folder):
    by_task = {r.task.name: r for r in find_results(folder).values()}
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


@pytest.mark.parametrize("form", ["table", "md", "json"])
def test_claims_are_printed(folder, form, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    assert main(["claims", str(folder), "--format", form]) == 0
    printed = capsys.readouterr().out
    if form != "json":
        assert "A model need not use what can be decoded from it." in " ".join(printed.split())
        assert "part of the corpus" in printed
        assert "Liu et al. 2019a. Differences: " in " ".join(printed.split())
        return
    rows = json.loads(printed)
    assert {(row["model"], row["probe"]) for row in rows} == {("tiny-bert", "linear")}
    verdicts = {row["claim"]: row["verdict"] for row in rows}
    # Of two layers the first is the middle; 7.5/12 to 9.5/12 of them is none.
    assert verdicts["agreement-late-middle"] == "not tested"
    assert verdicts["syntax-middle"] != "not tested"


@pytest.mark.parametrize("by", ["group", "label"])
def test_breakdowns_are_shown(folder, by, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    assert main(["show", str(folder), "--by", by]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    expected = {
        "group": "mae, lower is better, by group",
        "label": "depth, linear probe: no breakdown by label.",
    }
    assert expected[by] in printed
    path = next(iter(find_results(folder)))
    assert main(["show", str(path), "--by", by]) == 0


def test_show_of_one_probe_family(folder, capsys):
    assert main(["show", str(folder), "--probe", "linear"]) == 0
    assert "linear probe" in capsys.readouterr().out
    assert main(["show", str(folder), "--probe", "mlp"]) == 2
    assert "--probe mlp: no results. Known: linear." in capsys.readouterr().err


def test_a_folder_without_results_is_an_error(folder, tmp_path, capsys):
    assert main(["claims", str(folder), "--probe", "mlp"]) == 2
    assert "no results of mlp probes" in capsys.readouterr().err
    assert main(["show", str(tmp_path)]) == 2


def test_several_folders_are_read_together(folder, shared, tmp_path, capsys):
    one, other = tmp_path / "one", tmp_path / "other"
    for path in load(folder).records():
        task = path.name.partition("-")[0]
        for part in (path, path.with_suffix(".npz")):
            if part.exists():
                place = (one if task == "pos" else other) / part.relative_to(folder)
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(part.read_bytes())

    def printed(*arguments):
        assert main(list(arguments)) == 0
        return capsys.readouterr().out

    both = str(one), str(other)
    assert len(load(one).records()) < len(load(folder).records())

    def verdicts(*folders):
        rows = json.loads(printed("claims", *folders, "--format", "json"))
        return {row["claim"]: row["verdict"] for row in rows}

    assert verdicts(*both) == verdicts(str(folder)) != verdicts(str(one))
    tables = printed("show", *both, "--by", "selectivity")
    whole = printed("show", str(folder), "--by", "selectivity")
    numbers = re.compile(r"[\d.]+±[\d.]+")
    assert len(numbers.findall(whole)) >= len(TASKS)
    assert sorted(numbers.findall(tables)) == sorted(numbers.findall(whole))
    page = tmp_path / "page.html"
    assert printed("report", *both, "-o", str(page)).strip() == str(page)
    text = page.read_text("utf-8")
    assert "one · other" in text
    assert all(f'"{task}"' in text for task in TASKS)
