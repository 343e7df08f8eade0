"""Tables of scores by group of examples and by label, and how wide ones are split."""

from results_by_hand import make_result, with_rows

from probes.boards.breakdown_tables import group_table, label_table
from probes.records.row import Row


def with_breakdowns(n_labels=2, n_layers=3):
    result = make_result(
        scores=[0.1 * i for i in range(n_layers)], groups={"few": 3, "many": 1200, "none": 0}
    )
    rows = []
    for layer in result.layers:
        rows.append(Row("accuracy", 0.5, layer, axes={"group": "few"}))
        rows.append(Row("accuracy", 0.875, layer, 0.85, 0.9, axes={"group": "many"}))
        for i in range(n_labels):
            scores = {"precision": 0.5, "recall": None, "f1": 0.25}
            rows += [
                Row(name, x, layer, n=100 - i, axes={"label": f"L{i}"})
                for name, x in scores.items()
            ]
    return with_rows(result, rows)


def test_groups_are_columns_and_layers_rows():
    table = group_table(with_breakdowns())
    assert table.heads == ("layer", "few\nn = 3", "many\nn = 1,200")
    assert [row[1:] for row in table.texts] == [("50.0", "87.5 ± 2.5")] * 3


def test_a_result_without_groups_or_labels_has_no_such_table():
    result = make_result(scores=[0.1, 0.2])
    assert label_table(result) is None
    assert group_table(result) is None


def test_rare_labels_are_left_out_unless_asked_for():
    result = with_breakdowns(25)
    table = label_table(result)
    assert [row[:4] for row in table.texts] == [
        (f"L{i}", str(100 - i), "50.0", "–") for i in range(20)
    ]
    assert table.notes[0].endswith("5 more with --all")
    assert len(label_table(result, most=None).rows) == 25
