"""Rows, extents, keys, names and provenance of records, and which are duplicates."""

import json
import re
from importlib.metadata import version

import numpy as np
import pytest
import torch
from board_by_hand import put, put_evidence
from hypothesis import given
from hypothesis import strategies as st
from results_by_hand import changed, make_result, variance_rows, with_seeds

from probes.common.errors import UserError
from probes.frames.frame import load
from probes.frames.joined_results import find_results, read_result, results_with_evidence
from probes.measurements.measurement import Request, get_measurement
from probes.records.probe_spec import PROBES
from probes.records.record import Inputs, record_key, record_name
from probes.records.record_files import read_record, write_record
from probes.records.row import Row, Rows
from probes.records.values import Estimate
from probes.run.job_record import provenance
from probes.tasks.task import SITE_VERSIONS


@pytest.mark.parametrize(
    ("layers", "seeds", "complete"),
    [((0, 1), 1, True), ((1,), 2, True), ((0, 1), 2, False), ((0, 1, 2), 1, False)],
)
def test_a_record_is_complete_if_it_has_the_layers_and_seeds_asked_for(layers, seeds, complete):
    record = make_result(n_layers=4).model_copy(update={"extent": {0: 1, 1: 2}})
    assert get_measurement("scores").covers(record, Request(layers, 4, seeds)) == complete


def test_scores_are_silver_if_the_task_needs_what_a_machine_made():
    result = make_result()

    def silver(needs, made):
        return changed(changed(result, "task", needs=needs), "corpus", silver=made).silver

    assert silver(("upos", "heads"), ("heads",))
    assert not silver(("upos",), ("heads",))


INPUTS = {
    "model": "m",
    "corpus": "c",
    "pooling": "mean",
    "dtype": "float32",
    "windows": "w",
    "task": "pos",
    "task_version": 1,
    "kind": "classification",
    "probe": PROBES["linear"],
    "project": None,
    "plug_ins": {},
}


def key(measurement="selectivity", version=1, settings=(), source="", **changes):
    inputs = Inputs(**{**INPUTS, **changes}).digest
    return record_key(inputs, measurement, version, dict(settings), source)


@pytest.mark.parametrize(
    "change",
    [
        {"model": "n"},
        {"few_documents": True},
        {"corpus": "d"},
        {"pooling": "last"},
        {"dtype": "bfloat16"},
        {"windows": "v"},
        {"task": "depth"},
        {"task_version": 2},
        {"probe": PROBES["mlp"]},
        {"probe": PROBES["linear"].model_copy(update={"l2": (1.0,)})},
        {"project": 8},
        {"plug_ins": {"task pos": "a"}},
        {"measurement": "scores"},
        {"version": 2},
        {"settings": {"n": 1}},
        {"source": "a"},
    ],
    ids=str,
)
def test_whatever_determines_a_record_is_in_its_key(change):
    assert key(**change) != key()
    assert len(key(**change)) == 64


def test_the_version_of_a_site_is_in_keys_of_its_tasks(monkeypatch):
    linear = {"probe": PROBES["linear"]}
    names = ("pos", "pos@mid", "pos@mlp", "true@last@mlp")
    before = [key(task=name, **linear) for name in names]
    monkeypatch.setitem(SITE_VERSIONS, "mlp", 9)
    after = [key(task=name, **linear) for name in names]
    assert [x == y for x, y in zip(before, after, strict=True)] == [True, True, False, False]


def test_settings_have_no_order_and_their_values_count():
    assert key(settings={"a": 1, "b": 2}) == key(settings={"b": 2, "a": 1})
    assert key(settings={"a": 1}) != key(settings={"a": 2})


def test_the_kind_of_a_task_matters_through_the_version_of_the_numerics_alone():
    linear = {"probe": PROBES["linear"]}
    assert key(kind="regression", **linear) == key(kind="classification", **linear)
    mlp = {"probe": PROBES["mlp"]}
    assert key(kind="regression", **mlp) != key(kind="classification", **mlp)


