"""Mean ranks and correlations of layer profiles, on tables whose answers are known."""

import numpy as np
import pandas as pd
import pytest
from results_by_hand import make_result

from probes.boards.layer_tables import layer_frame, layer_frames
from probes.boards.transferability import agreements, all_ranks, complete, mean_rank_table, ranks
from probes.pages.layers_md import layers_md

TABLE = pd.DataFrame(
    {
        "a": [0.1, 0.4, 0.3],  # ranks 3, 1, 2
        "b": [0.5, 0.5, 0.2],  # a tie for 1 and 2: 1.5, 1.5, 3
        "c": [0.9, np.nan, 0.8],
    },
    index=pd.Index([0, 1, 2], name="layer"),
)


def test_ranks_share_ties_and_take_complete_columns_only():
    found = ranks(TABLE)
    assert found["a"].tolist() == [3, 1, 2]
    assert found["b"].tolist() == [1.5, 1.5, 3]
    assert found["mean rank"].tolist() == [2.25, 1.25, 2.5]
    assert list(found) == ["a", "b", "mean rank"]
    assert complete(TABLE) == (["a", "b"], {"c": "no score at layer 1"})


def test_without_a_complete_column_there_are_no_ranks():
    assert list(ranks(TABLE[["c"]])) == []


def test_mean_ranks_within_groups_of_tasks():
    table = pd.DataFrame(
        {"pos": [0.1, 0.4, 0.3], "deprel": [0.5, 0.4, 0.2], "srl": [0.1, 0.2, 0.3]},
        index=pd.Index([0, 1, 2], name="layer"),
    )
    found = mean_rank_table(table)
    # Ranks: 3 1 2, 1 2 3 and 3 2 1. Of semantics there is one task only.
    assert found.texts == [("mean rank", "2.3", "1.7", "2.0"), ("syntax (2)", "2.0", "1.5", "2.5")]
    assert [cell.best for cell in found.rows[1].cells] == [False, False, True, False]
    assert mean_rank_table(table[["pos", "deprel"]]).texts == [("mean rank", "2.0", "1.5", "2.5")]


def test_correlations_are_spearman_s_over_the_layers_that_both_have():
    ab, ac, bc = agreements(TABLE)
    # Centred ranks of a: -1, 1, 0; of b: .5, .5, -1. Σxy = 0 → rho 0.
    assert (ab.rho, ab.n) == (pytest.approx(0.0), 3)
    # Layers 0 and 2 only: a rises, c falls.
    assert (ac.rho, ac.n) == (pytest.approx(-1.0), 2)
    assert (bc.rho, bc.n) == (pytest.approx(1.0), 2)


def test_a_flat_profile_has_no_correlation():
    assert agreements(pd.DataFrame({"x": [1.0, 2], "y": [3.0, 3]}))[0].rho is None


def test_csv_and_markdown():
    results = [
        make_result("a", (0.1, 0.4, 0.3)),
        make_result("b", (0.5, 0.5, 0.2)),
        make_result("c", (0.9, None, 0.8), [None, 0.5, 0.5]),
    ]
    tables = layer_frames(results)
    pd.testing.assert_frame_equal(tables["linear"], layer_frame(results, "linear"))
    csv = all_ranks(tables)
    assert list(csv) == ["a (linear)", "b (linear)", "mean rank (linear)"]
    assert csv.index.name == "layer"
    text = layers_md(results)
    assert "over 2 tasks (a, b), 1 being best" in text
    assert "| mean rank | 2.2 | **1.2**★ | 2.5 |" in text
    assert "Left out: c (no score at layer 1)." in text
    assert "| layer profiles (n = 2, 3 layers) | a | b |" in text
    assert "| c | -1.00 (n = 2) | 1.00 (n = 2) |" in text
    assert "there is no p-value" in text
