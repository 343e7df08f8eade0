"""Which layers may be the best, and what tables say of them."""

import pytest
from board_by_hand import put
from results_by_hand import make_result

from probes.boards.layer_tables import layer_rows
from probes.boards.separability import confidence_set, p_best, separability
from probes.measurements.counting import unique_records
from probes.measurements.joined_results import joined


def test_layers_that_a_test_at_five_per_cent_did_not_separate_are_in_the_set():
    result = make_result(scores=(0.1, 0.3, 0.2, 0.25), p_best=[0.0499, 1.0, 0.05, 0.9])
    assert p_best(result) == {0: 0.0499, 1: 1.0, 2: 0.05, 3: 0.9}
    assert confidence_set(result) == {1, 2, 3}


def test_a_layer_without_a_score_is_not_in_the_set():
    result = make_result(scores=(None, 0.3, 0.2), p_best=[None, 1.0, 0.4])
    assert confidence_set(result) == {1, 2}


def test_where_nothing_could_be_tested_there_is_no_set():
    result = make_result(scores=(0.1, 0.3, 0.2), p_best=[None, None, None])
    assert confidence_set(result) is None
    assert marks(result) == {0: "", 1: "best", 2: ""}


def marks(result):
    """What a table says of each layer."""
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


@pytest.fixture
def stored(tmp_path):
    """Writes results of 400 words, and returns them by model and path."""

    def stored(**models):
        paths = {
            (model, task): put(tmp_path, model, task, 0, wrongs=wrongs, **more)
            for model, tasks in models.items()
            for task, (wrongs, more) in tasks.items()
        }
        results = joined(unique_records(tmp_path))
        found = {model: {} for model in models}
        for (model, _), path in paths.items():
            found[model][path] = results[path]
        return found

    return stored


def test_tasks_are_counted_that_tell_two_layers_apart(stored):
    # A difference of 80 words of 400 is clear; one of 2 is not.
    models = stored(
        a={"pos": ((200, 100, 20), {}), "chunking": ((200, 100, 102), {})},
        b={"pos": ((100, 101, 99), {})},
    )
    grid = separability(models)
    assert grid.panels["a"].rows == grid.panels["a"].columns == ("0", "1", "2")
    assert grid.panels["a"].values == ((None, 2, 2), (2, None, 1), (2, 1, None))
    assert grid.panels["b"].values == ((None, 0, 0), (0, None, 0), (0, 0, None))
    assert (grid.low, grid.high) == (0, 2)
    assert "of a: pos, chunking; b: pos." in grid.note
    assert separability({"a": models["a"]}).note.endswith("of pos, chunking.")


def test_without_predictions_nothing_is_told_apart(stored):
    models = stored(
        a={"pos": ((200, 100, 20), {"predictions": False}), "chunking": ((200, 20, 22), {})},
        b={"pos": ((200, 20), {"predictions": False})},
    )
    grid = separability(models)
    assert grid.panels["a"].values == ((None, 1, 1), (1, None, 0), (1, 0, None))
    assert list(grid.missing) == ["b"]
    assert "of chunking." in grid.note
