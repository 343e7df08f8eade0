"""The floor of scores: the highest of what needs no trained layer."""

import pytest
from results_by_hand import make_result

from probes.boards.groups import group
from probes.boards.layer_tables import floor, score_table, with_twins
from probes.rendering.layers_md import layers_md
from probes.rendering.page.tables import heat_map


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
    assert floor(given) == expected


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
    found = [
        result.model_copy(update={"model": result.model.model_copy(update={"digest": str(i)})})
        for i, result in enumerate(found)
    ]
    (shown,), _ = group({tmp_path / str(i): result for i, result in enumerate(found)})
    assert cells(heat_map(shown, "m")) == [("90.0", "random twin")]
    assert cells(heat_map(shown, "other")) == [("40.0", "layer 0")]
    assert cells(heat_map(shown, "random:m")) == [("60.0", "layer 0")]
