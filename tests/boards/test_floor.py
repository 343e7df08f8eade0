"""The floor of scores: the highest of what needs no trained layer."""

import pytest
from results_by_hand import changed, make_result, with_intervals

from probes.boards.groups import group
from probes.boards.layer_tables import score_table, with_twins
from probes.records.row import Rows
from probes.rendering.layers_md import layers_md
from probes.rendering.page.tables import best_layers, heat_map, leaderboard


def scored(layer_0, type_majority, *, majority=0.2, twin=None, **more):
    """A result whose other layer scores .9, and its floor's candidates."""
    given = make_result(
        scores=(layer_0, 0.9),
        baselines={
            "majority": {"accuracy": majority},
            "type majority": {"accuracy": type_majority},
        },
        **more,
    )
    if twin is None:
        return given
    (given,) = with_twins([given], [make_result(scores=(twin, twin - 0.1), random_seed=0)])
    return given


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (scored(0.8, 0.86, twin=0.73), ("type majority", 0.86)),
        (scored(0.893, 0.86, twin=0.73), ("layer 0", 0.893)),
        (scored(0.5, 0.6, twin=0.65), ("random twin", 0.65)),
        # Before the twin is measured.
        (scored(0.5, 0.6), ("type majority", 0.6)),
        # Rules of the word can be worse than the most frequent label.
        (scored(0.4, 0.45, majority=0.5), ("majority", 0.5)),
        (scored(None, None), ("majority", 0.2)),
        (scored(None, None, majority=None), None),
        # A layer above the floor's is not layer 0.
        (scored(0.8, 0.3, layers=(1, 2)), ("type majority", 0.3)),
    ],
)
def test_the_floor_is_the_highest_and_says_of_what(given, expected):
    assert given.floor == expected


def test_a_twin_is_scored_at_its_best_layer_on_test():
    twin = make_result(scores=(0.6, 0.7, 0.4), random_seed=0)
    on_dev = {0: 0.5, 1: 0.6, 2: 0.7}
    rows = [
        row._replace(value=on_dev[row.layer]) if row.split == "dev" else row for row in twin.rows
    ]
    twin = twin.model_copy(update={"rows": Rows.of(rows)})
    assert twin.best_layer == 2
    (given,) = with_twins([make_result(scores=(0.5, 0.9, 0.9))], [twin])
    assert given.floor == ("random twin", 0.7)
    (given,) = with_twins([make_result(scores=(0.5, 0.9), layers=(0, 2))], [twin])
    assert given.floor == ("random twin", 0.6)  # of the layers that both have


def agreement(**more):
    """As on `sample`: the subject's form predicts the verb better than any layer does."""
    return make_result(
        "agreement",
        (0.534, 0.624, 0.702, 0.691, 0.725, 0.731, 0.672),
        [0.01, 0.051, 0.5, 0.5, 0.5, 1, 0.5],
        metric="balanced_accuracy",
        baselines={"majority": {"balanced_accuracy": 0.5}},
        references={
            "subject's Number": {"balanced_accuracy": 0.994},
            "type majority": {"balanced_accuracy": 0.765},
        },
        **more,
    )


def test_an_oracle_is_no_floor():
    result = agreement()
    assert result.floor == ("layer 0", 0.534)
    table = score_table([result])
    assert cells(table) == [("53.4", "layer 0")]
    assert ["type majority", "76.5"] in [[cell.text for cell in row.cells] for row in table.rows]
    twin = make_result("agreement", (0.572, 0.5), metric="balanced_accuracy", random_seed=0)
    (result,) = with_twins([result], [twin])
    assert result.floor == ("random twin", 0.572)


def marks(result):
    rows = score_table([result]).rows
    return {row.cells[0].text: row.cells[1].marks for row in rows if row.cells[0].text.isdigit()}


