"""What models retain of a larger one's scores, on results written by hand."""

from pathlib import Path

import numpy as np
import pytest
from board_by_hand import N, put
from drawn import column

from probes.__main__ import main
from probes.boards.board import make_boards, named
from probes.boards.groups import group
from probes.boards.retention import FRONT, MEAN, shares
from probes.boards.score_charts import pareto
from probes.measurements.joined_results import find_results
from probes.statistics.bootstrap import resample
from probes.tables.charts import PAPER


@pytest.fixture
def folder(tmp_path):
    """Errors of a large model, two of one size, and a small one that has one task only."""
    for model, parameters, pos, srl in (
        ("large", 110_000_000, 40, 80),
        ("good", 66_000_000, 60, 88),
        ("bad", 66_000_000, 200, 240),
    ):
        known = {"words_per_second": "1234.6", "bytes_on_disk": "438000000"}
        fields = {"provenance": known} if model == "large" else {}
        put(tmp_path, model, "pos", pos, model__parameters=parameters, **fields)
        put(tmp_path, model, "srl", srl, model__parameters=parameters)
    put(tmp_path, "small", "pos", 100, model__parameters=22_000_000)
    put(tmp_path, "random:large", "pos", 10, random_seed=0, model__parameters=110_000_000)
    return tmp_path


def test_shares_and_their_intervals_are_of_paired_scores(folder):
    (board,) = make_boards(named(find_results(folder)))
    found = shares(board, "large")
    assert list(found) == ["large", "bad", "good", "small"]
    right = {"large": (360, 320), "bad": (200, 160), "good": (340, 312)}
    for name, numbers in right.items():
        expected = [n / of for n, of in zip(numbers, right["large"], strict=True)]
        assert [found[name][task].value for task in ("pos", "srl")] == pytest.approx(expected)
        assert found[name][MEAN].value == pytest.approx(np.mean(expected))
    assert set(found["small"]) == {"pos"}
    assert found["large"]["pos"].interval is None  # a share of itself


def test_without_training_variance_a_share_is_a_ratio_of_resampled_means(folder):
    for path in folder.rglob("*-training_variance-*"):
        path.unlink()
    (board,) = make_boards(named(find_results(folder)))
    draws = resample(N).astype(float)

    def right(wrong):
        return draws @ (np.arange(N) >= wrong)

    ratios = {"pos": right(60) / right(40), "srl": right(88) / right(80)}
    ratios[MEAN] = (ratios["pos"] + ratios["srl"]) / 2
    for task, ratio in ratios.items():
        expected = np.quantile(ratio, (0.025, 0.975))
        assert shares(board, "large")["good"][task].interval == pytest.approx(expected)


def test_tables_are_beside_the_leaderboard_where_a_base_is_named(folder, capsys):
    assert main(["leaderboard", str(folder), "--base", "large", "--format", "md"]) == 0
    lines = capsys.readouterr().out.splitlines()
    (title,) = (i for i, line in enumerate(lines) if "share of large's score, %" in line)
    table = [line for line in lines[title:] if line.startswith("|")]
    assert table[0] == "| model | size | MB on disk | words/s | pos | srl | mean |"
    assert [line.split(" ± ")[0] for line in table[2:]] == [
        "| large | 110.0M | 438 | 1,235 | 100.0 | 100.0 | 100.0 |",
        "| bad | 66.0M | – | – | 55.6",
        "| good | 66.0M | – | – | 94.4",
        "| small | 22.0M | – | – | 83.3",
    ]
    assert main(["leaderboard", str(folder), "--base", "larg"]) == 2
    assert "--base larg: no results. Did you mean 'large'?" in capsys.readouterr().err


def test_the_front_joins_models_that_score_above_all_smaller_ones(folder, tmp_path):
    (found,), _ = group(find_results(folder))
    chart = pareto(found, PAPER).chart
    models = dict.fromkeys(column(chart, "model"))
    assert list(models) == [FRONT, "small", "good", "bad", "large"]
    of_pos = {"model": FRONT, "panel": "pos"}
    front = dict(zip(column(chart, "x", **of_pos), column(chart, "value", **of_pos), strict=True))
    assert front == pytest.approx({22e6: 30000 / 360, 66e6: 34000 / 360, 110e6: 100})
    path = Path(tmp_path, "pareto.svg")
    assert main(["figure", "pareto", str(folder), "-o", str(path)]) == 0
    drawn = path.read_text()
    assert all(text in drawn for text in ("small", FRONT, "retention", "parameters"))
