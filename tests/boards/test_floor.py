"""The floor of scores: the highest of what needs no trained layer."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from board_by_hand import N, put, put_evidence
from results_by_hand import make_result, variance_rows, with_intervals, with_rows
from scipy.stats import binom, binomtest
from statistics_simulation import false_floors

from probes.boards import floors
from probes.boards.floors import _floor_test, with_floor
from probes.boards.layer_tables import floor_notes, model_tables, score_table
from probes.boards.rankings import Candidate
from probes.boards.shown_together import all_groups
from probes.common.origin import Origin
from probes.frames.joined_results import find_results, read_result
from probes.pages.layers_md import layers_md
from probes.probing.scores import RULES
from probes.records.record_files import read_arrays, write_record
from probes.records.result import FloorTest
from probes.records.row import Row
from probes.statistics.metrics import metrics
from probes.tables.printing import TIE


def make_twin(scores, task="pos", **more):
    return make_result(task, scores, model="random:m", random_seed=0, **more)


def scored(layer_0, type_majority, *, majority=0.2, twin=None, **more):
    """A result whose other layer scores .9, and its floor's candidates."""
    rules = {"majority": {"accuracy": majority}, "type majority": {"accuracy": type_majority}}
    given = make_result(scores=(layer_0, 0.9), baselines=rules, **more)
    if twin is None:
        return given
    return with_floor(given, [make_twin((twin, twin - 0.1))])


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (scored(0.8, 0.86, twin=0.73), ("type majority", 0.86)),
        (scored(0.893, 0.86, twin=0.73), ("layer 0", 0.893)),
        (scored(0.5, 0.6, twin=0.65), ("random twin", 0.65)),
        # Before the twin is measured.
        (scored(0.5, 0.6), ("type majority", 0.6)),
        # Rules of the word can be worse than the most frequent label.
        (scored(0.4, 0.45, majority=0.5), ("majority", 0.5)),
        (scored(None, None), ("majority", 0.2)),
        (scored(None, None, majority=None), None),
        # A layer above the floor's is not layer 0.
        (scored(0.8, 0.3, layers=(1, 2)), ("type majority", 0.3)),
    ],
)
def test_the_floor_is_the_highest_and_says_of_what(given, expected):
    assert given.floor == expected


def test_a_twin_is_scored_at_its_best_layer_on_test():
    twin = make_twin((0.6, 0.7, 0.4))
    on_dev = [Row("accuracy", x, layer, split="dev") for layer, x in enumerate((0.5, 0.6, 0.7))]
    twin = with_rows(twin, on_dev)
    assert twin.best_layer == 2
    given = with_floor(make_result(scores=(0.5, 0.9, 0.9)), [twin])
    assert given.floor == ("random twin", 0.7)
    given = with_floor(make_result(scores=(0.5, 0.9), layers=(0, 2)), [twin])
    assert given.floor == ("random twin", 0.6)  # of the layers that both have


@pytest.mark.parametrize(("fewer", "is_above"), [(3, False), (8, True)])
def test_layers_are_compared_with_the_floor_on_the_same_words(tmp_path, fewer, is_above):
    """Words that one layer has right and the other wrong decide: by a sign test 3 are too few.

    The difference, of 0.8 or 2 points, is within the interval of ± 5 in both cases.
    """
    assert (binomtest(fewer, fewer).pvalue < 0.05) == is_above
    more = {"p_best": False, "rules": {"majority": np.zeros(N)}}
    model = put(tmp_path, "m", "pos", 0, wrongs=(200, 200 - fewer), **more)
    test = with_floor(read_result(model)).floor_test
    assert test == ({1} if is_above else set(), False, ())
    # The twin's best layer on test.
    own = read_result(put(tmp_path, "m", "pos", 0, wrongs=(250, 200 - fewer), **more))
    assert 1 in with_floor(own).floor_test.above
    twin = put(tmp_path, "random:m", "pos", 0, wrongs=(200, 230), random_seed=0, **more)
    given = with_floor(own, [read_result(twin)])
    assert given.floor == ("random twin", 0.5)
    assert (1 in given.floor_test.above) == is_above