def test_names_of_files():
    digest = "0123456789abcdef" * 4
    assert record_name("pos", "linear", "scores", digest) == "pos-linear-scores-01234567.json"
    assert record_name("", "", "geometry", digest) == "geometry-01234567.json"
    assert "/" not in record_name("a/b", "mlp", "scores", digest)


def test_evidence_joins_the_scores_of_its_model_and_inputs(tmp_path):
    found = variance_rows({0: 0.5}, 0.25, 1)
    pos = put(tmp_path, "m", "pos", 9, p_best=False)
    put(tmp_path, "m", "srl", 9, p_best=False)
    put(tmp_path, "other", "pos", 9, p_best=False)
    beside = put_evidence(pos, "training_variance", found)
    # Where it lies does not matter.
    elsewhere = tmp_path / "theirs" / "m" / "c"
    elsewhere.mkdir(parents=True)
    beside.rename(elsewhere / beside.name)
    by_name = {
        (r.model.name, r.task.name): r.evidence_rows("training_variance")
        for r in find_results(tmp_path).values()
    }
    assert by_name == {("m", "pos"): Rows.of(found), ("m", "srl"): None, ("other", "pos"): None}


def test_of_several_records_of_evidence_the_current_and_most_complete_counts(tmp_path):
    path = put(tmp_path, "m", "pos", 9, p_best=False)

    def variances(sd):
        return variance_rows({}, sd, 1)

    def counts():
        records = load(tmp_path).records()
        orders = records, dict(reversed(records.items()))
        found = [
            results_with_evidence(order)[path].row("training_variance", "training_sd").value
            for order in orders
        ]
        assert found[0] == found[1]
        return found[0]

    present = get_measurement("training_variance").version
    for other, sd in ((present + 1, 0.3), (present, 0.2), (present - 1, 0.1)):
        put_evidence(path, "training_variance", variances(sd), version=other)
    assert counts() == 0.2
    # Other options count for less than fewer layers, and layers for more than their place.
    other = {"settings": {"x": 1}, "extent": {0: 5, 1: 5}}
    put_evidence(path, "training_variance", variances(0.4), **other)
    assert counts() == 0.2
    for folder, extent in (("a", {0: 5, 1: 6}), ("z", {0: 5})):
        there = tmp_path / folder / "m" / "c"
        there.mkdir(parents=True)
        put_evidence(path, "training_variance", variances(0.5), extent=extent).rename(
            there / "x-01234567.json"
        )
        put_evidence(path, "training_variance", variances(0.2))
        assert counts() == 0.5


def test_evidence_of_a_measurement_that_is_not_known_stays_plain(tmp_path):
    path = put(tmp_path, "m", "pos", 9, p_best=False)
    record = load(tmp_path).records()[path]
    key = record_key(record.inputs, "wug", record.measurement_version, {})
    update = {"measurement": "wug", "key": key, "rows": Rows.of([Row("a", 1.0)])}
    other = record.model_copy(update={**update, "behind": read_result(path).headline})
    write_record(path.with_name(record_name("pos", "linear", "wug", key)), other, {})
    assert read_result(path).evidence_rows("wug") == Rows.of([Row("a", 1.0)])


def test_a_file_is_read_by_its_path_whatever_its_name(tmp_path):
    path = put(tmp_path, "m", "pos", 9)
    renamed = path.rename(path.with_name("mine.json"))
    assert read_result(renamed).row("training_variance", "training_sd").n == 4
    assert read_result(renamed).model.name == "m"


def test_evidence_alone_is_no_result(tmp_path):
    path = put(tmp_path, "m", "pos", 9)
    (beside,) = [p for p in load(tmp_path).records() if p != path]
    with pytest.raises(UserError, match=r"a record of training_variance; name that of the scores"):
        read_result(beside)


def test_duplicates_within_a_folder_and_between_folders(tmp_path, capsys):
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    path = put(mine, "m", "pos", 9)
    fuller = put(theirs, "m", "pos", 9)
    result = read_result(fuller)
    write_record(fuller, with_seeds(result, 2), {})
    # The folder named first; within one folder the most complete.
    assert list(results_with_evidence(load(mine, theirs).records())) == [path]
    assert list(results_with_evidence(load(theirs, mine).records())) == [fuller]
    assert list(results_with_evidence(load(tmp_path).records())) == [fuller]
    assert capsys.readouterr().err.count("left out 1 duplicate result") == 3
    # Evidence is as unique as scores.
    found = load(mine, theirs).records()
    assert len(found) == 2
    assert all(r.evidence_rows("training_variance") for r in results_with_evidence(found).values())


