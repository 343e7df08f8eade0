"""Silver labels and limited corpora are marked wherever scores are shown."""

import pytest
from board_by_hand import put
from results_by_hand import make_result, with_rows

from probes.__main__ import main
from probes.measurements.joined_results import find_results
from probes.pages.layers_md import layers_md
from probes.records.row import Row


@pytest.fixture
def folder(tmp_path):
    """Two models on silver labels and a part of a corpus."""
    marks = {"corpus__silver": ("upos",), "task__needs": ("upos",)}
    part = {"corpus__limited": True, "corpus__limit": 30}
    for model, wrong in (("one", 20), ("two", 40)):
        put(tmp_path, model, "pos", wrong, **marks, **part)
    return tmp_path


def test_layers_md_marks_silver_labels_and_limits(folder):
    text = layers_md(list(find_results(folder).values())[:1])
    assert text.startswith("# one on c 1, limit 30\n")
    assert "| pos (accuracy, silver) |" in text
    assert "- pos (silver), linear, layer 1: accuracy 95.0; 1 parameters" in text


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (
            ["show", "{}", "--by", "localisation"],
            ["one · c, limit 30 · linear probe: no localisation"],
        ),
        (
            ["show", "{}", "--by", "training_variance"],
            ["one · c, limit 30 · linear probe · training variance", "pos (accuracy, silver)"],
        ),
        (
            ["compare", "one", "two", "--results", "{}", "--format", "md"],
            ["c 1, limit 30", "pos (accuracy, silver)"],
        ),
        (["leaderboard", "{}"], ["c 1, limit 30"]),
    ],
)
def test_commands_mark_them_too(folder, capsys, command, said):
    assert main([part.format(folder) for part in command]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert all(part in text for part in said)


@pytest.fixture
def two_types(tmp_path):
    """One model in two types, and another one in float16."""
    for model, dtype, wrong in (("m", "float32", 20), ("m", "bfloat16", 40), ("n", "float16", 60)):
        put(tmp_path, model, "pos", wrong, dtype=dtype, groups={"near": 9})
    return tmp_path


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["leaderboard", "{}", "--format", "md"], ["| m |", "| m (bfloat16) |", "| n (float16) |"]),
        (
            ["compare", "m", "m (bfloat16)", "n (float16)", "--results", "{}", "--format", "md"],
            ["| pos (accuracy), n = 9 | m |", "| | m (bfloat16) |", "| | n (float16) |"],
        ),
        (["claims", "{}"], ["m · c 1 · linear probe", "m (bfloat16) · c 1", "n (float16) · c 1"]),
        (
            ["show", "{}", "--by", "training_variance"],
            ["m · c · linear", "m (bfloat16) · c · linear", "n (float16) · c · linear"],
        ),
    ],
)
def test_commands_name_the_type_that_a_model_ran_in(two_types, capsys, command, said):
    assert main([part.format(two_types) for part in command]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert [part for part in said if part not in text] == []


def test_groups_have_their_metric():
    result = make_result(groups={"near": 7}, facts={"probe_parameters": 1, "group_metric": "mae"})
    groups = [Row("mae", 0.5, layer, axes={"group": "near"}) for layer in result.layers]
    result = with_rows(result, groups)
    assert "mae, lower is better, by group: near (n = 7) .500" in layers_md([result])


def test_layers_md_explains_stars_only_where_layers_were_tested():
    tested = make_result(scores=(0.7, 0.69, 0.2), layers=(1, 2, 3), p_best=[1.0, 0.5, 0.001])
    text = layers_md([tested])
    assert "| 1 | **70.0**★ |" in text
    assert "| 2 | 69.0☆ |" in text
    assert "| 3 | 20.0 |" in text
    assert "★ best layer on dev · ☆ not significantly worse than any other\n" in text
    beaten = make_result(scores=(0.7, 0.69, 0.2), layers=(1, 2, 3), p_best=[0.01, 1.0, 0.001])
    text = layers_md([beaten])
    assert "| 1 | **70.0**★† |" in text
    assert "| 2 | 69.0☆ |" in text
    assert " · † significantly worse than another\n" in text
    text = layers_md([make_result(scores=(0.7, 0.69, 0.2), layers=(1, 2, 3), p_best=False)])
    assert "| 2 | 69.0 |" in text
    assert "Layers are not tested against each other, which takes training variance" in text