def test_rules_are_right_on_words_too_and_an_older_record_has_but_their_score(tmp_path):
    def tested(wrong, right, *, stored=True):
        path = put(tmp_path, "m", "pos", 0, wrongs=(390, wrong), p_best=False, rules={"r": right})
        if not stored:
            arrays = read_arrays(path)
            write_record(path, read_result(path), {x: arrays[x] for x in arrays.keys() - {*RULES}})
        return 1 in with_floor(read_result(path)).floor_test.above

    place = np.arange(N)
    assert tested(192, place >= 200)  # right wherever the rule is, and on 8 words more
    assert not tested(192, place < 200)  # right where it is wrong: ± 10 points
    # A plain number, from which 2 points are less than 1.96 standard errors of 2.5.
    assert not tested(192, place >= 200, stored=False)
    assert tested(140, place < 200, stored=False)


def test_training_variance_is_part_of_the_test(tmp_path):
    def tested(sd, rule_sd=0.0):
        rules = {"rule": np.arange(N) >= 205}
        path = put(tmp_path, "m", "pos", 0, wrongs=(200, 180), rules=rules, rule_sd=rule_sd)
        put_evidence(path, "training_variance", variance_rows({0: 0.5, 1: 1.0}, sd, df=28))
        return with_floor(read_result(path)).floor_test

    assert tested(0.001) == ({1}, True, ())
    # Of a difference: √2 × 3 points, where the difference is 5.
    assert tested(0.03) == (set(), True, ())
    # The rule is 6 points below.
    assert tested(0.001, rule_sd=0.01).above == {1}
    assert tested(0.001, rule_sd=0.05).above == set()


@pytest.mark.parametrize("change", [{"project": 32}, {"task__version": 99}, {"view": "cut"}, {}])
def test_a_twin_counts_if_it_was_asked_the_same_wherever_it_lies(tmp_path, change, capsys):
    model = put(tmp_path, "m", "pos", 0, wrongs=(300, 100), p_best=False)
    put(tmp_path, "random:m", "pos", 0, wrongs=(300, 200), random_seed=0, p_best=False, **change)
    floor = ("layer 0", 0.25) if change else ("random twin", 0.5)
    # Whether it is among the results, or has to be looked for in the folder beside.
    for folder in (tmp_path, model.parent):
        results = find_results(folder)
        assert with_floor(results[model], results.values()).floor == floor
        units = [unit for shown in all_groups(results)[0] for unit in shown.units]
        (own,) = (unit.floored["m"] for unit in units if "m" in unit.results)
        assert own.floor == floor
        (table, *_) = model_tables(results)
        assert cells(table)[0] == (f"{100 * floor[1]:.1f}", floor[0])


def test_one_table_in_forty_has_a_layer_above_the_floor_where_all_are_equal():
    # It was one in five when a layer's own interval was compared with the floor's number.
    for name, n_documents, ratio in (("layer 0", 20, 0.0), ("layer 0", 60, 1.0), ("a rule", 60, 2.0)):  # fmt: skip
        found = false_floors(name, n_documents, ratio, n_sets=400)
        assert 0 < found <= binom.ppf(0.999, 400, 0.025) / 400


def agreement(**more):
    """As on `sample`: the subject's form predicts the verb better than any layer does."""
    return make_result(
        "agreement",
        (0.534, 0.624, 0.702, 0.691, 0.725, 0.731, 0.672),
        [0.01, 0.051, 0.5, 0.5, 0.5, 1, 0.5],
        metric="balanced_accuracy",
        baselines={"majority": {"balanced_accuracy": 0.5}},
        references={
            "subject's Number": {"balanced_accuracy": 0.994},
            "type majority": {"balanced_accuracy": 0.765},
        },
        **more,
    )


def test_an_oracle_is_no_floor():
    result = agreement()
    assert result.floor == ("layer 0", 0.534)
    table = score_table([result])
    assert cells(table) == [("53.4", "layer 0")]
    assert ["type majority", "76.5"] in [[cell.text for cell in row.cells] for row in table.rows]
    twin = make_twin((0.572, 0.5), "agreement", metric="balanced_accuracy")
    result = with_floor(result, [twin])
    assert result.floor == ("random twin", 0.572)


