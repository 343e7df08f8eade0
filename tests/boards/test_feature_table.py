"""Morphology has a table of its own, feature × layer, with the numbers of the other one."""

from results_by_hand import make_result

from probes.boards.layer_tables import score_table, score_tables
from probes.pages.layers_md import layers_md

RESULTS = [
    make_result("pos", (0.5, 0.6)),
    make_result("feats.Case", (0.7, 0.9)),
    make_result("feats.Number[psor]", (0.8, 0.3), baselines={"majority": {"accuracy": 0.4}}),
]


def test_features_are_rows_and_layers_columns():
    pos, features = score_tables(RESULTS)
    assert pos == score_table(RESULTS[:1])
    assert features.heads == ("by layer", "0", "1", "floor", "majority", "type majority", "n")
    case, number = features.texts
    assert case[:3] == ("feats.Case, accuracy", "70.0", "90.0")
    assert number == ("feats.Number[psor], accuracy", "80.0", "30.0", "80.0", "40.0", "", "9")
    marks = [[cell.best for cell in row.cells[1:3]] for row in features.rows]
    untuned = score_table(RESULTS[1:])
    assert marks == [[row.cells[i].best for row in untuned.rows[:2]] for i in (1, 2)]
    assert features.notes == untuned.notes


def test_turning_a_table_twice_gives_its_cells_back():
    table = score_table(RESULTS)
    assert table.turned.turned.texts == table.texts


def test_layers_md_has_both_tables():
    text = layers_md(RESULTS)
    assert "| layer | pos (accuracy) |" in text
    assert "| by layer | 0 | 1 | floor |" in text
    assert "| feats.Case, accuracy | 70.0▽ |" in text
