"""The best layer: ties, undefined scores, and the two functions that decide it."""

import math

import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from probes.records.best_layer import best_layer_of, best_layer_rows

SCORES = st.dictionaries(
    st.integers(0, 12), st.sampled_from([None, math.nan, 0.25, 0.5, 0.75]), min_size=1
)


def test_of_equal_layers_the_lowest_is_best_and_without_any_score_the_lowest_of_all():
    assert best_layer_of({2: 0.5, 1: 0.75, 3: 0.75, 0: None}) == 1
    assert best_layer_of({3: None, 2: math.nan, 4: -0.5}) == 4
    assert best_layer_of({5: None}) == 5
    assert best_layer_of({3: math.nan, 2: None}) == 2


@settings(derandomize=True, max_examples=50, deadline=None)
@given(st.lists(SCORES, min_size=1, max_size=3))
def test_a_frame_has_the_best_layers_of_its_models(models):
    rows = [
        {"model": model, "layer": layer, "score": score}
        for model, scores in enumerate(models)
        for layer, score in scores.items()
    ]
    frame = pd.DataFrame(rows).astype({"score": float})
    best = best_layer_rows(frame, ["model"], "score")
    assert dict(zip(best["model"], best["layer"], strict=True)) == {
        model: best_layer_of(scores)
        for model, scores in enumerate(models)
        if pd.notna([*scores.values()]).any()
    }