def marks(result):
    rows = score_table([result]).rows
    return {row.cells[0].text: row.cells[1].marks for row in rows if row.cells[0].text.isdigit()}


def test_a_score_that_is_not_above_its_floor_is_marked_and_not_the_best():
    # Without intervals, scores are compared as plain numbers.
    assert marks(agreement()) == {
        "0": "▽", "1": "☆≈", "2": "☆", "3": "☆", "4": "☆", "5": "★", "6": "☆"
    }  # fmt: skip
    # With intervals by its lower end: 62.4 − 9.2 < 53.4 < 62.4 − 8.8, 67.2 − 9.2.
    assert marks(with_intervals(agreement(), 0.088))["1"] == "☆≈"
    found = with_intervals(agreement(), 0.092)
    assert (marks(found)["1"], marks(found)["5"], marks(found)["6"]) == ("▽", "★", "☆")
    # Not even the best on dev.
    found = with_intervals(agreement(), 0.2)
    assert set(marks(found).values()) == {"▽"}  # What is not found there is not found best there.
    assert found.best_number == 5
    text = layers_md([found])
    assert "| 5 | 73.1 ± 20.0▽ |" in text.replace(TIE, " ")
    assert "**" not in text.split("##")[1]
    assert "▽ not significantly above the floor" in text
    assert not any(cell.best for row in score_table([found]).rows for cell in row.cells)


@pytest.mark.parametrize(("score", "floored"), [(0.4, True), (0.5, True), (0.51, False)])
def test_without_intervals_a_score_has_to_be_above_the_floor_as_a_plain_number(score, floored):
    rule = {"majority": {"accuracy": 0.5}}
    result = make_result(scores=(0.1, score), baselines=rule, p_best=False, clusters=19)
    assert result.is_floored(1) == floored
    cell = score_table([result]).rows[1].cells[1]
    assert (cell.floored, cell.best) == (floored, not floored)
    assert Candidate("m", Path(), result).ranked == (not floored)
    note = "▽ not significantly above the floor (or, where there are no intervals, not above it)."
    assert note in layers_md([result])
    assert [*floor_notes([scored(0.1, 0.2, clusters=20)])] == [
        "▽ not significantly above the floor (the interval compared with the floor as a plain "
        "number)."
    ]


@pytest.mark.parametrize(
    ("negatives", "kind"),
    [
        (299, "or, where there are no intervals, not above it"),
        (300, "the interval compared with the floor as a plain number"),
    ],
)
def test_the_note_on_the_floor_knows_how_many_negatives_an_interval_takes(negatives, kind):
    metric, labels = "recall_at_1_fpr", {"no": (9, 9, negatives), "yes": (9, 9, 10)}
    rule = {"majority": {metric: 0.5}}
    result = make_result(metric=metric, labels=labels, baselines=rule, p_best=False, clusters=20)
    assert [*floor_notes([result])] == [f"▽ not significantly above the floor ({kind})."]


def cells(table):
    (row,) = (row for row in table.rows if row.cells[0].text == "floor")
    return [(cell.text, cell.note) for cell in row.cells[1:]]


def test_tables_have_the_floor_of_each_task():
    results = [scored(0.8, 0.861), scored(0.5, 0.3, task="depth")]
    assert cells(score_table(results)) == [("86.1", "type majority"), ("50.0", "layer 0")]
    assert "| floor | 86.1 · type majority | 50.0 · layer 0 |" in layers_md(results)
    assert cells(score_table([scored(None, None, majority=None)])) == [("–", "")]


def stored_floor_test(path, monkeypatch, *, twins=()):
    """The test of a result's floor, and whether it was made anew."""
    return floor_test_of(read_result(path), monkeypatch, twins)


def floor_test_of(result, monkeypatch, twins=()):
    made = []

    def make(*arguments):
        made.append(arguments)
        return _floor_test(*arguments)

    monkeypatch.setattr(floors, "_floor_test", make)
    test = with_floor(result, map(read_result, twins)).floor_test
    return test, bool(made)


