"""Silver labels and limited corpora are marked wherever scores are shown."""

import pytest
from board_by_hand import put

from probes.__main__ import main
from probes.records.files import read_results
from probes.records.header import ExampleCounts
from probes.rendering.layers_md import layers_md


@pytest.fixture
def folder(tmp_path):
    """Two models on silver labels and a part of a corpus."""
    marks = {"corpus__silver": ("upos",), "task__needs": ("upos",), "quick": True}
    part = {"corpus__limited": True, "corpus__limit": 30}
    for model, wrong in (("one", 20), ("two", 40)):
        put(tmp_path, model, "pos", wrong, **marks, **part)
    return tmp_path


def test_layers_md_marks_silver_labels_and_limits(folder):
    text = layers_md(list(read_results(folder))[:1])
    assert text.startswith("# one on c 1, limit 30\n")
    assert "| pos (accuracy, silver) |" in text
    assert "- pos (silver), linear, layer 1: accuracy 95.0; one seed; quick run; " in text


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["show", "{}", "--by", "mix"], ["one · c, limit 30 · linear probe: no mix"]),
        (["compare", "one", "two", "--results", "{}"], ["c 1, limit 30", "pos (accuracy, silver)"]),
        (["leaderboard", "{}"], ["c 1, limit 30"]),
    ],
)
def test_commands_mark_them_too(folder, capsys, command, said):
    assert main([part.format(folder) for part in command]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert all(part in text for part in said)


def test_groups_have_their_metric(folder):
    result = next(iter(read_results(folder)))
    (first, best) = result.layers
    cell = best.cells[0].model_copy(update={"groups": {"near": 0.5}})
    counts = result.examples.model_copy(update={"groups": {"near": 7}})
    assert isinstance(counts, ExampleCounts)
    changed = result.model_copy(
        update={
            "layers": (first, best.model_copy(update={"cells": (cell,)})),
            "examples": counts,
            "group_metric": "mae",
        }
    )
    assert "mae, lower is better, by group: near (n = 7) .500" in layers_md([changed])