def test_results_of_another_schema_are_counted_once_for_each_folder(tmp_path, capsys):
    for model in ("m", "n"):
        for task in ("pos", "srl"):
            put(tmp_path, model, task, 9, p_best=False)
    for path in load(tmp_path / "m").records():
        content = json.loads(path.read_text())
        # As schema 5 was: nothing of it has to be what it is now.
        path.write_text(json.dumps({"schema_version": 5, "layers": content["rows"]["layer"]}))
    assert {r.model.name for r in find_results(tmp_path).values()} == {"n"}
    error = capsys.readouterr().err
    assert error.count("left out") == 1
    place = tmp_path / "m" / "c"
    assert f"left out 2 results of schema 5 in {place}; this version reads schema 9" in error
    (path, *_) = (tmp_path / "m" / "c").glob("*.json")
    with pytest.raises(UserError, match="result schema 5, this version reads 9"):
        read_record(path)


def test_command_versions_machine_and_state_of_the_code():
    found = provenance("python run_probes.py", torch.device("cpu"))
    assert found["command"] == "python run_probes.py"
    assert found["device"] == "cpu"
    assert found["torch"] == version("torch")  # torch.__version__ may name CUDA, too
    assert int(found["cores"]) >= 1
    assert re.fullmatch(r"\d+ GiB", found["memory"])
    assert found["processor"]
    # No repository, no commit.
    assert re.fullmatch(r"[0-9a-f]{40}( with changes)?", found.get("git", "0" * 40))


FINITE = st.none() | st.floats(allow_nan=False, allow_infinity=False)
AXES = st.dictionaries(
    st.sampled_from(["head", "rank", "kind"]), st.integers(-5, 500) | st.text(max_size=3)
)


ROWS = st.lists(
    st.builds(
        Row,
        st.text("ab", min_size=1, max_size=2),
        FINITE,
        st.none() | st.integers(0, 24),
        FINITE,
        FINITE,
        st.sampled_from(["train", "dev", "test"]),
        st.none() | st.integers(0, 10**6),
        FINITE,
        st.text(max_size=3),
        AXES,
    ),
    max_size=6,
)


@given(ROWS)
def test_rows_are_the_same_after_they_were_columns_and_a_file(rows):
    columns = Rows.of(rows)
    assert list(columns) == rows
    assert list(Rows.model_validate_json(columns.model_dump_json())) == rows
    assert len(columns) == len(rows)


@given(ROWS, ROWS)
def test_some_rows_are_those_that_a_loop_would_choose(rows, more):
    columns = Rows.of(rows)
    assert columns.along("head") == [row for row in rows if "head" in row.axes]
    assert list(columns.extended(more)) == [*rows, *more]
    assert columns.extended(more) == Rows.of([*rows, *more])
    for row in (*rows, *more):
        same_metric = [x for x in rows if x.metric == row.metric]
        assert columns.with_metric(row.metric) == same_metric
        same_axes = [x for x in same_metric if x.axes.keys() == row.axes.keys()]
        assert columns.matching(row.metric, **dict.fromkeys(row.axes, ...)) == same_axes
        equal = [x for x in same_axes if x.axes == row.axes]
        assert columns.matching(row.metric, **row.axes) == equal
        several = {axis: (None, value, "no value") for axis, value in row.axes.items()}
        assert columns.matching(row.metric, **several) == equal
    assert columns.matching("a", axis_of_none=...) == []


@pytest.mark.parametrize("place", ["facts", "model", "rows"])
def test_a_name_may_not_occur_twice(tmp_path, place):
    path = put(tmp_path, "m", "pos", 9)
    content = path.read_text()
    changed_content = content.replace(f'"{place}":{{', f'"{place}":{{"name":[1],"name":[2],', 1)
    assert changed_content != content
    path.write_text(changed_content)
    with pytest.raises(UserError):
        read_record(path)
    twice = content.replace('"notes":[', '"notes":["[1]","[2]"],"notes":[', 1)
    assert twice != content
    path.write_text(twice)
    with pytest.raises(UserError, match="notes occurs twice"):
        read_record(path)