@pytest.fixture
def tested_result(tmp_path, monkeypatch):
    monkeypatch.setenv("PROBES_CACHE_DIR", str(tmp_path / "cache"))
    rules = {"rule": np.arange(N) >= 205}
    path = put(tmp_path / "results", "m", "pos", 0, wrongs=(200, 180), rules=rules)
    put_evidence(path, "training_variance", variance_rows({0: 0.5, 1: 1.0}, 0.001, df=28))
    return path


def test_a_test_is_made_once_whatever_the_model_is_called(tested_result, tmp_path, monkeypatch):
    first, made = stored_floor_test(tested_result, monkeypatch)
    assert made
    assert first == FloorTest(frozenset({1}), True, ())
    assert stored_floor_test(tested_result, monkeypatch) == (first, False)
    renamed = tmp_path / "other" / "renamed" / "c"
    shutil.copytree(tested_result.parent, renamed)
    for path in renamed.glob("*.json"):
        path.write_text(path.read_text().replace('"name":"m"', '"name":"renamed"'))
    path = renamed / tested_result.name
    assert read_result(path).model.name == "renamed"
    assert stored_floor_test(path, monkeypatch) == (first, False)


def other_arrays(path):
    arrays = dict(read_arrays(path))
    right = arrays["predicted"][0] == arrays["gold"]
    # One more word is right in place of another, so that scores stay.
    swapped = [np.flatnonzero(right.ravel())[0], np.flatnonzero(~right.ravel())[0]]
    arrays["predicted"][0].ravel()[swapped] = arrays["predicted"][0].ravel()[swapped[::-1]]
    write_record(path, read_result(path), arrays)


def other_spread(path):
    put_evidence(path, "training_variance", variance_rows({0: 0.5, 1: 1.0}, 0.002, df=28))


def other_freedom(path):
    put_evidence(path, "training_variance", variance_rows({0: 0.5, 1: 1.0}, 0.001, df=27))


def other_digest_of_examples(path):
    content = json.loads(path.read_text())
    content["examples"]["test_digest"] = "f" * 64
    path.write_text(json.dumps(content))


@pytest.mark.parametrize(
    "change", [other_arrays, other_spread, other_freedom, other_digest_of_examples]
)
def test_whatever_a_test_depends_on_makes_it_anew(tested_result, change, monkeypatch):
    stored_floor_test(tested_result, monkeypatch)
    change(tested_result)
    assert stored_floor_test(tested_result, monkeypatch)[1]
    assert not stored_floor_test(tested_result, monkeypatch)[1]


def test_noise_is_part_of_it_and_metrics_of_plug_ins_are_tested_each_time(
    tested_result, monkeypatch
):
    result = read_result(tested_result)
    assert floor_test_of(result, monkeypatch)[1]
    assert floor_test_of(result.model_copy(update={"key": "0" * 64}), monkeypatch)[1]
    assert not floor_test_of(result, monkeypatch)[1]
    origin = Origin("a plug-in", (tested_result,), "a" * 64)
    monkeypatch.setitem(metrics._origins, "accuracy", origin)
    for _ in range(2):  # whose code may read files that nobody knows of
        assert floor_test_of(result, monkeypatch)[1]


def test_twins_and_their_layers_are_part_of_what_a_test_depends_on(
    tested_result, tmp_path, monkeypatch
):
    more = {"random_seed": 0, "p_best": False}
    twin, other = (
        put(tmp_path / str(wrong), "random:m", "pos", 0, wrongs=(300, wrong), **more)
        for wrong in (190, 150)
    )
    tests = [
        stored_floor_test(tested_result, monkeypatch, twins=x) for x in ((), (twin,), (other,))
    ]
    assert [made for _, made in tests] == [True] * 3
    assert tests[2][0].above == set()
    again = [
        stored_floor_test(tested_result, monkeypatch, twins=x) for x in ((), (twin,), (other,))
    ]
    assert again == [(test, False) for test, _ in tests]


def test_arrays_that_cannot_be_read_are_said_each_time(tested_result, monkeypatch, capsys):
    stored_floor_test(tested_result, monkeypatch)
    tested_result.with_suffix(".npz").write_bytes(b"damaged")
    for _ in range(2):
        test, _ = stored_floor_test(tested_result, monkeypatch)
        assert test is None
        assert capsys.readouterr().err.startswith(
            f"not tested: {tested_result.with_suffix('.npz')}"
        )
