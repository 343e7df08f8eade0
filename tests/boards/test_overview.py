"""What was found, in words: a sentence for every state that a result can be in."""

import pytest
from results_by_hand import make_result, with_intervals

from probes.boards.floors import with_floor
from probes.boards.overview import sentence

FLOOR = {"baselines": {"type majority": {"accuracy": 0.6}}}
SCORES = (0.5, 0.7, 0.9, 0.89, 0.8, 0.88)
TIED = [0.001, 0.001, 1.0, 0.4, 0.001, 0.06]


def made(scores=SCORES, p_best=None, half=0.02, **more):
    return with_intervals(make_result("pos", scores, p_best, **more), half)


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (
            made(p_best=TIED, **FLOOR),
            "pos is decoded best at layers 2–3, 5 of 5: accuracy 90.0 [88.0, 92.0] at layer 2, "
            "30.0 points above the floor of 60.0 (type majority).",
        ),
        (
            made(**FLOOR),
            "pos is decoded best at layer 2 of 5: accuracy 90.0 [88.0, 92.0], 30.0 points above "
            "the floor of 60.0 (type majority).",
        ),
        (
            # Layer 2 is the best on dev, which has other sentences.
            made(p_best=[0.001, 0.001, 0.01, 1.0, 0.001, 0.001], **FLOOR),
            "pos is decoded best at layer 3 of 5; layer 2, chosen on dev, is significantly worse: "
            "accuracy 90.0 [88.0, 92.0], 30.0 points above the floor of 60.0 (type majority).",
        ),
        (
            made(p_best=False, **FLOOR),
            "pos is decoded best at layer 2 of 5 on dev: accuracy 90.0 [88.0, 92.0], 30.0 points "
            "above the floor of 60.0 (type majority).",
        ),
        (
            made(p_best=TIED, half=0.31, **FLOOR),
            "pos is not decoded above the floor of 60.0 (type majority): accuracy 90.0 "
            "[59.0, 121.0] at layer 2 of 5, the best on dev.",
        ),
        (
            make_result("pos", (0.5, 0.7), **FLOOR),
            "pos is decoded best at layer 1 of 1: accuracy 70.0 (no interval), 10.0 points above "
            "the floor of 60.0 (type majority).",
        ),
        (
            make_result("depth", (0.5, 0.703), metric="nspr"),
            "depth is decoded best at layer 1 of 1: NSpr .703 (no interval), .203 above the floor "
            "of .500 (layer 0).",
        ),
        (
            make_result("pos", (0.5, 0.7), layers=(1, 2), baselines={"none": {}}),
            "pos is decoded best at layer 2 of 2: accuracy 70.0 (no interval), with no floor to "
            "compare it with.",
        ),
        (make_result("pos", (None, None)), "pos has no best layer: no score on dev is defined."),
    ],
)
def test_a_sentence_says_where_how_well_and_above_what(result, said):
    assert sentence(result) == said


def test_a_random_twin_is_a_floor():
    twin = make_result("pos", (0.1, 0.85), model="random:m", random_seed=0)
    result = with_floor(made(p_best=TIED, **FLOOR), [twin])
    assert sentence(result).endswith(", 5.0 points above the floor of 85.0 (random twin).")
