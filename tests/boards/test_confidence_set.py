"""Which layers may be the best, and what tables say of them."""

from results_by_hand import make_result

from probes.boards.layer_tables import layer_rows
from probes.boards.overview import confidence_set, p_best


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
