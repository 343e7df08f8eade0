"""Which layers a test separated from the best one."""

from results_by_hand import make_result

from probes.boards.separability import confidence_set, p_best


def test_without_training_variance_nothing_is_said_of_layers():
    result = make_result(scores=(0.1, 0.3, 0.2), p_best=False)
    assert p_best(result) is None
    assert confidence_set(result) is None


def test_layers_that_a_test_at_five_per_cent_did_not_separate_are_in_the_set():
    result = make_result(scores=(0.1, 0.3, 0.2, 0.25), p_best=[0.0499, None, 0.05, 0.9])
    assert p_best(result) == {0: 0.0499, 2: 0.05, 3: 0.9}
    assert confidence_set(result) == {1, 2, 3}


def test_a_layer_that_could_not_be_tested_is_not_in_the_set():
    result = make_result(scores=(0.1, 0.3, 0.2), p_best=[None, None, None])
    assert p_best(result) == {0: None, 2: None}
    assert confidence_set(result) == {1}


def test_layers_keep_their_numbers():
    result = make_result(scores=(0.3, 0.2, 0.1), p_best=[None, 0.5, 0.01], layers=(2, 5, 9))
    assert confidence_set(result) == {2, 5}
