"""Scores beside what measurements say of the same layers."""

import pytest
from board_by_hand import put
from corpus_records import corpus_record
from results_by_hand import changed, evidence_record, make_result, with_intervals

from probes.__main__ import main
from probes.boards.decodable_and_used import columns_by_task, use_chart, use_tables
from probes.common.errors import UserError
from probes.measurements.plugins import load_file
from probes.records.row import Row
from probes.tables.charts import PAPER

HALF = 0.05

PLUG_IN = """
from probes import measurement
from probes.measurements.measurement import UseColumn

@measurement("said", after="scores", use_columns=[UseColumn("said", "What it says.", "readable", {})])
def said(context):
    "Whatever is said."

@measurement("asked", after="scores", use_columns=[UseColumn("answered", "", "readable", {}, decodable="decodable")])
def asked(context):
    "Answers to some of the examples."

@measurement(
    "lost",
    use_columns=[
        UseColumn("lost", "What is lost.", "erasure_drop", {"draw": 1}, "erased", tested=True),
        UseColumn("lost by agreement", "", "erasure_drop", {"draw": 2}, task="agreement"),
    ],
)
def lost(context):
    "Whatever is lost."
"""


@pytest.fixture(autouse=True)
def registered(plug_ins, write):
    load_file(write(PLUG_IN))


def lost_rows():
    for task, draw, layer in (("pos", 1, 0), ("depth", 1, 0), ("pos", 2, 1), ("none", 3, 1)):
        value = 0.1 * draw + 0.01 * layer + 0.5 * (task == "depth")
        yield Row("erasure_drop", value, layer, axes={"erased": task, "draw": draw})


@pytest.fixture
def results():
    made = {}
    for task in ("pos", "agreement", "depth"):
        metric = "nspr" if task == "depth" else "accuracy"
        given = with_intervals(make_result(task, (0.5, 0.75), metric=metric), HALF)
        if task == "pos":
            rows = [Row("readable", 0.2, 0), Row("readable", 0.9, 1, 0.8, 0.95)]
            given = given.with_evidence(evidence_record(given, "said", rows))
        made[task] = given
    return made


@pytest.fixture
def others():
    return {"lost": corpus_record("lost", lost_rows(), 1)}


def numbers(column):
    return {layer: (cell.value, cell.interval) for layer, cell in column.cells.items()}


def test_each_task_has_what_is_said_of_it(results, others):
    found = columns_by_task(results, others, "linear")
    names = {task: [x.name for x in own] for (_, task), own in found.items()}
    assert names == {
        "pos": ["decodable", "said", "lost"],
        "agreement": ["decodable", "lost by agreement"],
        "depth": ["decodable", "lost"],
    }
    scores, said, lost = found["m", "pos"]
    assert numbers(scores)[1] == (0.75, pytest.approx((0.7, 0.8)))
    assert scores.cells[1].best
    assert numbers(said) == {0: (0.2, None), 1: (0.9, (0.8, 0.95))}
    assert numbers(lost) == {0: (pytest.approx(0.1), None)}
    assert numbers(found["m", "depth"][1]) == {0: (pytest.approx(0.6), None)}
    assert numbers(found["m", "agreement"][1]) == {1: (pytest.approx(0.21), None)}


def test_numbers_that_are_not_significant_are_marked(results):
    of = (("pos", 0, 0.05, 0.3), ("pos", 1, 0.049, 0.3), ("depth", 0, None, 0.3))
    rows = [
        Row("erasure_drop", x, layer, p=p, axes={"erased": task, "draw": 1})
        for task, layer, p, x in of
    ]
    columns = columns_by_task(results, {"lost": corpus_record("lost", rows, 1)}, "linear")
    marks = {
        (task, layer): cell.floored
        for (_, task), (_, *own) in columns.items()
        for layer, cell in own[-1].cells.items()
    }
    assert marks == {("pos", 0): True, ("pos", 1): False, ("depth", 0): False}


