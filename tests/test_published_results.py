"""The results that ship: what they print can be computed from what is stored beside them."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from probes.boards.claims.report import make_reports
from probes.boards.leaderboard_csv import COLUMNS, tidy
from probes.boards.separability import confidence_set, p_best, told_apart
from probes.measurements.resampled import p_values_of, resampled
from probes.measurements.results import find_results
from probes.statistics import significance
from probes.statistics.bootstrap import interval

PUBLISHED = Path(__file__).parents[1] / "results" / "published"


@pytest.fixture(scope="module")
def found():
    results = find_results(PUBLISHED)
    if not results:
        pytest.skip("the published results are of another schema")
    return results


def test_intervals_and_p_values_follow_from_what_is_stored(found):
    tested = 0
    for path, result in found.items():
        replicates = resampled(result, path, list(result.headline))
        bounds = interval(replicates.values)
        stored = [layer.intervals[result.task.metric] for layer in result.layers]
        np.testing.assert_allclose(bounds, stored, atol=1e-6)
        if (recorded := p_best(result)) is None:
            continue
        pairs = significance.all_pairs(len(result.layers))
        p_values = significance.p_best(replicates.scores, pairs, p_values_of([replicates], pairs))
        # A replicate may tie with what it is compared with, to the last bit.
        assert p_values == pytest.approx(list(recorded.values()), abs=2 / 2001)
        tested += 1
    assert tested


def test_layers_that_are_told_apart_from_a_better_one_are_not_among_the_best(found):
    """The stored p-values, of tests when the results were made, say which may be the best."""
    n_apart = 0
    for path, result in found.items():
        if (best := confidence_set(result)) is None:
            continue
        pairs, scores = told_apart(result, path), result.headline
        beaten = {min(pair, key=scores.get) for pair in pairs}
        assert best == set(scores) - beaten, path
        n_apart += len(pairs)
    assert n_apart > 100


def test_the_leaderboard_is_theirs(found):
    stored = pd.read_csv(PUBLISHED / "leaderboard.csv")
    ours = tidy(found.values())
    assert list(stored.columns) == list(COLUMNS)
    key = ["model", "corpus", "task", "probe", "layer"]
    stored, ours = (frame.sort_values(key).reset_index(drop=True) for frame in (stored, ours))
    assert len(stored) == len(ours)
    for column in ("score", "low", "high", "p_best", "selectivity", "compression", "added_bits"):
        np.testing.assert_allclose(
            stored[column].astype(float), ours[column].astype(float), rtol=1e-5, err_msg=column
        )


def test_claims_can_be_tested_on_them(found):
    reports = make_reports(found, "linear")
    verdicts = {r.title: {name: x.verdict for name, x in r.outcomes.items()} for r in reports}
    assert any(
        verdict == "supported" for outcomes in verdicts.values() for verdict in outcomes.values()
    )
