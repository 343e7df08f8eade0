"""Layer × training step, and layers ranked over tasks."""

import numpy as np
import pandas as pd
import pytest
from board_by_hand import put
from drawn import data_of, svg, texts
from results_by_hand import make_result

from probes.boards.layer_tables import layer_frame, layer_frames
from probes.boards.score_charts import revision_of, steps
from probes.boards.shown_together import all_groups
from probes.boards.transferability import (
    all_ranks,
    complete_tasks,
    correlation_table,
    mean_rank_table,
    ranks,
)
from probes.common.errors import UserError
from probes.frames.joined_results import find_results
from probes.pages.layers_md import layers_md
from probes.tables.charts import PAPER


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("org/m@step1000", ("org/m", 1000)),
        ("m@step-2000", ("m", 2000)),
        ("m@1000", ("m", 1000)),
        ("m@stage1-step150-tokens1B", ("m", 150)),
        ("m@v1.2", None),
        ("m@main", None),
        ("m", None),
        ("pythia-160m", None),
        ("checkpoint-500", ("", 500)),
        ("mine-checkpoint-500", ("mine", 500)),
        ("step_7", ("", 7)),
    ],
)
def test_the_step_is_in_the_name(name, expected):
    assert revision_of(name) == expected


def drawn(folder):
    (found,), _ = all_groups(find_results(folder))
    return steps(found, PAPER)


def test_a_row_per_layer_and_a_column_per_step_in_numeric_order(tmp_path):
    for step, wrongs in ((2000, (300, 100)), (1000, (320, 200)), (10, (340, 360))):
        put(tmp_path, f"m@step{step}", "pos", 0, wrongs=wrongs)
    put(tmp_path, "m@step1000", "depth", 0, wrongs=(40, 20))
    put(tmp_path, "m", "pos", 0, wrongs=(1, 2))
    put(tmp_path, "random:m", "pos", 0, wrongs=(1, 2), random_seed=0)
    found = drawn(tmp_path)
    cells = data_of(found.chart)
    places = [(x["panel"].split("\n")[0], x["row"], x["column"]) for x in cells]
    assert dict(zip(places, [x["value"] for x in cells], strict=True)) == pytest.approx(
        {("pos", "0", "2000"): 25, ("pos", "1", "2000"): 75, ("pos", "0", "1000"): 20,
         ("pos", "1", "1000"): 50, ("pos", "0", "10"): 15, ("pos", "1", "10"): 10,
         ("depth", "0", "1000"): 90, ("depth", "1", "1000"): 95}
    )  # fmt: skip
    order = {x["column"]: x["column_at"] for x in cells}
    assert sorted(order, key=order.get) == ["10", "1000", "2000"]
    assert {"layer", "training step"} <= set(texts(svg(found.chart)))
    assert sorted(found.missing) == ["m", "random:m"]


@pytest.mark.parametrize(
    ("names", "why"),
    [
        (("m@step1", "n@step2"), r"steps of several models \(m, n\); name the folders of"),
        (("m@step1", "m@1"), "are both of step 1; name one of them"),
    ],
)
def test_two_models_or_two_revisions_of_one_step_are_no_figure(tmp_path, names, why):
    for name in names:
        put(tmp_path, name, "pos", 0)
    with pytest.raises(UserError, match=why):
        drawn(tmp_path)


def test_seeds_of_one_recipe_are_averaged(tmp_path):
    for seed, wrongs in ((3, (300, 100)), (4, (320, 200))):
        for step in (10, 20):
            put(tmp_path, f"m-seed-{seed}@step{step}", "pos", 0, wrongs=wrongs)
    found = drawn(tmp_path)
    means = {(row["row"], row["column"]): row["value"] for row in data_of(found.chart)}
    expected = {("0", "10"): 22.5, ("1", "10"): 62.5, ("0", "20"): 22.5, ("1", "20"): 62.5}
    assert means == pytest.approx(expected)
    assert "m · mean of 2 seeds" in " ".join(texts(svg(found.chart)))


def of_layers(**scores):
    return pd.DataFrame(scores, index=pd.Index(range(3), name="layer"))


# Ranks of a are 3, 1, 2; of b, with a tie for 1 and 2, 1.5, 1.5, 3.
TABLE = of_layers(a=[0.1, 0.4, 0.3], b=[0.5, 0.5, 0.2], c=[0.9, np.nan, 0.8])


def test_ranks_share_ties_and_take_complete_columns_only():
    found = ranks(TABLE)
    assert found["a"].tolist() == [3, 1, 2]
    assert found["b"].tolist() == [1.5, 1.5, 3]
    assert found["mean rank"].tolist() == [2.25, 1.25, 2.5]
    assert list(found) == ["a", "b", "mean rank"]
    assert complete_tasks(TABLE) == (["a", "b"], {"c": "no score at layer 1"})
    assert list(ranks(TABLE[["c"]])) == []


def test_mean_ranks_within_groups_of_tasks():
    table = of_layers(pos=[0.1, 0.4, 0.3], deprel=[0.5, 0.4, 0.2], srl=[0.1, 0.2, 0.3])
    found = mean_rank_table(table)
    # Ranks: 3 1 2, 1 2 3 and 3 2 1. Of semantics there is one task only.
    assert found.texts == [("mean rank", "2.3", "1.7", "2.0"), ("syntax (2)", "2.0", "1.5", "2.5")]
    assert [cell.best for cell in found.rows[1].cells] == [False, False, True, False]
    assert mean_rank_table(table[["pos", "deprel"]]).texts == [("mean rank", "2.0", "1.5", "2.5")]


def test_correlations_are_spearman_s_over_the_layers_that_both_have():
    # Centred ranks of a: -1, 1, 0; of b: .5, .5, -1. Σxy = 0 → rho 0.
    # Layers 0 and 2 only: a rises, c falls.
    of_c = ("c", "−1.00 (n = 2)", "1.00 (n = 2)")
    assert correlation_table(TABLE).texts == [("b", ".00 (n = 3)", ""), of_c]
    flat = pd.DataFrame({"x": [1.0, 2], "y": [3.0, 3]})
    assert correlation_table(flat).texts == [("y", "–")]


def test_csv_and_markdown():
    results = [
        make_result("a", (0.1, 0.4, 0.3)),
        make_result("b", (0.5, 0.5, 0.2)),
        make_result("c", (0.9, None, 0.8), [None, 0.5, 0.5]),
    ]
    tables = layer_frames(results)
    pd.testing.assert_frame_equal(
        tables["linear"], layer_frame(x for x in results if x.probe.family == "linear")
    )
    csv = all_ranks(tables)
    assert list(csv) == ["a (linear)", "b (linear)", "mean rank (linear)"]
    assert csv.index.name == "layer"
    text = layers_md(results)
    assert "over 2 tasks (a, b), 1 being best" in text
    assert "| mean rank | 2.2 | **1.2**★ | 2.5 |" in text
    assert "Left out: c (no score at layer 1)." in text
    assert "| layer profiles (n = 2, 3 layers) | a | b |" in text
    assert "| c | −1.00 (n = 2) | 1.00 (n = 2) |" in text
    assert "there is no p-value" in text
