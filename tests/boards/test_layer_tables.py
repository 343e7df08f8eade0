"""Tables of scores and of the evidence behind them: layers, features, groups, labels."""

import pytest
from board_by_hand import put
from drawn import column, data_of, view_of
from results_by_hand import evidence_record, make_full_result, make_result, with_rows

from probes.__main__ import main
from probes.boards.breakdown_tables import evidence_tables, group_table, label_table
from probes.boards.layer_tables import layer_rows, score_table, score_tables
from probes.boards.overview import confidence_set
from probes.pages.layers_md import layers_md
from probes.records.probe_spec import PROBES
from probes.records.row import Row


def with_breakdowns(n_labels=2, n_layers=3):
    scores = [0.1 * i for i in range(n_layers)]
    result = make_result(scores=scores, groups={"few": 3, "many": 1200, "none": 0})
    rows = []
    for layer in result.layers:
        rows.append(Row("accuracy", 0.5, layer, axes={"group": "few"}))
        rows.append(Row("accuracy", 0.875, layer, 0.85, 0.9, axes={"group": "many"}))
        for i in range(n_labels):
            for name, value in (("precision", 0.5), ("recall", None), ("f1", 0.25)):
                rows.append(Row(name, value, layer, n=100 - i, axes={"label": f"L{i}"}))
    return with_rows(result, rows)


def test_groups_are_columns_and_layers_rows():
    table = group_table(with_breakdowns())
    assert table.heads == ("layer", "few\nn = 3", "many\nn = 1,200")
    assert [row[1:] for row in table.texts] == [("50.0", "87.5 ± 2.5")] * 3


def test_a_result_without_groups_or_labels_has_no_such_table():
    bare = make_result(scores=[0.1, 0.2])
    assert (label_table(bare), group_table(bare)) == (None, None)


def test_rare_labels_are_left_out_unless_asked_for():
    result = with_breakdowns(25)
    table = label_table(result)
    expected = [(f"L{i}", str(100 - i), "50.0", "–") for i in range(20)]
    assert [row[:4] for row in table.texts] == expected
    assert table.notes[0].endswith("5 more with --all")
    assert len(label_table(result, most=None).rows) == 25


OTHERS = [make_result(task, (0.5, 0.6)) for task in ("pos", "depth", "srl", "deprel")]

RESULTS = [
    *OTHERS,
    make_result("feats.Case", (0.7, 0.9)),
    make_result("feats.Number[psor]", (0.8, 0.3), baselines={"majority": {"accuracy": 0.4}}),
]


def test_features_are_rows_and_layers_columns():
    others, features = score_tables(RESULTS)
    assert others == score_table(OTHERS)
    assert features.title == f"{others.title} · morphology"
    assert features.heads == ("by layer", "0", "1", "floor", "majority", "type majority", "n")
    case, number = features.texts
    assert case[:3] == ("feats.Case, accuracy", "70.0", "90.0")
    assert number == ("feats.Number[psor], accuracy", "80.0", "30.0", "80.0", "40.0", "", "9")
    marks = [[cell.best for cell in row.cells[1:3]] for row in features.rows]
    unturned = score_table(RESULTS[4:])
    assert marks == [[row.cells[i].best for row in unturned.rows[:2]] for i in (1, 2)]
    assert features.notes == unturned.notes


def test_features_share_a_table_of_up_to_five_tasks():
    assert [*score_tables(RESULTS[:5])] == [score_table(RESULTS[:5])]
    assert [*score_tables(RESULTS[5:])] == [score_table(RESULTS[5:])]


def test_layers_md_has_both_tables():
    text = layers_md(RESULTS)
    assert "| layer | pos (accuracy) |" in text
    assert "| by layer | 0 | 1 | floor |" in text
    assert "| feats.Case, accuracy | 70.0▽ |" in text


