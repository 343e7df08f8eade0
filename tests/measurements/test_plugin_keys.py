"""What identifies the records of plug-ins, and what stands in one table with what."""

import hashlib
import json

import pandas as pd
import pytest
from board_by_hand import put
from plugged_in import TASK
from results_by_hand import changed
from stored_replicates import of_all_layers

from probes.boards.groups import group
from probes.boards.rankings import make_rankings, named
from probes.measurements.frame import load
from probes.measurements.joined_results import find_results, joined, marked
from probes.measurements.plugin_keys import is_current
from probes.measurements.plugins import load_file
from probes.records.header import PlugIn
from probes.records.probe_spec import PROBES
from probes.records.record import Inputs, numerics_version, record_key

pytestmark = pytest.mark.usefixtures("plug_ins", "short_schedule")


def test_a_result_is_reused_until_the_file_changes(write, run_with, capsys):
    path = write(TASK)
    (first,) = run_with(path, tasks=("mine",))
    assert first.plug_ins == (
        PlugIn(
            kind="task",
            name="mine",
            source=str(path),
            distribution="",
            sha256=first.plug_ins[0].sha256,
        ),
    )
    assert is_current(first)
    (again,) = run_with(path, tasks=("mine",))
    assert again == first
    (other,) = run_with(write(TASK.replace("NOUN", "VERB")), tasks=("mine",))
    assert other.key != first.key
    assert other.examples.labels["noun"] != first.examples.labels["noun"]
    assert is_current(other)
    assert not is_current(first)
    assert [r.key for r in find_results(path.parent / "results").values()] == [other.key]


def test_results_of_two_sources_never_share_a_column(write, run_with):
    path = write(TASK)
    run_with(path, tasks=("mine", "pos"))
    (newer,) = run_with(write(TASK + "# changed\n"), tasks=("mine",))
    found = joined(marked(load(path.parent / "results")))
    assert len(found) == 3
    (table,) = (path.parent / "results").rglob("layers.csv")
    columns = [name for name in pd.read_csv(table).columns if not name.endswith(("low", "high"))]
    assert sorted(columns) == ["layer", "mine (linear)", "pos (linear)"]
    (ranking,) = make_rankings(named(found))
    (ranked,) = ranking.tasks["mine"]
    assert ranked.result.key == newer.key
    ((apart, why),) = ranking.apart
    assert apart.result.task.name == "mine"
    assert why.startswith("plug-in source task mine ")
    ((units,), _) = group(found)
    assert sorted(unit.name for unit in units.units) == ["mine", "mine", "pos"]
    assert len({unit.title for unit in units.units}) == 3
    csv = pd.read_csv(path.parent / "results" / "leaderboard.csv", keep_default_na=False)
    by_task = csv.groupby("task").plug_ins.unique().map(sorted).to_dict()
    assert by_task["pos"] == [""]
    assert by_task["mine"] == [f"task mine {newer.plug_ins[0].sha256[:8]}"]


def test_a_result_whose_plug_in_is_not_loaded_counts_as_current(write, run_with, plug_ins):
    path = write(TASK)
    (result,) = run_with(path, tasks=("mine",))
    load_file(write("from probes import task\n" + TASK.replace('"mine"', '"other"')))
    assert is_current(result)


def test_of_two_sources_of_which_none_is_loaded_the_newest_has_the_column(write, run_with):
    path = write(TASK)
    run_with(path, tasks=("mine",))
    (newer,) = run_with(write(TASK.replace("NOUN", "VERB")), tasks=("mine",))
    load_file(write(TASK.replace('"mine"', '"other"')))
    run_with(tasks=("pos",))
    (table,) = (path.parent / "results").rglob("layers.csv")
    scores = pd.read_csv(table)["mine (linear)"]
    assert scores.tolist() == pytest.approx(list(newer.headline.values()), rel=1e-5)


def test_keys_of_the_suites_own_tasks_have_not_changed():
    plain = {
        "model": "m",
        "corpus": "c",
        "task": "pos",
        "task_version": 1,
        "probe": PROBES["linear"],
        "pooling": "mean",
        "dtype": "float32",
        "project": None,
        "windows": "w",
        "plug_ins": {},
    }
    content = {
        **plain,
        "probe": PROBES["linear"].model_dump(mode="json"),
        "numerics": numerics_version("classification", "linear"),
        "resampling": 2,
        "fit_dtype": "float32",
    }
    expected = _sha256(content)
    inputs = {**plain, "kind": "classification"}
    assert Inputs(**inputs).digest == expected
    assert Inputs(**{**inputs, "plug_ins": {"task pos": "0"}}).digest != expected
    mlp = {**inputs, "probe": PROBES["mlp"]}
    assert Inputs(**{**mlp, "kind": "regression"}).digest != Inputs(**mlp).digest
    key = {"inputs": expected, "measurement": "m", "version": 1, "settings": {}, "source": ""}
    assert record_key(expected, "m", 1, {}) == _sha256(key)
    assert record_key(expected, "m", 1, {"n": 2}) == _sha256({**key, "settings": {"n": 2}})
    assert record_key(expected, "m", 2, {}) == _sha256({**key, "version": 2})
    assert record_key(expected, "m", 1, {}, "f") == _sha256({**key, "source": "f"})


def _sha256(content):
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def test_stored_results_of_a_metric_that_is_not_loaded_have_no_intervals(tmp_path):
    path = put(tmp_path, "m", "pos", 5)
    (result,) = find_results(tmp_path).values()
    assert of_all_layers(result, path) is not None
    assert of_all_layers(changed(result, "task", metric="unknown"), path) is None