def test_a_score_that_is_not_above_its_floor_is_marked_and_not_the_best():
    # Without intervals by its value; layer 0 has the floor.
    assert marks(agreement()) == {
        "0": "▽", "1": "☆≈", "2": "☆", "3": "☆", "4": "☆", "5": "★", "6": "☆"
    }  # fmt: skip
    # With intervals by its lower end: 62.4 − 9.2 < 53.4 < 62.4 − 8.8, 67.2 − 9.2.
    assert marks(with_intervals(agreement(), 0.088))["1"] == "☆≈"
    found = with_intervals(agreement(), 0.092)
    assert (marks(found)["1"], marks(found)["5"], marks(found)["6"]) == ("☆▽≈", "★", "☆")
    # Not even the best on dev.
    found = with_intervals(agreement(), 0.2)
    assert set(marks(found).values()) == {"▽", "☆▽", "☆▽≈"}
    assert marks(found)["5"] == "☆▽"
    assert found.best_number == 5
    text = layers_md([found])
    assert "| 5 | 73.1 ± 20.0☆▽ |" in text
    assert "**" not in text.split("##")[1]
    assert "▽ not above the floor" in text
    (shown,), _ = group({"path": found})
    assert not any(cell.best for row in heat_map(shown, "m").rows for cell in row.cells)


def test_what_equals_its_floor_is_not_above_it_and_nothing_is_below_no_floor():
    assert marks(make_result(scores=(None, 0.1), p_best=False)) == {"0": "", "1": "▽"}
    without = {"majority": {"accuracy": None}, "type majority": {"accuracy": None}}
    assert marks(make_result(scores=(None, 0.1), p_best=False, baselines=without))["1"] == "★"
    # Another layer is separated above the best on dev, which is no star.
    assert marks(make_result(scores=(0.3, 0.1), p_best=[0.01, 1])) == {"0": "▽", "1": "☆▽"}


def told_apart(folder, *results):
    """By path, as results of different models."""
    return {folder / str(i): changed(x, "model", digest=str(i)) for i, x in enumerate(results)}


def test_the_page_marks_what_is_not_above_the_twin(tmp_path):
    model = make_result(scores=(0.3, 0.4), model="m")
    twin = make_result(scores=(0.2, 0.6), model="random:m", random_seed=0)
    (shown,), _ = group(told_apart(tmp_path, model, twin))
    rows = {row.cells[0].text: row.cells[1].marks for row in heat_map(shown, "m").rows}
    assert rows == {"0": "▽", "1": "☆▽", "floor": "", "n": ""}
    assert {row.model: row.cells[1].note for row in leaderboard(shown).rows}["m"] == (
        "layer 1 of 1, not above the floor, n = 9"
    )
    assert best_layers(shown.units[0]) == {"m": None, "random:m": 1}


def cells(table):
    (row,) = (row for row in table.rows if row.cells[0].text == "floor")
    return [(cell.text, cell.note) for cell in row.cells[1:]]


def test_tables_have_the_floor_of_each_task():
    results = [scored(0.8, 0.861), scored(0.5, 0.3, task="depth")]
    assert cells(score_table(results)) == [("86.1", "type majority"), ("50.0", "layer 0")]
    assert "| floor | 86.1 · type majority | 50.0 · layer 0 |" in layers_md(results)
    assert cells(score_table([scored(None, None, majority=None)])) == [("–", "")]


def test_the_page_has_the_floor_with_the_model_s_own_twins(tmp_path):
    def model(name, layer_0, **more):
        return scored(layer_0, 0.3, model=name, **more)

    found = [
        model("m", 0.5),
        model("other", 0.4),
        # At its best layer, which scores .9.
        model("random:m", 0.6, random_seed=0),
    ]
    (shown,), _ = group(told_apart(tmp_path, *found))
    assert cells(heat_map(shown, "m")) == [("90.0", "random twin")]
    assert cells(heat_map(shown, "other")) == [("40.0", "layer 0")]
    assert cells(heat_map(shown, "random:m")) == [("60.0", "layer 0")]