@pytest.mark.parametrize(
    ("scores", "p_values", "expected"),
    [
        ((0.1, 0.3, 0.2, 0.25), [0.0499, 1.0, 0.05, 0.9], {1, 2, 3}),
        ((None, 0.3, 0.2), [None, 1.0, 0.4], {1, 2}),
        ((0.1, 0.3, 0.2), [None, None, None], None),
    ],
)
def test_layers_that_a_test_at_five_per_cent_did_not_separate_are_in_the_set(
    scores, p_values, expected
):
    result = make_result(scores=scores, p_best=p_values)
    assert confidence_set(result) == expected
    assert marks(result)[1].startswith("best")


def marks(result):
    """The marks of each layer in a table."""
    rows = layer_rows([result])
    cells = {int(row.cells[0].text): row.cells[1] for row in rows}
    return {
        layer: " ".join(name for name in ("best", "tied", "beaten") if getattr(cell, name))
        for layer, cell in cells.items()
    }


def test_the_layer_that_is_best_on_dev_may_be_beaten_on_test():
    result = make_result(scores=(0.7, 0.3, 0.69), p_best=[0.02, 0.001, 1.0], layers=(1, 2, 3))
    assert result.best_number == 1
    assert confidence_set(result) == {3}
    assert marks(result) == {1: "best beaten", 2: "", 3: "tied"}


def test_a_layer_is_beaten_only_if_that_is_known():
    scores = (None, 0.3, 0.31)
    assert make_result(scores=scores).best_number == 2
    untested = make_result(scores=scores, p_best=[None, 1.0, None])
    assert confidence_set(untested) == {1}
    assert marks(untested) == {0: "", 1: "tied", 2: "best"}
    for p, expected in ((0.049, "best beaten"), (0.05, "best")):
        assert marks(make_result(scores=scores, p_best=[None, 1.0, p]))[2] == expected


def with_found(result, measurement, rows):
    return result.with_evidence(evidence_record(result, measurement, rows))


def bare(*names, **more):
    """A result without evidence."""
    return make_result(*names, p_best=False, **more)


CONTROLS = [
    Row("selectivity", 0.25, 0, 0.23, 0.27),
    Row("selectivity", 0.65, 1),
    Row("accuracy", 0.9, 1),
    Row("accuracy", 0.25, 1, axes={"draw": 1}),
    Row("types_seen", 0.876),
]


def test_a_table_has_the_tasks_that_have_its_measurement():
    result = with_found(bare(scores=(0.5, 0.9)), "selectivity", CONTROLS)
    found = evidence_tables([result, bare("depth", (0.1, 0.2), metric="nspr")])
    assert list(found) == ["selectivity"]
    assert found["selectivity"][0].heads == ("layer", "pos (accuracy)")


STARTS = 0, 20, 50
"""Examples sent before blocks of 20, 30 and 50."""
BITS = {0: (2.0, 1.0, 0.9), 1: (2.0, 0.5, 0.1), 2: (2.0, 0.8, 0.4), None: (2.0, 1.5, 1.2)}
"""Per label of each block, by layer, None for the labels alone."""


def curves(n_blocks):
    return [
        Row("bits_per_label", each, layer, split="train", axes={**of, "examples": start})
        for layer, bits in BITS.items()
        for of in [{} if layer is not None else {"baseline": "labels alone"}]
        for start, each in list(zip(STARTS, bits, strict=True))[:n_blocks]
    ]


def test_learning_curves_of_layers_and_the_labels_alone():
    result = with_found(bare(scores=(0.5, 0.9, 0.7)), "description_length", curves(3))
    once = with_found(bare(), "description_length", curves(1))
    chart, missing = view_of("description_length", "learning", {"m": result, "once": once})
    drawn = {}
    for row in data_of(chart):
        drawn.setdefault(row["line"], []).append((row["x"], row["value"]))
    assert drawn == {
        "layer 0": [(20, 1.0), (50, 0.9)],
        "layer 1": [(20, 0.5), (50, 0.1)],
        "layer 2": [(20, 0.8), (50, 0.4)],
        "labels alone": [(20, 1.5), (50, 1.2)],
    }
    assert missing == {"once": "there is no record of it"}