def test_scores_on_two_corpora_stand_side_by_side(results, others):
    elsewhere = changed(results["depth"], "corpus", name="d")
    found = columns_by_task({**results, "more": elsewhere}, others, "linear")["m", "depth"]
    heads = [(x.name, x.corpus) for x in found]
    assert heads == [("decodable", "c"), ("decodable", "d"), ("lost", "c")]


def test_tasks_with_scores_alone_and_other_models_are_left_out(results, others):
    assert columns_by_task(results, {}, "linear").keys() == {("m", "pos")}
    of_another = {"lost": corpus_record("lost", lost_rows(), 1, digest="another")}
    assert columns_by_task(results, of_another, "linear").keys() == {("m (m, float32)", "pos")}
    assert columns_by_task(results, others, "mlp") == {}


def test_two_records_of_the_same_numbers_are_refused(results, others):
    twice = {**others, "more": corpus_record("lost", lost_rows(), 1, key="4" * 64)}
    with pytest.raises(UserError, match="m, pos: several records have numbers called lost on c;"):
        columns_by_task(results, twice, "linear")


def test_the_table_has_a_row_for_each_layer(results, others):
    table = next(use_tables(results, others, "linear"))
    heads = ("decodable\naccuracy\nc\nn = 9", "said\nreadable\nc", "lost\ndrop\nc")
    assert table.heads == ("layer", *heads)
    rows = [[cell.text for cell in row.cells] for row in table.rows]
    assert rows == [["0", "50.0", "20.0", "10.0"], ["1", "75.0", "90.0", "–"]]
    said = "What it says. What is lost. Columns with another n are on other examples"
    assert said in table.notes[0]


def answers(given, n):
    """Of 9 examples, `n` have an answer; the probe is right on all of these but one."""
    rows = [Row("readable", 0.8, 1, n=n), Row("decodable", 0.875, 1, n=n)]
    return given.with_evidence(evidence_record(given, "asked", rows))


@pytest.mark.parametrize(
    ("n", "metric", "expected"),
    [
        # 7 of 9 are decodable, which is less than 80 %, but the one without an answer is not.
        (8, "accuracy", ("accuracy", "8", 0.875)),
        (9, "accuracy", ("accuracy", "9", 7 / 9)),
        # Answers are scored by their accuracy.
        (9, "macro_f1", ("accuracy", "9", 0.875)),
    ],
)
def test_probes_are_compared_with_answers_on_the_examples_that_have_one(n, metric, expected):
    given = with_intervals(make_result("pos", (0.5, 7 / 9), metric=metric), HALF)
    table = next(use_tables({"pos": answers(given, n)}, {}, "linear"))
    decodable, answered = columns_by_task({"pos": answers(given, n)}, {}, "linear")["m", "pos"]
    assert (decodable.metric_label, decodable.n, decodable.cells[1].value) == expected
    assert (answered.n, answered.cells[1].value) == (f"{n}", 0.8)
    restricted = expected[2] == 0.875
    assert decodable.cells[1].best == (not restricted)
    said = f"It is on the {n} of 9 test examples that are answered"
    assert (said in table.notes[0], "another n" in table.notes[0]) == (restricted, False)


def test_the_chart_is_in_percent_unless_a_score_is_not(results, others):
    def drawn(*tasks):
        some = {path: x for path, x in results.items() if x.task.name in tasks}
        chart = str(use_chart(some, others, "linear", PAPER).chart)
        return ("times 100" in chart, "m · depth" in chart, "'value': 75.0" in chart)

    assert drawn("pos") == (False, False, True)
    assert drawn("pos", "depth") == (True, True, True)
    assert use_chart({}, others, "linear", PAPER).chart is None


def test_without_anything_beside_the_scores_the_command_says_what_to_measure(tmp_path, capsys):
    put(tmp_path, "m", "pos", 9)
    assert main(["show", str(tmp_path), "--by", "use"]) == 2
    assert "there is nothing but scores; measure --evidence lens" in capsys.readouterr().err
