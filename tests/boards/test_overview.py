"""Findings in words, and the marks of silver labels and of parts of a corpus."""

import shlex

import pandas as pd
import pytest
from board_by_hand import put
from results_by_hand import make_result, with_intervals

from probes.__main__ import main
from probes.boards.floors import with_floor
from probes.boards.overview import sentence
from probes.boards.score_charts import _chart_scores
from probes.frames.joined_results import find_results
from probes.pages.layers_md import layers_md

FLOOR = {"baselines": {"type majority": {"accuracy": 0.6}}}
SCORES = (0.5, 0.7, 0.9, 0.89, 0.8, 0.88)
TIED = [0.001, 0.001, 1.0, 0.4, 0.001, 0.06]


def made(scores=SCORES, p_best=None, half=0.02, **more):
    return with_intervals(make_result("pos", scores, p_best, **more), half)


FLOORED = "30.0 points above the floor of 60.0 (type majority)."


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (made(p_best=TIED, **FLOOR), f"pos is decoded best at layers 2–3, 5 of 5: accuracy 90.0 [88.0, 92.0] at layer 2, {FLOORED}"),
        (made(**FLOOR), f"pos is decoded best at layer 2 of 5: accuracy 90.0 [88.0, 92.0], {FLOORED}"),
        # Layer 2 is the best on dev, which has other sentences.
        (made(p_best=[0.001, 0.001, 0.01, 1.0, 0.001, 0.001], **FLOOR), f"pos is decoded best at layer 3 of 5; layer 2, chosen on dev, is significantly worse: accuracy 90.0 [88.0, 92.0], {FLOORED}"),
        (made(p_best=False, **FLOOR), f"pos is decoded best at layer 2 of 5 on dev: accuracy 90.0 [88.0, 92.0], {FLOORED}"),
        (made(p_best=TIED, half=0.31, **FLOOR), "pos is not significantly above the floor of 60.0 (type majority): accuracy 90.0 [59.0, 121.0] at layer 2 of 5, the best on dev."),
        (make_result("pos", (0.5, 0.7), **FLOOR), "pos is decoded best at layer 1 of 1: accuracy 70.0 (no interval), 10.0 points above the floor of 60.0 (type majority)."),
        (make_result("depth", (0.5, 0.703), metric="nspr"), "depth is decoded best at layer 1 of 1: NSpr .703 (no interval), .203 above the floor of .500 (layer 0)."),
        (make_result("pos", (0.5, 0.7), layers=(1, 2), baselines={"none": {}}), "pos is decoded best at layer 2 of 2: accuracy 70.0 (no interval), with no floor to compare it with."),
        (make_result("pos", (None, None)), "pos has no best layer: no score on dev is defined."),
    ],
)  # fmt: skip
def test_a_sentence_says_where_how_well_and_above_what(result, said):
    assert sentence(result) == said


def test_a_random_twin_is_a_floor():
    twin = make_result("pos", (0.1, 0.85), model="random:m", random_seed=0)
    result = with_floor(made(p_best=TIED, **FLOOR), [twin])
    assert sentence(result).endswith(", 5.0 points above the floor of 85.0 (random twin).")


@pytest.fixture
def silver(tmp_path):
    """Two models on silver labels and a part of a corpus."""
    marks = {"corpus__silver": ("upos",), "task__needs": ("upos",)}
    part = {"corpus__limited": True, "corpus__limit": 30}
    for model, wrong in (("one", 20), ("two", 40)):
        put(tmp_path, model, "pos", wrong, **marks, **part)
    return tmp_path


def test_layers_md_marks_silver_labels_and_limits(silver):
    text = layers_md(list(find_results(silver).values())[:1])
    assert text.startswith("# one on c 1, limit 30\n")
    assert "| pos (accuracy, silver) |" in text
    assert "- pos (silver), linear, layer 1: accuracy 95.0; 1 parameters" in text


@pytest.fixture
def types(tmp_path):
    """One model in two types, and another one in float16."""
    for model, dtype, wrong in (("m", "float32", 20), ("m", "bfloat16", 40), ("n", "float16", 60)):
        put(tmp_path, model, "pos", wrong, dtype=dtype, groups={"near": 9})
    return tmp_path


COMPARE_TYPES = "compare m 'm (bfloat16)' 'n (float16)' --results {} --format md"
SAID = [
    ("silver", "show {} --by localisation", ["one · c, limit 30 · linear probe: no localisation"]),
    ("silver", "show {} --by training_variance", ["one · c, limit 30 · linear probe · training variance", "pos (accuracy, silver)"]),
    ("silver", "compare one two --results {} --format md", ["c 1, limit 30", "pos (accuracy, silver)"]),
    ("silver", "leaderboard {}", ["c 1, limit 30"]),
    ("types", "leaderboard {} --format md", ["| m |", "| m (bfloat16) |", "| n (float16) |"]),
    ("types", COMPARE_TYPES, ["| pos (accuracy), n = 9 | m |", "| | m (bfloat16) |", "| | n (float16) |"]),
    ("types", "claims {}", ["m · c 1 · linear probe", "m (bfloat16) · c 1", "n (float16) · c 1"]),
    ("types", "show {} --by training_variance", ["m · c · linear", "m (bfloat16) · c · linear", "n (float16) · c · linear"]),
]  # fmt: skip


@pytest.mark.parametrize(("results", "command", "said"), SAID)
def test_commands_mark_silver_labels_limits_and_types(request, capsys, results, command, said):
    folder = request.getfixturevalue(results)
    assert main(shlex.split(command.format(folder))) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert [part for part in said if part not in text] == []


def test_a_layer_has_the_mark_that_says_most():
    flags = ("tied", "best", "beaten", "floored")
    marks = {
        (): "none",
        ("tied",): "not significantly worse",
        ("tied", "best"): "best on dev",
        ("beaten",): "worse than another",
        ("best", "floored"): "not significantly above the floor",
    }
    about = {"metric": "accuracy", "value": 0.5, "low": 0.4, "high": 0.6, "floor": 0.3}
    lines = [{**about, **{flag: flag in layer_flags for flag in flags}} for layer_flags in marks]
    shown = _chart_scores(pd.DataFrame(lines))
    assert shown["mark"].tolist() == list(marks.values())
    assert shown["value"].tolist() == [50.0] * len(marks)