def test_curves_have_the_same_numbers_and_say_why_there_are_none():
    full = make_full_result(scores=(0.5, 0.7))
    results = {
        "full": full,
        "scores": bare(scores=(0.5, 0.7)),
        "mlp": bare(scores=(0.5, 0.7), probe=PROBES["mlp"]),
        "part": bare(scores=(0.5, 0.7), n_layers=9),
    }
    chart, missing = view_of("selectivity", "selectivity", results)
    assert column(chart, "value") == pytest.approx([20, 40])
    assert missing == dict.fromkeys(("scores", "mlp", "part"), "there is no record of it")
    chart, without = view_of("description_length", "compression", results)
    assert column(chart, "value") == pytest.approx([1.5, 2.1])
    ends = [column(chart, end)[0] for end in ("low", "high")]
    assert ends == pytest.approx([300 / 220, 300 / 180])
    assert column(chart, "name") == ["labels alone"]
    assert column(chart, "level") == pytest.approx([300 / 280])
    why = {**missing, "mlp": "only convex probes have an online code"}
    assert without == view_of("description_length", "learning", results)[1] == why
    chart, missing = view_of("localisation", "mix", results)
    assert column(chart, "value") == pytest.approx([50, 70])
    assert missing == {
        "scores": "there is no record of it",
        "mlp": "only convex probes are fitted on mixes",
        "part": "not all layers were probed",
    }


def test_layers_are_marked_as_alike_only_where_training_variance_was_measured():
    scores = (0.5, 0.7, 0.69, 0.68)
    marked = make_result(scores=scores, p_best=[0.001, None, 0.049, 0.05])
    assert marks(marked) == {0: "", 1: "best", 2: "", 3: "tied"}
    assert marks(bare(scores=scores)) == {0: "", 1: "best", 2: "", 3: ""}


@pytest.mark.parametrize(("scores", "shown"), [((0.5, 0.6), ["70.0"]), ((None, None), [])])
def test_the_ranking_of_the_best_layer_is_shown_only_where_there_is_one(scores, shown):
    rows = [Row("auroc", value, layer) for layer, value in enumerate((0.8, 0.7))]
    (table,) = score_tables([with_rows(make_result(scores=scores), rows)])
    named = {row.cells[0].text: row.cells[1].text for row in table.rows}
    assert [named[x] for x in named if x == "AUROC, best layer"] == shown


def test_colours_are_points_above_the_floor_on_one_scale():
    """One point above a floor is as faint in a task of one point as beside 20 of another."""
    tasks = [
        make_result("pos", (0.95, 0.96, 0.94), baselines={"majority": {"accuracy": 0.95}}),
        make_result("srl", (0.5, 0.6, 0.75), baselines={"majority": {"accuracy": 0.55}}),
    ]
    places = [[cell.place for cell in row.cells[1:]] for row in layer_rows(tasks)]
    assert places == [
        [pytest.approx(0, abs=1e-9), 0.0],
        [pytest.approx(0.05), pytest.approx(0.25)],
        [0.0, 1.0],
    ]
    (alone,) = [[cell.place for cell in row.cells[1:]] for row in layer_rows(tasks[:1])][1:2]
    assert alone == [1.0]


def test_the_layer_of_a_twin_is_named(tmp_path, capsys):
    """The twin is best on dev at its first layer, and on test at its second."""
    put(tmp_path, "m", "pos", 20)
    twin = put(tmp_path, "random:m", "pos", 90, random_seed=0)
    assert main(["show", str(tmp_path), "--format", "md"]) == 0
    said = capsys.readouterr().out
    note = "A random twin counts here at its best layer on test, in comparisons of models at that on dev."
    assert note in said
    twin.unlink()
    assert main(["show", str(tmp_path), "--format", "md"]) == 0
    assert note not in capsys.readouterr().out