def test_names_that_differ_by_a_list_of_numbers_are_two(tmp_path):
    path = put(tmp_path, "m", "pos", 9, facts={"probe_parameters": 1, "group_metric": "accuracy",
                                               "a [1]": "b [1]", "a [2]": "b [2]"})  # fmt: skip
    assert read_record(path).facts["a [2]"] == "b [2]"


def test_numbers_of_numpy_become_plain_ones_and_nan_none():
    rows = Rows.of(
        [
            Row("m", np.float32(0.5), np.int64(3), n=np.int32(7), axes={"head": np.int64(2)}),
            Row("m", np.nan, low=np.float64("nan"), p=np.float64(0.25)),
        ]
    )
    assert (rows.value, rows.layer, rows.n, rows.low) == (
        (0.5, None),
        (3, None),
        (7, None),
        (None, None),
    )
    assert rows.p == (None, 0.25)
    assert rows.axes == {"head": (2, None)}
    assert all(type(x) in (int, float, type(None)) for x in (*rows.value, *rows.axes["head"]))
    assert json.loads(rows.model_dump_json())["value"] == [0.5, None]


def test_columns_of_nothing_but_defaults_are_not_in_the_file():
    rows = Rows.of([Row("m", None, 0), Row("m", 0.5, 1, why="few", axes={"head": 1})])
    stored = json.loads(rows.model_dump_json())
    assert stored == {
        "metric": ["m", "m"],
        "value": [None, 0.5],
        "layer": [0, 1],
        "why": ["", "few"],
        "axes": {"head": [None, 1]},
    }
    assert json.loads(Rows().model_dump_json()) == {}
    assert list(Rows.model_validate({})) == []
    assert list(Rows.model_validate({"metric": ["m"]})) == [Row("m", None)]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([Row("m", float("inf"))], "finite"),
        ([Row("m", "many")], "could not convert string to float: 'many'"),
        ([Row("m", 1.0, axes={"task": "pos"})], "an axis cannot be called 'task'; rename it"),
        ([Row("m", 1.0, axes={"low": 1})], "an axis cannot be called 'low'; rename it"),
        ([("m", 1.0)], "a measurement yielded .'m', 1.0., not a Row"),
    ],
)
def test_what_is_no_row_is_refused(rows, message):
    with pytest.raises((ValueError, TypeError), match=message):
        Rows.of(rows)


def test_columns_of_different_lengths_are_refused():
    stored = json.loads(Rows.of([Row("m", 1.0), Row("m", 2.0)]).model_dump_json())
    stored["value"].pop()
    with pytest.raises(ValueError, match="columns of different lengths"):
        Rows.model_validate(stored)


def test_an_estimate_is_a_row_with_its_interval_or_the_reason():
    known = Estimate(value=0.5, interval=(0.4, 0.7))
    assert Row.estimated("ami", known, 2, axes={"labels": "upos"}) == Row(
        "ami", 0.5, 2, 0.4, 0.7, axes={"labels": "upos"}
    )
    few = Estimate(value=0.5, interval=None, missing="few words")
    assert Row.estimated("ami", few) == Row("ami", 0.5, why="few words")


def test_texts_that_recur_are_numbered_in_the_file_and_read_back():
    features = (None, "nouns", -1)
    rows = [Row("m", float(i), i, axes={"feature": features[i % 3]}) for i in range(60)]
    stored = json.loads(Rows.of(rows).model_dump_json())
    assert stored["metric"] == {"distinct": ["m"], "at": [0] * 60}
    assert stored["axes"]["feature"] == {"distinct": [None, "nouns", -1], "at": [0, 1, 2] * 20}
    assert stored["layer"] == list(range(60))
    assert Rows.model_validate(stored) == Rows.of(rows)
    stored["metric"]["at"][0] = 1
    with pytest.raises(KeyError):
        Rows.model_validate(stored)
