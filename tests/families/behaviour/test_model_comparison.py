"""Models compared by their own answers, on records made for them."""

import board_by_hand as scores_by_hand
import numpy as np
import pandas as pd
import pytest
from corpus_records import corpus_record, keyed
from results_by_hand import changed

from probes.__main__ import main
from probes.boards.leaderboard_csv import write_leaderboard
from probes.families.behaviour.model_comparison import paired_tables, ranked_tables
from probes.records.record_files import write_record
from probes.records.row import Row
from probes.tables.printing import TIE

AXES = {"scoring": "within-word l2r", "per": "text"}
CAUSAL = {"scoring": "left to right", "per": "text"}


PHENOMENA = np.repeat(["agreement", "islands"], 60)


def put(folder, model, wrong, axes=AXES, not_counted=0, **more):
    """Write a record of `pairs` on 60 items of each phenomenon, so many of the first ones wrong.

    Args:
        not_counted: as many of the first items have no answer.
    """
    right = np.concatenate([np.arange(60) >= n for n in wrong]).astype(float)
    right[:not_counted] = np.nan
    rows = [
        Row("pair_accuracy", right[x == PHENOMENA].mean(), n=60, axes={"phenomenon": x, **axes})
        for x in dict.fromkeys(PHENOMENA.tolist())
    ]
    mean = float(right.mean())
    ends = {"low": mean - 0.1, "high": mean + 0.1}
    rows += [Row(x, mean, axes=axes, **ends) for x in ("pair_accuracy", "mean_of_paradigms")]
    scale = ", ".join(["pair_accuracy", *(f"{x} {y}" for x, y in axes.items())])
    arrays = {
        "values": np.stack([np.zeros(120), right]),
        "cluster": np.arange(120),
        "stratum": np.repeat([0, 1], 60),
        "phenomenon": PHENOMENA,
    }
    facts = {"scale 1": "pair_accuracy, scoring another", "scale 2": scale}
    fields = {"model": model, "digest": model, "facts": facts, "arrays": tuple(arrays)}
    record = keyed(corpus_record("pairs", rows, 2, **fields, **more))
    path = folder / model.replace(":", "-") / "c" / "pairs-00000000.json"
    path.parent.mkdir(parents=True)
    write_record(path, record, arrays)
    return {path: record}


def test_the_difference_of_two_models_item_by_item(tmp_path):
    found = {**put(tmp_path, "one", (40, 10)), **put(tmp_path, "two", (10, 12), CAUSAL)}
    (table,) = paired_tables(found)
    assert table.title == "c 1 · pairs · accuracy, models compared"
    assert table.heads == ("phenomenon", "n", "one", "two", "difference from the first model", "p")
    every, agreement, islands = table.texts
    # 30 of 60 items are gained: .5 with a standard error of √(.25 / 60) = .0645; 1.96 of these are
    # .127. Of both 28 of 120: .233, ± 1.96 · √(.25 + .0322) / √60 / 2 = .067.
    assert agreement[:4] == ("agreement", "60", "33.3", "83.3")
    assert every[:4] == ("all", "120", "58.3", "81.7")
    for text, value, half in ((agreement[4], 50.0, 12.7), (every[4], 23.3, 6.7)):
        difference, low, high = (
            float(x) for x in text.replace("[", "").replace(",", "").rstrip("]").split()
        )
        assert difference == value
        assert low == pytest.approx(value - half, abs=1.5)
        assert high == pytest.approx(value + half, abs=1.5)
    assert agreement[5] == every[5] == "<.001"
    # Two items differ: too few for a test.
    assert islands[4].startswith("−3.3 [")
    assert islands[5] == "–"


def test_a_model_with_answers_alone_is_compared_with_one_that_has_scores(tmp_path, capsys):
    put(tmp_path, "one", (40, 10))
    put(tmp_path, "two", (10, 12))
    scores_by_hand.put(tmp_path, "two", "pos", 9)

    def compared(*models):
        return main(["compare", *models, "--results", str(tmp_path)]), capsys.readouterr()

    done, said = compared("one", "two")
    assert (done, "c 1 · pairs · accuracy, models compared" in said.out) == (0, True)
    done, said = compared("one", "tow")
    assert (done, "tow: no results in" in said.err) == (2, True)


def test_a_model_against_itself_has_no_difference_and_no_p(tmp_path):
    one, same = (put(tmp_path, name, (30, 30)) for name in ("one", "same"))
    (table,) = paired_tables({**one, **same})
    assert [row[4:] for row in table.texts] == [("0.0", "–")] * 3


def test_other_texts_are_not_compared(tmp_path):
    one = put(tmp_path, "one", (9, 9))
    ((path, record),) = put(tmp_path, "two", (9, 9)).items()
    other = changed(record, "corpus", fingerprint="e" * 64)
    assert not list(paired_tables({**one, path: other}))


def test_items_that_do_not_count_for_all_are_left_out(tmp_path):
    one, two = put(tmp_path, "one", (30, 30)), put(tmp_path, "two", (30, 30), not_counted=5)
    (table,) = paired_tables({**one, **two})
    # 55 of agreement are left, of which 30 − 5 are wrong.
    assert table.texts[1] == ("agreement", "55", "54.5", "54.5", "0.0", "–")


def test_models_are_ranked_and_the_twin_is_the_floor(tmp_path):
    found = {
        **put(tmp_path, "worst", (40, 30)),
        **put(tmp_path, "best", (5, 5)),
        **put(tmp_path, "near", (6, 4)),
        **put(tmp_path, "random:best", (0, 0), result={"random_seed": 0}),
    }
    (table,) = ranked_tables(found)
    assert table.heads == ("rank", "model", "mean of paradigms", "accuracy")
    assert table.texts == [
        ("1–2", "best", "91.7 ± 10.0", "91.7 ± 10.0"),
        ("1–2", "near", "91.7 ± 10.0", "91.7 ± 10.0"),
        ("3", "worst", "41.7 ± 10.0", "41.7 ± 10.0"),
        ("–", "random:best", "100.0 ± 10.0", "100.0 ± 10.0"),
    ]
    assert [row.faint for row in table.rows] == [False] * 3 + [True]


def test_commands_and_the_csv_file(tmp_path, capsys):
    put(tmp_path, "one", (40, 10))
    put(tmp_path, "two", (10, 12))
    write_leaderboard(tmp_path)
    frame = pd.read_csv(tmp_path / "behaviour.csv")
    assert len(frame) == 8
    its = frame[(frame.model == "one") & (frame.phenomenon == "agreement")].iloc[0]
    assert (its.metric, its.scoring, its.per, its.n) == (
        "pair_accuracy", "within-word l2r", "text", 60,
    )  # fmt: skip
    assert its.value == pytest.approx(20 / 60, abs=1e-5)
    assert main(["leaderboard", str(tmp_path), "--format", "md"]) == 0
    assert "| 1 | two | 81.7 ± 10.0 | 81.7 ± 10.0 |" in capsys.readouterr().out.replace(TIE, " ")
    assert main(["compare", "two", "one", "--results", str(tmp_path), "--format", "md"]) == 0
    assert "| agreement | 60 | 83.3 | 33.3 | −50.0 [" in capsys.readouterr().out
